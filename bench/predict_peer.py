"""Answers requests with upstream's agents for bench/predict.mjs.

    python -I predict_peer.py torch CHECKPOINT
    python -I predict_peer.py onnx CHECKPOINT PACKAGES WORK

PACKAGES is a folder with onnxruntime, onnx and onnxscript; the graph is exported once into the folder WORK. Reads lines
of {context, questions, runs} and prints for each the milliseconds of the runs and their CPU seconds.
"""

import json
import os
import resource
import sys
import time
from pathlib import Path

os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", TOKENIZERS_PARALLELISM="false")


def torch_agent(checkpoint):
    """Upstream's agent over a checkpoint; its tokenizer folder may be rewritten, so it gets a copy."""
    import shutil
    import tempfile

    import torch
    from laya.agent import Agent

    torch.set_num_threads(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
    copy = Path(tempfile.mkdtemp(prefix="laya-peer-")) / "checkpoint"
    copy.mkdir()
    for path in Path(checkpoint).iterdir():
        if path.name == "tokenizer":
            shutil.copytree(path, copy / path.name)
        else:
            (copy / path.name).symlink_to(path)
    return Agent(str(copy), device="cpu"), copy


def onnx_agent(checkpoint, packages, work):
    """Upstream's ONNX agent over its own model, exported with any number of rows, tokens and options."""
    sys.path.append(packages)
    import torch
    from laya.common import collate_items
    from laya.onnx_agent import ONNXAgent

    agent, copy = torch_agent(checkpoint)
    target = Path(work) / "laya.onnx"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        noul = {name: {"type": "noul", "instructions": name} for name in ("is it?", "or is it not?")}
        internal = {name: agent._to_internal(question) for name, question in noul.items()}
        batch = collate_items([agent._encode_state("some text", list(noul), internal)], agent.tok.pad_token_id)
        names = ["input_ids", "attention_mask", "marker_pos", "marker_mask", "qtype"]
        axes = {name: {0: "rows"} for name in names}
        axes |= {name: {0: "rows", 1: "tokens"} for name in names[:2]}
        axes |= {name: {0: "rows", 1: "options"} for name in names[2:4]}
        outputs = {"logits": {0: "rows", 1: "options"}, "act_logits": {0: "rows"}}
        arguments = tuple(batch[name] for name in names)
        partial = target.with_suffix(".partial.onnx")
        torch.backends.mha.set_fastpath_enabled(False)
        with torch.no_grad():
            torch.onnx.export(
                agent.model.eval(),
                arguments,
                str(partial),
                input_names=names,
                output_names=list(outputs),
                dynamic_axes={**axes, **outputs},
                dynamo=False,
            )
        partial.replace(target)
    return ONNXAgent(str(copy), onnx_path=str(target))


def main(kind, *arguments):
    """Loads the agent, then answers line by line."""
    data = os.dup(1)
    os.dup2(2, 1)

    def tell(record):
        os.write(data, (json.dumps(record) + "\n").encode())

    started = time.perf_counter()
    agent = torch_agent(*arguments)[0] if kind == "torch" else onnx_agent(*arguments)
    tell({"load_s": time.perf_counter() - started})
    salt = 0
    for line in sys.stdin:
        order = json.loads(line)
        questions = {text: {"type": "noul", "instructions": text} for text in order["questions"]}
        taken = []
        for run in range(order["runs"] + 1):
            salt += 1
            if run == 1:
                cpu = time.process_time()
            before = time.perf_counter()
            agent.system_one(f"{salt} {order['context']}", questions)
            taken.append((time.perf_counter() - before) * 1000)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
        tell({"ms": taken[1:], "cpu_s": time.process_time() - cpu, "peak_rss_bytes": peak})


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
