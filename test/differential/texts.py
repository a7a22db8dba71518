"""Random texts of every script and kind, drawn from a seeded generator."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python-convert" / "reference"))

from case_texts import (  # noqa: E402
    INSTRUCTIONS_IN_OTHER_SCRIPTS,
    ODD_TEXTS,
    OPENINGS,
    SCRIPTS,
    TONE_SENTENCES,
    TOPIC_SENTENCES,
    URGENCY_SENTENCES,
)

SENTENCES = [
    *OPENINGS,
    *URGENCY_SENTENCES,
    *(one for group in TOPIC_SENTENCES.values() for one in group),
    *(one for group in TONE_SENTENCES.values() for one in group),
]
SCRIPT_TEXTS = list(SCRIPTS.values())
ODD = list(ODD_TEXTS.values())
ASKED = [
    *INSTRUCTIONS_IN_OTHER_SCRIPTS.values(),
    "Is the customer angry?",
    "What is the topic?",
    "Rate the urgency.",
    "Does the message ask for money back?",
    "Which team should answer?",
]
WORDS = ["billing", "technical", "account", "shipping", "returns", "angry", "kind", "today", "no hurry", "other"]
TRICKY = ["__proto__", "constructor", "toString", "10", "2", "01", "-1", "1.0", "true", "null", "", " ", "a", "A"]
# Blocks of code points whose properties have long been settled; surrogates are not among them.
BLOCKS = [(0x20, 0x7E), (0xA0, 0x24F), (0x300, 0x36F), (0x370, 0x3FF), (0x400, 0x4FF), (0x590, 0x5EA), (0x620, 0x64A)]
BLOCKS += [(0x900, 0x939), (0xE01, 0xE3A), (0x1100, 0x11FF), (0x2000, 0x206F), (0x2100, 0x214F), (0x3040, 0x30FF)]
BLOCKS += [(0x4E00, 0x9FA5), (0xAC00, 0xD7A3), (0xE000, 0xE0FF), (0xFE00, 0xFE0F), (0xFF01, 0xFF5E), (0x0, 0x1F)]
BLOCKS += [(0x1F300, 0x1F5FF), (0x1D400, 0x1D4FF), (0x20000, 0x200FF), (0x1F1E6, 0x1F1FF), (0xE0020, 0xE007F)]


class Texts:
    """Texts for states, instructions, labels and descriptions; `special` are the tokenizer's special tokens."""

    def __init__(self, rng, special):
        self.rng = rng
        self.special = special

    def noise(self, longest=40):
        """Code points of one to three blocks."""
        blocks = self.rng.sample(BLOCKS, self.rng.randint(1, 3))
        length = self.rng.randint(1, longest)
        return "".join(chr(self.rng.randint(*self.rng.choice(blocks))) for _ in range(length))

    def piece(self):
        """A sentence of some kind."""
        draw = self.rng.random()
        if draw < 0.5:
            return self.rng.choice(SENTENCES)
        if draw < 0.72:
            return self.rng.choice(SCRIPT_TEXTS)
        if draw < 0.84:
            return self.rng.choice(ODD)
        if draw < 0.95:
            return self.noise()
        return f"{self.rng.choice(WORDS)} {self.rng.choice(self.special)}{self.rng.choice(self.special)} x"

    def passage(self, pieces):
        """Several sentences."""
        glue = self.rng.choice((" ", "\n", "  ", "\u3000", ""))
        return glue.join(self.piece() for _ in range(pieces))

    def asked(self):
        """Instructions: mostly text, at times other JSON."""
        draw = self.rng.random()
        if draw < 0.75:
            return self.rng.choice(ASKED)
        if draw < 0.85:
            return self.piece() + "?"
        if draw < 0.92:
            return {"ask": self.rng.choice(ASKED), self.noise(4): [1, None, self.noise(5)]}
        return self.rng.choice((["which?", {"a": None}], 7, True, self.passage(9), f"?{self.special[0]}"))

    def label(self):
        """A label: short, at times odd."""
        draw = self.rng.random()
        if draw < 0.6:
            return self.rng.choice(WORDS)
        if draw < 0.8:
            return self.rng.choice(TRICKY)
        return self.noise(12) if draw < 0.95 else self.piece()
