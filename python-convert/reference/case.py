"""One recorded request."""

import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Case:
    """A valid request: `questions` in any form a client may send.

    `request_text` is set where the JSON text itself matters (number spellings, escapes, key order); `state` and
    `questions` are then what Python reads from it.
    """

    name: str
    state: Any
    questions: Any
    min_confidence: Any = None
    request_text: str | None = None

    @property
    def question_dict(self):
        """The questions as upstream's Agent takes them: strings of a list become nouls named after themselves."""
        if isinstance(self.questions, list):
            return {text: {"type": "noul", "instructions": text} for text in self.questions}
        return self.questions

    @classmethod
    def from_text(cls, name, text):
        """A case whose exact JSON text is kept."""
        request = json.loads(text)
        return cls(name, request["state"], request["questions"], request_text=text)


def choice(instructions, criteria, **more):
    """A choice question."""
    return {"type": "choice", "instructions": instructions, "criteria": criteria, **more}


def score(instructions, criteria, **more):
    """A score question."""
    return {"type": "score", "instructions": instructions, "criteria": criteria, **more}


def noul(instructions, **more):
    """A yes/no question."""
    return {"type": "noul", "instructions": instructions, **more}
