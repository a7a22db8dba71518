"""Records goldens: requests with the token ids, logits and answers of upstream's `laya` package on the CPU in FP32.

    python -I -X utf8 record_goldens.py --checkpoint DIR --model NAME --revision REV --out FILE

Needs the packages of requirements.lock. The same checkpoint, packages and kind of CPU give the same bytes.
Exit status: 0 written, 1 the reference misbehaved (nothing is written), 2 bad arguments.
"""

import argparse
import math
import os
import re
import shutil
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", TOKENIZERS_PARALLELISM="false")
for name in [name for name in os.environ if name.startswith("LAYA_")]:
    del os.environ[name]

import numpy as np  # noqa: E402
import torch  # noqa: E402
from laya.agent import Agent  # noqa: E402
from laya.common import collate_items  # noqa: E402

from case_fit import Fitter  # noqa: E402
from cases import build_cases  # noqa: E402
from golden_file import recorder_sha256, sha256_file, write  # noqa: E402
from invalid_cases import invalid_requests  # noqa: E402

PACKAGES = ("laya", "torch", "transformers", "tokenizers", "safetensors", "numpy", "huggingface_hub")


class BadReference(Exception):
    """The reference gave something that can't be a golden."""


def shortest(values):
    """FP32 values as the shortest decimals that read back to the same FP32."""
    numbers = [float(str(np.float32(value))) for value in values]
    if not all(math.isfinite(number) for number in numbers):
        raise BadReference("a logit is not finite")
    return numbers


def load_reference(checkpoint):
    """Upstream's Agent over a private copy of `checkpoint`, because upstream may rewrite a tokenizer config."""
    torch.set_num_threads(1)
    if torch.get_num_interop_threads() != 1:
        torch.set_num_interop_threads(1)
    torch.use_deterministic_algorithms(True)
    with tempfile.TemporaryDirectory(prefix="laya-reference-") as folder:
        copy = Path(folder) / "checkpoint"
        shutil.copytree(checkpoint, copy)
        return Agent(str(copy), device="cpu")


@torch.no_grad()
def run_rows(agent, case):
    """(items, logits, action logits) of one request, all its rows in one padded batch as upstream runs it."""
    questions = case.question_dict
    if not questions:
        return [], [], []
    for name, question in questions.items():
        agent._check_question(name, question)
    internal = {name: agent._to_internal(question) for name, question in questions.items()}
    items = agent._encode_state(case.state, list(questions), internal)
    logits, actions = agent._infer(collate_items([items], agent.tok.pad_token_id))
    return items, logits.float().numpy(), actions.float().numpy()


def record_case(agent, case):
    """One element of `cases`."""
    items, logits, actions = run_rows(agent, case)
    result = agent.predict(case.state, case.question_dict, min_confidence=case.min_confidence)
    record = {"name": case.name, "state": case.state, "questions": case.questions}
    if case.min_confidence is not None:
        record["min_confidence"] = case.min_confidence
    if case.request_text is not None:
        record["request_text"] = case.request_text
    record["items"] = [{key: item[key] for key in ("ids", "markers", "qtype")} for item in items]
    record["logits"] = [shortest(row[: len(item["markers"])]) for row, item in zip(logits, items, strict=True)]
    record["action_logits"] = [shortest(row) for row in actions]
    record["answers"] = result["answers"]
    record["usage"] = result["usage"]
    return record


def record_invalid(agent, name, request):
    """One element of `invalid`. BadReference when upstream answers after all."""
    extra = {key: request[key] for key in ("min_confidence",) if key in request}
    try:
        agent.predict(request["state"], request["questions"], **extra)
    except (ValueError, TypeError) as error:
        return {"name": name, "request": request, "error": type(error).__name__}
    raise BadReference(f"upstream accepts the invalid request {name}")


def record(checkpoint, model, revision, buckets):
    """The whole goldens document."""
    agent = load_reference(checkpoint)
    fitter = Fitter(agent.tok, agent.cfg)
    cases = [record_case(agent, case) for case in build_cases(fitter, buckets)]
    invalid = [record_invalid(agent, name, request) for name, request in invalid_requests(fitter.max_len)]
    return {
        "format": "laya-goldens",
        "format_version": 1,
        "model": model,
        "revision": revision,
        "reference": f"upstream laya {version('laya')} Agent, PyTorch CPU float32",
        "reference_packages": {name: version(name) for name in PACKAGES},
        "source_weights_sha256": sha256_file(checkpoint / "model.safetensors"),
        "recorded_by": recorder_sha256(),
        "cases": cases,
        "invalid": invalid,
    }


def revision_type(text):
    """A 40-hex revision."""
    if not re.fullmatch(r"[0-9a-f]{40}", text):
        raise argparse.ArgumentTypeError(f"expected 40 hex digits, found {text!r}")
    return text


def buckets_type(text):
    """Comma-separated sequence lengths."""
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"expected numbers with commas between, found {text!r}") from error


def main():
    """Reads the arguments, records, and reports what was written."""
    parser = argparse.ArgumentParser(description="Record goldens with upstream's laya package.")
    parser.add_argument("--checkpoint", type=Path, required=True, help="folder of the checkpoint")
    parser.add_argument("--model", required=True, help="short name, for example laya-tiny")
    parser.add_argument("--revision", type=revision_type, required=True, help="40 hex digits")
    parser.add_argument("--buckets", type=buckets_type, default=(64, 96, 128, 256), help="lengths to fit rows to")
    parser.add_argument("--out", type=Path, required=True, help="file to write")
    arguments = parser.parse_args()
    if not (arguments.checkpoint / "model.safetensors").is_file():
        parser.error(
            f"--checkpoint: expected a checkpoint folder, found no model.safetensors in {arguments.checkpoint}"
        )
    goldens = record(arguments.checkpoint, arguments.model, arguments.revision, arguments.buckets)
    write(arguments.out, goldens)
    rows = sum(len(case["items"]) for case in goldens["cases"])
    print(f"{len(goldens['cases'])} cases, {rows} rows, {len(goldens['invalid'])} invalid requests", file=sys.stderr)


if __name__ == "__main__":
    try:
        main()
    except BadReference as error:
        sys.exit(f"record_goldens: {error}")
