"""Times one row of laya-apple 1.7.0's FP32 PyTorch model on the CPU.

Usage: python -I execute_peer.py CHECKPOINT LENGTH RUNS

The row has LENGTH token ids (7 + 13 i modulo the vocabulary) and two options. Prints one JSON object on stdout: seconds
to load, seconds of each run after a first one that is not counted, peak memory.
"""

import json
import os
import resource
import sys
import time


def main(checkpoint, length, runs):
    data = os.dup(1)
    os.dup2(2, 1)
    from pathlib import Path

    import torch
    from laya_apple.conversion.torch_reference import load_model

    torch.set_num_threads(os.cpu_count() or 2)
    started = time.perf_counter()
    model = load_model(Path(checkpoint), length, attention_implementation="sdpa")
    load = time.perf_counter() - started
    vocabulary = model.encoder.embeddings.tok_embeddings.weight.shape[0]
    row = (
        torch.tensor([[(7 + 13 * i) % vocabulary for i in range(length)]]),
        torch.ones((1, length), dtype=torch.long),
        torch.tensor([[1, 2]]),
        torch.ones((1, 2), dtype=torch.bool),
        torch.tensor([0]),
    )
    seconds = []
    with torch.inference_mode():
        for _ in range(runs + 1):
            started = time.perf_counter()
            model(*row)
            seconds.append(time.perf_counter() - started)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    record = {"load_s": load, "rows_s": seconds[1:], "peak_rss_bytes": peak}
    os.write(data, (json.dumps(record) + "\n").encode())


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
