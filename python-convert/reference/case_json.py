"""States and requests whose JSON text decides the prompt."""

from case import Case, choice, noul
from case_texts import ODD_TEXTS

ANGRY = noul("Is the customer angry?")
TOPIC = choice("What is the topic?", ["billing", "technical", "shipping"])

ODD_STATES = {
    "empty": "",
    "blank": " \n\t ",
    "empty-object": {},
    "empty-list": [],
    "list-of-empty": [""],
    "integer": 42,
    "zero": 0,
    "float": 1.5,
    "negative-zero": -0.0,
    "true": True,
    "false": False,
    "json-in-text": '{"a": 1e-7, "b": [1.0]}',
    "leading-space": "  two spaces before, two after  ",
}

# Exact request texts, for readers that lose a number's spelling, an escape or the order of number-like keys.
REQUEST_TEXTS = {
    "number-spellings": """{"state": {"n": [1E5, 1e+2, 1.10, -0, -0.0, 0e0, 1.0e0, 0.0000001, 1e22, 1E-10,
 100000000000000000000000, 1.7976931348623157E+308, 4.9e-324, 12345678901234567890.0, 9007199254740993, 1e-400]},
 "questions": {"angry": {"type": "noul", "instructions": "Is the customer angry?"}}}""",
    "escapes": r"""{"state": {"a\u00e9\/\b\f\n\r\t\"\\": "\ud83d\ude00 \u0041 \u2028 \u0000 \uFEFF",
 "\u005f_proto__": 1},
 "questions": {"\u0031": {"type": "noul", "instructions": "\u0049s it?",
 "labels": {"true": "\u00e9", "false": "e\u0301"}}}}""",
    "key-order": """{"questions": {
 "b": {"criteria": {"2": "two", "10": "ten", "01": null, "__proto__": "p", "1": ""},
 "instructions": "Which?", "type": "choice"},
 "10": {"type": "noul", "instructions": "ten"}, "9": {"type": "noul", "instructions": "nine"},
 "__proto__": {"type": "score", "instructions": "level", "criteria": ["a", "b"]},
 "a": {"type": "noul", "instructions": {"z": 1, "10": 2, "9": 3.0}}},
 "state": {"z": 1, "10": {"b": 1, "a": 2}, "9": 3.0, "y": 4}}""",
    "white-space": (
        '\n{ "state" :\t[ 1 ,2.0,\r\n{"a" : [ ] ,"b":{ } } ] , '
        '"questions":{"q" :{"type":"noul","instructions" :"Is it?"}} }\n'
    ),
}


def json_cases():
    """States that must be printed as Python's json.dumps prints them."""
    numbers = {
        "floats": [
            1.0,
            1e-7,
            1e21,
            1e16,
            1e15,
            123456789012345680.0,
            0.1 + 0.2,
            5e-324,
            1.7976931348623157e308,
            -0.0,
            1e-4,
            1e-5,
        ],
        "ints": [0, -1, 2**53 + 1, 10**30, -(2**64)],
        "others": [True, False, None, "", {}, []],
    }
    deep = "bottom"
    for level in range(20):
        deep = {"down": deep} if level % 2 else [deep]
    keys = {
        "10": "ten",
        "2": "two",
        "01": "one",
        "-1": "minus",
        "__proto__": {"a": 1},
        "constructor": None,
        "": "empty",
        "a b": [{}],
    }
    control = "".join(map(chr, range(32))) + "\x7f"
    strings = [["control", control], ["quote", '"\\/'], *map(list, ODD_TEXTS.items())]
    return [
        Case("json-numbers", numbers, {"angry": ANGRY, "topic": TOPIC}),
        Case("json-keys", keys, {"angry": ANGRY}),
        *(Case(f"json-strings-{i}", dict(strings[i : i + 3]), {"angry": ANGRY}) for i in range(0, len(strings), 3)),
        Case("json-strings-list", strings[1:4], {"angry": ANGRY}),
        Case("json-nested", {"deep": deep, "rows": [[1, [2.5, [None]]], [[], {}]]}, {"angry": ANGRY}),
        *(Case(f"state-{name}", state, {"angry": ANGRY, "topic": TOPIC}) for name, state in ODD_STATES.items()),
        *(Case.from_text(f"request-{name}", text) for name, text in REQUEST_TEXTS.items()),
    ]
