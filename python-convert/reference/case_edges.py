"""Requests at the edges of the prompt: scripts, special tokens, odd labels and descriptions, whole-request variants."""

from case import Case, choice, noul, score
from case_json import ANGRY, TOPIC, json_cases
from case_texts import INSTRUCTIONS_IN_OTHER_SCRIPTS, ODD_TEXTS, SCRIPTS

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
        Case(
            "special-all-text",
            every,
            {"state": TOPIC, "instructions": noul(every), "option": choice("Which?", {"a": every, every: "b"})},
        ),
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
        Case(
            "labels-number-like",
            PLAIN,
            {
                "list": choice("Which?", ["10", "2", "01", "1.0", "-1", "1e3", "true", "null"]),
                "object": choice("Which?", {"10": "ten", "2": "two", "01": "one", "1": None}),
            },
        ),
        Case(
            "labels-tricky",
            PLAIN,
            {name: choice("Which?", {t: (None if i % 2 else t) for i, t in enumerate(tricky)}) for name in tricky},
        ),
        Case(
            "labels-odd",
            PLAIN,
            {"empty": choice("Which?", ["", " ", "  x", "x"]), "case": choice("Which?", ["a", "A", "á", "a\u0301"])},
        ),
        Case(
            "descriptions",
            PLAIN,
            {
                "choice": choice("Which?", kinds),
                "score": score("How much?", ["low", *(v for v in kinds.values() if v is not None), "low"]),
            },
        ),
        Case(
            "instructions-of-other-kinds",
            PLAIN,
            {
                "object": noul({"frage": "Ist der Kunde verärgert?", "n": 1.0}),
                "list": choice(["wählen", {"a": None}], ["ja", "nein"]),
                "integer": noul(7),
                "zero": noul(0),
                "float": noul(1e-7),
                "true": noul(True),
                "false": noul(False),
                "spaces": noul("  Is it?  "),
            },
        ),
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
        Case(
            "noul-labels",
            PLAIN,
            {
                **{name: noul(asked, labels=value) for name, value in labels.items()},
                "null": noul(asked, labels=None),
                "with criteria": noul(asked, labels=labels["letters"], criteria={"True": "angry"}),
            },
        ),
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
        *special_token_cases(special_tokens, mask),
        *label_cases(),
        *noul_cases(),
        *request_cases(),
    ]
