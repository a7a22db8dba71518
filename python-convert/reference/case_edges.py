"""Requests at the edges of the prompt: scripts, JSON texts, special tokens, odd labels and descriptions."""

from case import Case, choice, noul, score
from case_texts import INSTRUCTIONS_IN_OTHER_SCRIPTS, ODD_TEXTS, SCRIPTS

ANGRY = noul("Is the customer angry?")
TOPIC = choice("What is the topic?", ["billing", "technical", "shipping"])
PLAIN = "I was charged twice on my card. This is unacceptable!"


def script_cases():
    """A message, a label and a level in each script."""
    cases = []
    for name, text in SCRIPTS.items():
        half = text[: len(text) // 2]
        cases.append(Case(f"script-{name}", text, {"angry": ANGRY, "label": choice(text, {half: text, "other": half})}))
    for name, text in ODD_TEXTS.items():
        questions = {"state": TOPIC, "everywhere": score(text, [text, "no"]), "label": choice("Which?", [text, "x"])}
        cases.append(Case(f"text-{name}", text, questions))
    questions = {name: noul(text) for name, text in INSTRUCTIONS_IN_OTHER_SCRIPTS.items()}
    cases.append(Case("instructions-in-other-scripts", PLAIN, questions))
    return cases


def json_cases():
    """States that must be printed as Python's json.dumps prints them."""
    numbers = {
        "floats": [1.0, 1e-7, 1e21, 1e16, 1e15, 123456789012345680.0, 0.1 + 0.2, 5e-324, 1.7976931348623157e308, -0.0, 1e-4, 1e-5],
        "ints": [0, -1, 2**53 + 1, 10**30, -(2**64)],
        "others": [True, False, None, "", {}, []],
    }
    deep = "bottom"
    for level in range(20):
        deep = {"down": deep} if level % 2 else [deep]
    keys = {"10": "ten", "2": "two", "01": "one", "-1": "minus", "__proto__": {"a": 1}, "constructor": None, "": "empty", "a b": [{}]}
    strings = {"control": "".join(map(chr, range(32))) + "\x7f", "quote": '"\\/', **ODD_TEXTS}
    return [
        Case("json-numbers", numbers, {"angry": ANGRY, "topic": TOPIC}),
        Case("json-keys", keys, {"angry": ANGRY}),
        Case("json-strings", strings, {"angry": ANGRY}),
        Case("json-strings-list", list(strings.items())[:8], {"angry": ANGRY}),
        Case("json-nested", {"deep": deep, "rows": [[1, [2.5, [None]]], [[], {}]]}, {"angry": ANGRY}),
        *(Case(f"state-{name}", state, {"angry": ANGRY, "topic": TOPIC}) for name, state in ODD_STATES.items()),
    ]


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

REQUEST_TEXTS = {
    "number-spellings": '{"state": {"n": [1E5, 1e+2, 1.10, -0, -0.0, 0e0, 1.0e0, 0.0000001, 1e22, 1E-10, 100000000000000000000000, '
    '1.7976931348623157E+308, 4.9e-324, 12345678901234567890.0, 9007199254740993, 1e-400]}, '
    '"questions": {"angry": {"type": "noul", "instructions": "Is the customer angry?"}}}',
    "escapes": r'{"state": {"a\u00e9\/\b\f\n\r\t\"\\": "\ud83d\ude00 \u0041 \u2028 \u0000 \uFEFF", "\u005f_proto__": 1}, '
    r'"questions": {"\u0031": {"type": "noul", "instructions": "\u0049s it?", "labels": {"true": "\u00e9", "false": "e\u0301"}}}}',
    "key-order": '{"questions": {"b": {"criteria": {"2": "two", "10": "ten", "01": null, "__proto__": "p", "1": ""}, "instructions": '
    '"Which?", "type": "choice"}, "10": {"type": "noul", "instructions": "ten"}, "9": {"type": "noul", "instructions": "nine"}, '
    '"__proto__": {"type": "score", "instructions": "level", "criteria": ["a", "b"]}, "a": {"type": "noul", "instructions": '
    '{"z": 1, "10": 2, "9": 3.0}}}, "state": {"z": 1, "10": {"b": 1, "a": 2}, "9": 3.0, "y": 4}}',
    "white-space": '\n{ "state" :\t[ 1 ,2.0,\r\n{"a" : [ ] ,"b":{ } } ] , "questions":{"q" :{"type":"noul","instructions" :"Is it?"}} }\n',
}


def special_token_cases(special_tokens, mask):
    """Special tokens, and things that look like them, everywhere a client can put text."""
    spaced = f"{mask[0]} {mask[1:-1]} {mask[-1]}"
    around = f"{mask[:2]}{mask}{mask[2:]}"
    text = f"a {mask} b{mask}{mask} c {spaced} {around} {mask.lower()} d"
    every = " ".join(f"x {token} y{token}z" for token in special_tokens)
    everywhere = {
        "instructions": noul(text),
        "labels": choice("Which?", [mask, f"{mask}{mask}", "plain", spaced]),
        "descriptions": choice("Which?", {"a": text, f"b {mask}": mask, "c": {mask: [mask, text]}}),
        "levels": score(f"{mask}", [mask, text, "plain"]),
        "noul labels": noul("Is it?", labels={"true": f"yes {mask}", "false": mask}),
        "json": noul({mask: text}),
    }
    return [
        Case("special-mask-text", text, everywhere),
        Case("special-mask-json", {mask: [mask, {"a": text}], "b": spaced}, {"angry": ANGRY}),
        Case("special-mask-conversation", [{"role": mask, "content": text}], {"angry": ANGRY}),
        Case("special-all-text", every, {"state": TOPIC, "instructions": noul(every), "option": choice("Which?", {"a": every, every: "b"})}),
        Case("special-only-mask", mask, {"angry": ANGRY}),
        Case("special-edges", f"{mask} {' '.join(special_tokens)}", {"angry": ANGRY}),
    ]


def label_cases():
    """Labels and descriptions of every JSON kind, and names that are special in some language."""
    tricky = ["__proto__", "constructor", "toString", "hasOwnProperty", "10", "2", "01"]
    kinds = {
        "object": {"desc": "é", "n": 1.0},
        "number": 3,
        "list": [1, 2.50, "ü", None],
        "null": None,
        "empty": "",
        "zero": 0,
        "false": False,
        "true": True,
        "small": 1e-7,
        "minus zero": -0.0,
        "empty object": {},
        "empty list": [],
        "blank": " ",
    }
    return [
        Case("labels-number-like", PLAIN, {
            "list": choice("Which?", ["10", "2", "01", "1.0", "-1", "1e3", "true", "null"]),
            "object": choice("Which?", {"10": "ten", "2": "two", "01": "one", "1": None}),
        }),
        Case("labels-tricky", PLAIN, {name: choice("Which?", {t: (None if i % 2 else t) for i, t in enumerate(tricky)}) for name in tricky}),
        Case("labels-odd", PLAIN, {"empty": choice("Which?", ["", " ", "  x", "x"]), "case": choice("Which?", ["a", "A", "á", "a\u0301"])}),
        Case("descriptions", PLAIN, {
            "choice": choice("Which?", kinds),
            "score": score("How much?", ["low", *(v for v in kinds.values() if v is not None), "low"]),
        }),
        Case("instructions-of-other-kinds", PLAIN, {
            "object": noul({"frage": "Ist der Kunde verärgert?", "n": 1.0}),
            "list": choice(["wählen", {"a": None}], ["ja", "nein"]),
            "integer": noul(7),
            "zero": noul(0),
            "float": noul(1e-7),
            "true": noul(True),
            "spaces": noul("  Is it?  "),
        }),
    ]


def noul_cases():
    """Criteria with keys of any case, partial or empty, and labels."""
    asked = "Is the customer angry?"
    criteria = {
        "both": {"false": "calm", "true": "angry"},
        "upper": {"TRUE": "angry", "False": "calm"},
        "only true": {"true": "angry"},
        "only false": {"FALSE": "calm"},
        "empty": {},
        "null": None,
        "null texts": {"true": None, "false": ""},
        "other kinds": {"true": 0, "false": {"a": [1.0, False]}},
        "twice": {"True": "first", "true": "second", "TRUE": "third"},
    }
    labels = {
        "letters": {"false": "B", "true": "A"},
        "swapped order": {"true": "yes", "false": "no"},
        "spaces": {"false": "  no ", "true": "\tyes\n"},
        "other script": {"false": "いいえ", "true": "はい"},
        "tricky": {"false": "__proto__", "true": "10"},
    }
    return [
        Case("noul-criteria", PLAIN, {name: noul(asked, criteria=value) for name, value in criteria.items()}),
        Case("noul-labels", PLAIN, {
            **{name: noul(asked, labels=value) for name, value in labels.items()},
            "with criteria": noul(asked, labels=labels["letters"], criteria={"True": "angry"}),
        }),
    ]


def request_cases():
    """Whole-request variants: list forms, no questions, orders, thresholds, unknown fields."""
    levels = ["no hurry", "this week", "today"]
    ordered = {
        "choice": choice("What is the topic?", ["billing", "technical", "shipping"], option_order=[2, 0, 1]),
        "score": score("Rate the urgency.", levels, option_order=[1, 2, 0]),
        "noul": noul("Is the customer angry?", option_order=[1, 0]),
        "same": choice("What is the topic?", {"billing": "money", "technical": "errors"}, option_order=[0, 1]),
    }
    mixed = {"topic": TOPIC, "urgency": score("Rate the urgency.", levels), "angry": ANGRY}
    buckets = {"choice:3-5": 0.999, "noul:2": 0.0, "default": 0.5}
    return [
        Case("questions-list", PLAIN, ["Is the customer angry?", "Is it about billing?", "10", "2", "Ça va?"]),
        Case("questions-none", PLAIN, {}),
        Case("questions-none-list", PLAIN, []),
        Case("questions-sixteen", PLAIN, {f"q{i}": noul(f"Is the number {i}?") for i in range(16)}),
        Case("question-ids", PLAIN, {"10": ANGRY, "2": ANGRY, "__proto__": ANGRY, "a b/é": ANGRY, " x ": ANGRY}),
        Case("unknown-fields", PLAIN, {"q": {**ANGRY, "note": "ignored", "weight": 3}}),
        Case("option-order", PLAIN, ordered),
        Case("min-confidence-number", PLAIN, mixed, min_confidence=0.9),
        Case("min-confidence-zero", PLAIN, mixed, min_confidence=0),
        Case("min-confidence-one", PLAIN, mixed, min_confidence=1.0),
        Case("min-confidence-buckets", PLAIN, mixed, min_confidence=buckets),
    ]


def edge_cases(special_tokens, mask):
    """Every edge case; `special_tokens` and `mask` are the tokenizer's literal texts."""
    return [
        *script_cases(),
        *json_cases(),
        *(Case.from_text(f"request-{name}", text) for name, text in REQUEST_TEXTS.items()),
        *special_token_cases(special_tokens, mask),
        *label_cases(),
        *noul_cases(),
        *request_cases(),
    ]
