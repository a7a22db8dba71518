"""Runs requests through upstream's `laya` package: token ids, logits, answers, or the refusal.

    python -I -X utf8 upstream.py CHECKPOINT REQUESTS OUT

Needs the packages of python-convert/reference/requirements.lock. REQUESTS is what make_requests.py writes; OUT has a line
for each: `id`, then `rows` of [ids, markers, type], `logits`, `fp16_logits`, `actions`, `answers` and `usage`, or `error`.
`fp16_logits` are those of the same model with its weights rounded to FP16, as an artifact has them.
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python-convert" / "reference"))

import torch  # noqa: E402
from case import Case  # noqa: E402
from golden_file import dumps  # noqa: E402
from record_goldens import load_reference, run_rows, shortest  # noqa: E402


def round_weights(agent):
    """Every weight of the graph as its nearest FP16 number; the act head stays FP32 on the host."""
    (model,) = [part for part in vars(agent).values() if isinstance(part, torch.nn.Module)]
    for name, weight in model.named_parameters():
        if not name.startswith("act_head"):
            weight.data = weight.data.half().float()
    return agent


def markers_only(items, logits):
    """Logits at the markers, as the shortest texts of their numbers."""
    return [shortest(row[: len(item["markers"])]) for row, item in zip(logits, items, strict=True)]


def answer(agent, rounded, text):
    """What upstream makes of one request's text, with its own weights and with rounded ones."""
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
        "logits": markers_only(items, logits),
        "fp16_logits": markers_only(items, run_rows(rounded, case)[1]),
        "actions": [shortest(row) for row in actions],
        "answers": result["answers"],
        "usage": result["usage"],
    }


def main(checkpoint, requests, out):
    """One line of OUT for each of REQUESTS."""
    agent = load_reference(Path(checkpoint))
    rounded = round_weights(load_reference(Path(checkpoint)))
    with open(requests, encoding="ascii") as source, open(out, "w", encoding="utf-8", newline="\n") as target:
        for line in source:
            record = json.loads(line)
            target.write(dumps({"id": record["id"], **answer(agent, rounded, record["request"])}) + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
