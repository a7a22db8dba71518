"""Trains a checkpoint like laya-tiny from nothing and measures it on held-out templates.

    python -I -X utf8 train_laya_tiny.py --out DIR [--steps 900] [--seed 1]

Needs the packages of requirements.lock, one thread and a few CPU minutes. Prints a JSON report to stdout.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", TOKENIZERS_PARALLELISM="false")

import numpy as np  # noqa: E402
import torch  # noqa: E402
from laya.agent import Agent  # noqa: E402

import tiny_train  # noqa: E402
from tiny_data import rows  # noqa: E402
from tiny_model import build_model  # noqa: E402
from tiny_save import save_checkpoint  # noqa: E402
from tiny_tokenizer import train_tokenizer  # noqa: E402

QUANTILES = (0.01, 0.05, 0.1, 0.5, 0.9)
TOKENIZER_ROWS = 30000


def log(text):
    """Progress goes to stderr."""
    print(text, file=sys.stderr, flush=True)


def right_answer(row):
    """What upstream's Agent should answer."""
    criteria = row.question.get("criteria")
    return list(criteria)[row.label] if row.question["type"] == "choice" else row.label


def given_answer(answer):
    """What it answered, in the same form."""
    if answer["type"] == "choice":
        return answer["choice"]
    if answer["type"] == "score":
        return int(max(answer["probabilities"], key=answer["probabilities"].get))
    return int(answer["noul"] > 0.5)


def evaluate(folder, held_out):
    """Accuracy per type and quantiles of the logit margin, through upstream's Agent on the saved files."""
    agent = Agent(str(folder), device="cpu")
    right = {"choice": [], "score": [], "noul": []}
    for row in held_out:
        answer = agent.predict(row.state, {"q": row.question})["answers"]["q"]
        right[row.question["type"]].append(given_answer(answer) == right_answer(row))
    logits, _labels = tiny_train.outputs(agent.model, tiny_train.encode(agent.tok, held_out), agent.tok.pad_token_id)
    top = logits.topk(2, -1).values
    margins = np.quantile((top[:, 0] - top[:, 1]).numpy(), QUANTILES)
    return {
        "held_out_rows": len(held_out),
        "right": sum(map(sum, right.values())),
        "accuracy": {kind: round(float(np.mean(values)), 4) for kind, values in right.items()},
        "margins": {str(q): round(float(margin), 2) for q, margin in zip(QUANTILES, margins, strict=True)},
    }


def make(folder, steps, seed, train_rows):
    """Trains, calibrates and saves; returns figures of the run."""
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(seed)
    started = time.process_time()
    data = rows(seed, "train", train_rows)
    tokenizer = train_tokenizer(rows(seed + 3000, "train", TOKENIZER_ROWS))
    model = build_model(tokenizer)
    pad = tokenizer.pad_token_id
    tiny_train.train(model, tiny_train.encode(tokenizer, data), pad, steps, seed, log)
    calibration = tiny_train.encode(tokenizer, rows(seed + 1000, "held-out", 400))
    temperature, before, after = tiny_train.fit_temperature(*tiny_train.outputs(model, calibration, pad))
    tiny_train.bake_temperature(model, temperature)
    tiny_train.refit_action_head(model, calibration, pad, seed)
    seconds = round(time.process_time() - started)
    save_checkpoint(folder, model, tokenizer, {"updates": steps, "seed": seed})
    return {
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "updates": steps,
        "cpu_seconds": seconds,
        "temperature": round(temperature, 3),
        "nll": [round(before, 3), round(after, 3)],
    }


def main():
    """Reads the arguments, trains, evaluates and prints the report."""
    parser = argparse.ArgumentParser(description="Train a checkpoint like laya-tiny.")
    parser.add_argument("--out", type=Path, required=True, help="folder to write; must not exist or be empty")
    parser.add_argument("--steps", type=int, default=900)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--train-rows", type=int, default=14400)
    parser.add_argument("--eval-rows", type=int, default=400)
    arguments = parser.parse_args()
    if arguments.out.exists() and any(arguments.out.iterdir()):
        parser.error(f"--out: expected a new or empty folder, found files in {arguments.out}")
    report = make(arguments.out, arguments.steps, arguments.seed, arguments.train_rows)
    report |= evaluate(arguments.out, rows(arguments.seed + 2000, "held-out", arguments.eval_rows))
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
