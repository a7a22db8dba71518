"""Requests that upstream refuses. The recorder runs each through upstream and keeps the exception it really raised."""

from case import choice, noul, score

ANGRY = noul("Is the customer angry?")
STATE = "I was charged twice on my card."


def bad_questions(max_len):
    """name -> one bad question definition. An option has at least 4 tokens, so `max_len // 4 + 8` of them can't fit."""
    too_many = [f"the option number {i}" for i in range(max_len // 4 + 8)]
    asked = "Which?"
    return {
        "question-null": None,
        "question-text": "Is the customer angry?",
        "question-number": 3,
        "question-list": ["noul", "Is it?"],
        "question-empty": {},
        "type-missing": {"instructions": asked, "criteria": ["a"]},
        "type-unknown": {"type": "bool", "instructions": asked},
        "type-upper-case": {"type": "Noul", "instructions": asked},
        "type-null": {"type": None, "instructions": asked},
        "type-list": {"type": ["noul"], "instructions": asked},
        "type-inherited-name": {"type": "constructor", "instructions": asked},
        "instructions-missing": {"type": "noul"},
        "instructions-null": noul(None),
        "instructions-empty": noul(""),
        "instructions-blank": noul(" \n\t "),
        "instructions-empty-object": noul({}),
        "instructions-empty-list": noul([]),
        "choice-criteria-missing": {"type": "choice", "instructions": asked},
        "choice-criteria-null": choice(asked, None),
        "choice-criteria-text": choice(asked, "a, b"),
        "choice-criteria-number": choice(asked, 2),
        "choice-criteria-empty-list": choice(asked, []),
        "choice-criteria-empty-object": choice(asked, {}),
        "choice-label-null": choice(asked, ["a", None]),
        "choice-label-list": choice(asked, ["a", ["b"]]),
        "choice-label-object": choice(asked, ["a", {"b": 1}]),
        "choice-labels-repeated": choice(asked, ["a", "b", "a"]),
        "choice-labels-repeated-tricky": choice(asked, ["__proto__", "__proto__"]),
        "choice-with-labels": choice(asked, ["a", "b"], labels={"false": "B", "true": "A"}),
        "choice-too-many-options": choice(asked, too_many),
        "score-criteria-missing": {"type": "score", "instructions": asked},
        "score-criteria-object": score(asked, {"0": "a", "1": "b"}),
        "score-criteria-text": score(asked, "low"),
        "score-criteria-empty": score(asked, []),
        "score-level-null": score(asked, ["a", None]),
        "score-with-labels": score(asked, ["a", "b"], labels={"false": "B", "true": "A"}),
        "score-with-null-labels": score(asked, ["a", "b"], labels=None),
        "score-too-many-options": score(asked, too_many),
        "noul-criteria-list": noul(asked, criteria=["no", "yes"]),
        "noul-criteria-text": noul(asked, criteria="yes"),
        "noul-criteria-false": noul(asked, criteria=False),
        "noul-criteria-other-key": noul(asked, criteria={"true": "a", "maybe": "b"}),
        "noul-criteria-yes-no": noul(asked, criteria={"yes": "a", "no": "b"}),
        "noul-criteria-spaced-key": noul(asked, criteria={" true": "a"}),
        "noul-labels-list": noul(asked, labels=["no", "yes"]),
        "noul-labels-empty-object": noul(asked, labels={}),
        "noul-labels-partial": noul(asked, labels={"true": "A"}),
        "noul-labels-upper-case-keys": noul(asked, labels={"False": "B", "True": "A"}),
        "noul-labels-extra-key": noul(asked, labels={"false": "B", "true": "A", "maybe": "C"}),
        "noul-labels-equal": noul(asked, labels={"false": "A", "true": " A "}),
        "noul-labels-empty": noul(asked, labels={"false": "", "true": "A"}),
        "noul-labels-blank": noul(asked, labels={"false": " ", "true": "A"}),
        "noul-labels-numbers": noul(asked, labels={"false": 0, "true": 1}),
        "order-too-short": choice(asked, ["a", "b", "c"], option_order=[0, 1]),
        "order-too-long": choice(asked, ["a", "b"], option_order=[0, 1, 2]),
        "order-repeated": choice(asked, ["a", "b"], option_order=[0, 0]),
        "order-out-of-range": choice(asked, ["a", "b"], option_order=[1, 2]),
        "order-negative": choice(asked, ["a", "b"], option_order=[-1, 0]),
        "order-floats": choice(asked, ["a", "b"], option_order=[0.0, 1.0]),
        "order-booleans": choice(asked, ["a", "b"], option_order=[False, True]),
        "order-text": choice(asked, ["a", "b"], option_order="01"),
        "order-null": choice(asked, ["a", "b"], option_order=None),
        "order-noul": noul(asked, option_order=[0]),
    }


def bad_requests():
    """name -> a request that is bad as a whole."""
    plain = {"state": STATE, "questions": {"q": ANGRY}}
    thresholds = {
        "boolean": True,
        "text": "0.5",
        "negative": -0.1,
        "above-one": 1.01,
        "empty-map": {},
        "unknown-bucket": {"choice:4": 0.5},
        "bad-value-in-map": {"noul:2": 2},
        "null-in-map": {"default": None},
        "list": [0.5],
    }
    return {
        "state-null": {**plain, "state": None},
        "questions-null": {**plain, "questions": None},
        "questions-text": {**plain, "questions": "Is the customer angry?"},
        "questions-number": {**plain, "questions": 1},
        "questions-true": {**plain, "questions": True},
        "questions-list-of-numbers": {**plain, "questions": ["Is it?", 1]},
        "questions-list-of-questions": {**plain, "questions": [ANGRY]},
        "questions-list-repeated": {**plain, "questions": ["Is it?", "Is it?"]},
        "id-empty": {**plain, "questions": {"": ANGRY}},
        "id-blank": {**plain, "questions": {" \n": ANGRY}},
        "second-question-bad": {**plain, "questions": {"good": ANGRY, "bad": {"type": "noul"}}},
        **{f"min-confidence-{name}": {**plain, "min_confidence": value} for name, value in thresholds.items()},
    }


def invalid_requests(max_len):
    """(name, request) of everything that must be refused; `max_len` is the checkpoint's, in tokens."""
    singles = {name: {"state": STATE, "questions": {"q": q}} for name, q in bad_questions(max_len).items()}
    return [*singles.items(), *bad_requests().items()]
