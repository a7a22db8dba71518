"""Times the traced PyTorch conversion of laya-apple 1.7.0 for one bucket.

Usage: python -I convert_peer.py CHECKPOINT LENGTH PACKAGE

CHECKPOINT is a folder in the Laya layout, LENGTH the bucket, PACKAGE the `.mlpackage` to write (must not exist).
Runs the installed package's own graph (`ConvBody`), export model and conversion settings in the order of its build:
load, trace, convert, save. Its gates, compilation and registration are left out, since they need a Mac.
Prints one JSON object on stdout; everything else goes to stderr.
Units: seconds, bytes.
"""

import json
import os
import resource
import sys
import time


def convert(checkpoint, length, package):
    """Converts one bucket and returns the seconds of each phase, imports included."""
    from pathlib import Path

    marks = [time.perf_counter()]
    import coremltools as ct
    import numpy as np
    import torch
    from laya_apple.conversion.bc1s import ConvBody
    from laya_apple.conversion.build import DEPLOYMENT_TARGET, INPUTS
    from laya_apple.conversion.torch_reference import load_model
    from laya_apple.registry import ANE_MAX_OPTIONS

    marks.append(time.perf_counter())
    torch.set_num_threads(max(1, (os.cpu_count() or 8) // 2))
    source = load_model(Path(checkpoint), length, attention_implementation="explicit")
    body = ConvBody(source, length).eval()
    marks.append(time.perf_counter())
    width = body.embedding_norm.weight.shape[1]
    example = (
        torch.randn(1, width, 1, length),
        torch.zeros(1, length, 1, length),
        torch.zeros(1, length, 1, length),
        torch.zeros(1, width, 1, 1),
        torch.zeros(1, length, 1, ANE_MAX_OPTIONS),
    )
    with torch.inference_mode():
        traced = torch.jit.trace(body, example, strict=True, check_trace=False)
    marks.append(time.perf_counter())
    model = ct.convert(
        traced,
        source="pytorch",
        convert_to="mlprogram",
        inputs=[
            ct.TensorType(name=n, shape=tuple(v.shape), dtype=np.float16) for n, v in zip(INPUTS, example, strict=True)
        ],
        outputs=[ct.TensorType(name="logits"), ct.TensorType(name="cls")],
        compute_precision=ct.precision.FLOAT16,
        minimum_deployment_target=getattr(ct.target, DEPLOYMENT_TARGET),
        skip_model_load=True,
    )
    marks.append(time.perf_counter())
    model.save(package)
    marks.append(time.perf_counter())
    names = ("import", "load", "trace", "convert", "save")
    return {name: round(after - before, 3) for name, before, after in zip(names, marks[:-1], marks[1:], strict=True)}


def main(argv):
    if len(argv) != 4 or not argv[2].isdigit():
        print(__doc__, file=sys.stderr)
        return 2
    checkpoint, length, package = argv[1], int(argv[2]), argv[3]
    data = os.dup(1)
    os.dup2(2, 1)
    started = time.perf_counter()
    phases = convert(checkpoint, length, package)
    wall = time.perf_counter() - started
    usage = resource.getrusage(resource.RUSAGE_SELF)
    unit = 1 if sys.platform == "darwin" else 1024
    record = {
        "length": length,
        "wall_s": round(wall, 3),
        "cpu_s": round(usage.ru_utime + usage.ru_stime, 3),
        "peak_rss_bytes": usage.ru_maxrss * unit,
        "phases_s": phases,
    }
    os.write(data, (json.dumps(record) + "\n").encode())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
