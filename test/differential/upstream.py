"""Runs requests through upstream's `laya` package: token ids, logits, answers, or the refusal.

    python -I -X utf8 upstream.py CHECKPOINT REQUESTS OUT

Needs the packages of python-convert/reference/requirements.lock. REQUESTS is what make_requests.py writes; OUT has a line
for each: `id`, then `rows` of [ids, markers, type], `logits`, `actions`, `answers` and `usage`, or `error`.
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python-convert" / "reference"))

from case import Case  # noqa: E402
from golden_file import dumps  # noqa: E402
from record_goldens import load_reference, run_rows, shortest  # noqa: E402


def answer(agent, text):
    """What upstream makes of one request's text."""
    request = json.loads(text)
    case = Case("", request["state"], request["questions"], request.get("min_confidence"))
    listed = isinstance(case.questions, list)
    if listed and (not all(isinstance(one, str) for one in case.questions) or len(set(case.questions)) < len(case.questions)):
        return {"error": "list"}
    try:
        result = agent.predict(case.state, case.question_dict, min_confidence=case.min_confidence)
    except (ValueError, TypeError, AttributeError) as error:
        return {"error": type(error).__name__}
    items, logits, actions = run_rows(agent, case)
    return {
        "rows": [[item["ids"], item["markers"], item["qtype"]] for item in items],
        "logits": [shortest(row[: len(item["markers"])]) for row, item in zip(logits, items, strict=True)],
        "actions": [shortest(row) for row in actions],
        "answers": result["answers"],
        "usage": result["usage"],
    }


def main(checkpoint, requests, out):
    """One line of OUT for each of REQUESTS."""
    agent = load_reference(Path(checkpoint))
    with open(requests, encoding="ascii") as source, open(out, "w", encoding="utf-8", newline="\n") as target:
        for line in source:
            record = json.loads(line)
            target.write(dumps({"id": record["id"], **answer(agent, record["request"])}) + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
