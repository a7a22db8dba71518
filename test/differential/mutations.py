"""What makes a request invalid: name -> function of (rng, valid request) that gives an invalid one."""

NOUL = {"type": "noul", "instructions": "Is the customer angry?"}


def _question(change):
    """A mutation that adds a bad question after the good ones; `change` makes its definition from the generator."""

    def mutate(rng, request):
        good = request["questions"] if isinstance(request["questions"], dict) else {}
        return {**request, "questions": {**good, "the bad one": change(rng)}}

    return mutate


def _whole(**fields):
    """A mutation that replaces fields of the request."""
    return lambda rng, request: {**request, **{name: rng.choice(values) for name, values in fields.items()}}


def _threshold(*values):
    """A bad `min_confidence`."""
    return _whole(min_confidence=values)


def _surrogate(rng, request):
    """Half a character where the model would read it."""
    half = rng.choice(("\ud83d", "\udc00", "a\ud800b"))
    if rng.random() < 0.5:
        return {**request, "state": f"x {half}", "questions": {"q": NOUL}}
    return {**request, "questions": {"q": {**NOUL, "instructions": half}}}


def _choice(criteria, **more):
    return {"type": "choice", "instructions": "Which?", "criteria": criteria, **more}


def _score(criteria, **more):
    return {"type": "score", "instructions": "How much?", "criteria": criteria, **more}


MUTATIONS = {
    "definition": _question(lambda rng: rng.choice((None, "Is it?", 3, ["noul"], True, {}))),
    "type": _question(lambda rng: {**NOUL, "type": rng.choice((None, "bool", "Noul", ["noul"], "constructor", 0))}),
    "instructions missing": _question(lambda rng: {"type": "noul"}),
    "instructions empty": _question(lambda rng: {**NOUL, "instructions": rng.choice((None, "", " \n", {}, []))}),
    "choice criteria": _question(lambda rng: _choice(rng.choice((None, "a", 2, [], {}, True)))),
    "choice label kind": _question(lambda rng: _choice(["a", rng.choice((None, ["b"], {"b": 1}))])),
    "choice label twice": _question(lambda rng: _choice(rng.choice((["a", "b", "a"], ["__proto__", "__proto__"])))),
    "too many options": _question(lambda rng: _choice([f"the option number {i}" for i in range(rng.randint(72, 90))])),
    "score criteria": _question(lambda rng: _score(rng.choice((None, "low", [], {"0": "a"}, 3)))),
    "score level null": _question(lambda rng: _score(["a", None, "b"])),
    "noul criteria": _question(lambda rng: {**NOUL, "criteria": rng.choice((["no"], "yes", False, {"yes": "a"}, 1))}),
    "noul labels": _question(
        lambda rng: {**NOUL, "labels": rng.choice(({}, ["a"], {"true": "A"}, {"true": "A", "false": " A"}, "AB"))}
    ),
    "labels elsewhere": _question(lambda rng: _choice(["a", "b"], labels={"false": "B", "true": "A"})),
    "option order": _question(
        lambda rng: _choice(["a", "b"], option_order=rng.choice(([0], [0, 0], [1, 2], "01", None, [0.0, 1.0])))
    ),
    "questions": _whole(questions=(None, "Is it?", 1, True, ["Is it?", 1], ["Is it?", "Is it?"], [NOUL])),
    "question id": _whole(questions=({"": NOUL}, {" \n": NOUL})),
    "state null": lambda rng, request: {**request, "state": None, "questions": {"q": NOUL}},
    "surrogate": _surrogate,
    "min_confidence": _threshold(True, "0.5", -0.1, 1.01, {}, {"choice:4": 0.5}, {"noul:2": 2}, [0.5]),
}
