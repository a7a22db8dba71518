"""Records what upstream's predict_shortlist keeps and asks, for test/runtime/shortlist.test.ts.

    python record_shortlists.py --out ../../test/fixtures/shortlists.json

Needs upstream's `laya`. The vectors count letters by code point, so the test makes the same ones.
"""

import argparse
import importlib.metadata
import json
import random
import warnings

from laya.shortlist import predict_shortlist

TOPICS = "billing delivery refund password login invoice address cancel upgrade outage privacy warranty".split()
STATES = [
    "I was charged twice and want a refund for the second payment.",
    "",
    "Заказ до сих пор не доставлен",
    {"subject": "Login", "body": "The password reset link is broken", "attempts": 3},
    [{"role": "user", "content": "Where is my invoice?"}, {"role": "assistant", "content": "Which month?"}],
]
INSTRUCTIONS = ["What is it about?", "", {"task": "Pick the team", "note": "größte Übereinstimmung"}, ["Pick", "one"]]


def embed(texts):
    return [[sum(1 for ch in text if ord(ch) % 7 == slot) for slot in range(7)] for text in texts]


class Agent:
    """Answers with the questions it was asked."""

    def predict(self, state, questions):
        return {"asked": questions}


def criteria(rng, index):
    labels = rng.sample(TOPICS, rng.randint(2, len(TOPICS)))
    if index % 5 == 0:  # equal vectors: anagrams keep their order
        labels += ["stale", "steal", "least", "tales"]
    if index % 7 == 0:  # zero vectors
        labels = ["", *labels]
    if index % 3 == 0:
        return labels
    return {label: rng.choice([None, "", f"all about {label}", {"team": label}]) for label in labels}


def request(rng, index):
    choice = {"type": "choice", "instructions": INSTRUCTIONS[index % len(INSTRUCTIONS)] or "Topic?", "criteria": criteria(rng, index)}
    if index % 4 == 0:
        choice["option_order"] = list(reversed(range(len(choice["criteria"]))))
    questions = {
        "topic": choice,
        "urgent": {"type": "noul", "instructions": "Is it urgent?"},
        "second": {"type": "choice", "instructions": "Which?", "criteria": criteria(rng, index + 1)},
        "level": {"type": "score", "instructions": "How bad?", "criteria": ["fine", "bad"]},
    }
    return STATES[index % len(STATES)], questions, rng.choice([1, 2, 3, 5, 20])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", required=True)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rng = random.Random(7)
    cases = []
    for index in range(60):
        state, questions, k = request(rng, index)
        found = predict_shortlist(Agent(), state, questions, embed, k=k)
        cases.append({"state": state, "questions": questions, "k": k, "asked": found["asked"], "shortlist": found["shortlist"]})
    with open(options.out, "w", encoding="utf-8", newline="\n") as file:
        lines = ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases)
        version = importlib.metadata.version("laya")
        file.write(f'{{"recorded_with": "laya {version}, laya.shortlist.predict_shortlist",\n"cases": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
