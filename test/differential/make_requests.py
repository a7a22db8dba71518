"""Writes seeded random requests, valid and invalid ones, one JSON object a line.

    python -I -X utf8 make_requests.py --seed 1 --count 2000 --tokenizer models/laya-tiny/tokenizer --out FILE

Each line has `id`, `kind` ("valid", or what is wrong) and `request`: the exact text a client would send, with `state`,
`questions` and perhaps `min_confidence`. The same seed gives the same bytes. Needs the standard library only.
"""

import argparse
import json
import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from json_text import NUMBERS, JsonWriter, Raw  # noqa: E402
from mutations import MUTATIONS  # noqa: E402
from texts import Texts  # noqa: E402

INVALID_SHARE = 0.15
BUCKETS = [f"{name}:{size}" for name in ("choice", "score", "noul") for size in ("2", "3-5", "6-10", "11+")]


class Requests:
    """Draws requests."""

    def __init__(self, rng, special):
        self.rng = rng
        self.texts = Texts(rng, special)

    def state(self):
        """Text, a conversation, an object, or another JSON value."""
        draw = self.rng.random()
        size = self.rng.choice((1, 1, 2, 3, 5, 8, 14, 30))
        if draw < 0.55:
            return self.texts.passage(size)
        if draw < 0.75:
            roles = ("user", "assistant", self.texts.noise(6))
            return [{"role": self.rng.choice(roles), "content": self.texts.passage(2)} for _ in range(size)]
        if draw < 0.92:
            return {self.texts.label(): self.value(2) for _ in range(size)}
        return self.rng.choice(("", " \n", [], {}, [""], Raw(self.rng.choice(NUMBERS)), True, [None, []]))

    def value(self, depth):
        """Any JSON value, nested at most so deep."""
        draw = self.rng.random()
        if depth == 0 or draw < 0.4:
            return self.texts.piece()
        if draw < 0.6:
            return Raw(self.rng.choice(NUMBERS))
        if draw < 0.7:
            return self.rng.choice((None, True, False, "", {}, []))
        if draw < 0.85:
            return [self.value(depth - 1) for _ in range(self.rng.randint(0, 3))]
        return {self.texts.label(): self.value(depth - 1) for _ in range(self.rng.randint(0, 3))}

    def options(self):
        """How many options a question has."""
        return self.rng.choice((1, 2, 2, 3, 3, 4, 5, 6, 8, 11, 16, 24, 32))

    def description(self):
        """What stands behind a label: text, nothing, or JSON."""
        return self.texts.piece() if self.rng.random() < 0.6 else self.rng.choice((None, "", self.value(1)))

    def choice(self):
        """A choice question: a list of labels, or labels with descriptions."""
        labels = list(dict.fromkeys(self.texts.label() for _ in range(self.options())))
        if self.rng.random() < 0.5:
            return {"criteria": labels}, len(labels)
        return {"criteria": {label: self.description() for label in labels}}, len(labels)

    def score(self):
        """A score question; no level may be null."""
        levels = [self.description() for _ in range(self.options())]
        return {"criteria": ["none" if level is None else level for level in levels]}, len(levels)

    def noul(self):
        """A yes/no question with or without criteria and labels."""
        fields = {}
        if self.rng.random() < 0.4:
            keys = self.rng.sample(("true", "false", "TRUE", "False"), self.rng.randint(0, 3))
            fields["criteria"] = self.rng.choice(({key: self.description() for key in keys}, None))
        if self.rng.random() < 0.25:
            no, yes = self.rng.choice((("B", "A"), ("no", "yes"), (" nein ", "\tja"), ("__proto__", "10"), ("\u3044", "x")))
            fields["labels"] = {"false": no, "true": yes}
        return fields, 2

    def question(self):
        """One question of any type, with its fields in any order."""
        kind = self.rng.choice(("choice", "choice", "score", "noul", "noul"))
        fields, count = {"choice": self.choice, "score": self.score, "noul": self.noul}[kind]()
        fields = {"type": kind, "instructions": self.texts.asked(), **fields}
        if self.rng.random() < 0.12:
            fields["option_order"] = self.rng.sample(range(count), count)
        if self.rng.random() < 0.05:
            fields["note"] = self.value(1)
        names = self.rng.sample(sorted(fields), len(fields))
        return {name: fields[name] for name in names}

    def questions(self):
        """An object of questions, at times a list of texts, at times nothing."""
        draw = self.rng.random()
        if draw < 0.02:
            return self.rng.choice(({}, []))
        if draw < 0.08:
            return list(dict.fromkeys(self.texts.piece() + "?" for _ in range(self.rng.randint(1, 4))))
        count = self.rng.choice((1, 1, 1, 2, 2, 3, 4, 8))
        ids = (self.texts.label() for _ in range(count))
        return {(name if name.strip() else f"q{name}"): self.question() for name in ids}

    def min_confidence(self):
        """A threshold, or one by bucket."""
        if self.rng.random() < 0.6:
            return self.rng.choice((0, 1, 0.5, 0.9, Raw("0.750"), Raw("1e-1")))
        names = self.rng.sample([*BUCKETS, "default"], self.rng.randint(1, 4))
        return {name: round(self.rng.random(), 3) for name in names}

    def request(self):
        """(kind, request)."""
        request = {"state": self.state(), "questions": self.questions()}
        if self.rng.random() < 0.15:
            request["min_confidence"] = self.min_confidence()
        if self.rng.random() >= INVALID_SHARE:
            return "valid", request
        kind = self.rng.choice(sorted(MUTATIONS))
        return kind, MUTATIONS[kind](self.rng, request)


def special_tokens(folder):
    """The literal texts of a tokenizer's special tokens, the mask token first."""
    config = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    names = ("mask_token", "cls_token", "sep_token", "pad_token", "unk_token")
    values = (config.get(name) for name in names)
    return [one["content"] if isinstance(one, dict) else one for one in values if one]


def lines(seed, count, folder):
    """The lines of the file."""
    special = special_tokens(folder)
    for number in range(count):
        rng = random.Random(f"{seed}:{number}")
        kind, request = Requests(rng, special).request()
        record = {"id": number, "kind": kind, "request": JsonWriter(rng).text(request)}
        yield json.dumps(record, ensure_ascii=True, separators=(",", ":")) + "\n"


def main():
    """Reads the arguments and writes the file."""
    parser = argparse.ArgumentParser(description="Write seeded random requests.")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    with open(arguments.out, "w", encoding="ascii", newline="\n") as out:
        out.writelines(lines(arguments.seed, arguments.count, arguments.tokenizer))


if __name__ == "__main__":
    main()
