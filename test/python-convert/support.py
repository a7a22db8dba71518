"""Builders for checkpoints, requests and runs. Everything happens in real folders."""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import coremltools  # noqa: F401  (the whole package, before the converter loads its parts under the same name)
import numpy as np

ROOT = Path(__file__).resolve().parents[2]
CONVERT = ROOT / "python-convert" / "convert.py"
LOCK = ROOT / "python-convert" / "requirements.lock"
TINY = ROOT / "models" / "laya-tiny"
KINDS = {"F16": np.dtype("<f2"), "F32": np.dtype("<f4"), "F64": np.dtype("<f8"), "BF16": np.dtype("<u2")}
PAD_ID = 3


class FolderTest(unittest.TestCase):
    """A test with a folder of its own, removed afterwards."""

    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="laya-convert-")
        self.addCleanup(holder.cleanup)
        self.folder = Path(holder.name)

    def code_of(self, call, *arguments):
        """The code of the ConvertError that the call must raise."""
        from laya_convert.errors import ConvertError

        with self.assertRaises(ConvertError) as caught:
            call(*arguments)
        return caught.exception.code


def read_tensors(path):
    """Name -> (dtype name, array) of a safetensors file, by a reader independent of the converter's."""
    data = Path(path).read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        first, last = (8 + length + offset for offset in entry["data_offsets"])
        tensors[name] = (entry["dtype"], np.frombuffer(data[first:last], KINDS[entry["dtype"]]).reshape(entry["shape"]))
    return tensors


def write_tensors(path, tensors):
    """Writes name -> (dtype name, array) as safetensors."""
    header, blobs, offset = {}, [], 0
    for name, (dtype, array) in tensors.items():
        blob = np.ascontiguousarray(array, KINDS[dtype]).tobytes()
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [offset, offset + len(blob)]}
        blobs.append(blob)
        offset += len(blob)
    text = json.dumps(header).encode()
    Path(path).write_bytes(len(text).to_bytes(8, "little") + text + b"".join(blobs))


def tiny_config(name):
    return json.loads((TINY / name).read_text(encoding="utf-8"))


def tiny_paths():
    return checkpoint_paths(TINY)


def checkpoint_paths(folder):
    """The `checkpoint` part of a request."""
    return {
        "weights": str(folder / "model.safetensors"),
        "encoder_config": str(folder / "encoder" / "config.json"),
        "agent_config": str(folder / "rl_agent_config.json"),
    }


def make_checkpoint(folder, tensors=None, encoder=None, agent=None):
    """Writes laya-tiny with changes: `tensors` and both configs are functions of the original, changed in place.

    Returns the `checkpoint` part of a request.
    """
    (folder / "encoder").mkdir(parents=True)
    for name, change in (("encoder/config.json", encoder), ("rl_agent_config.json", agent)):
        config = tiny_config(name)
        if change:
            change(config)
        (folder / name).write_text(json.dumps(config), encoding="utf-8")
    if tensors is None:
        os.symlink(TINY / "model.safetensors", folder / "model.safetensors")
    else:
        every = read_tensors(TINY / "model.safetensors")
        tensors(every)
        write_tensors(folder / "model.safetensors", every)
    return checkpoint_paths(folder)


def golden_row(length):
    """A golden row of laya-tiny with exactly `length` ids, as a request carries it."""
    goldens = json.loads((ROOT / "goldens" / "laya-tiny.json").read_text(encoding="utf-8"))
    for case in goldens["cases"]:
        for item, logits in zip(case["items"], case["logits"], strict=True):
            if len(item["ids"]) == length:
                return {key: item[key] for key in ("ids", "markers", "qtype")} | {"pad_id": PAD_ID, "logits": logits}
    raise AssertionError(f"no golden row of {length} ids")


def make_request(folder, **changes):
    """Writes request.json beside an empty `out`; returns (request path, result path, out path)."""
    out = folder / "out"
    out.mkdir(parents=True, exist_ok=True)
    request = {
        "protocol": 1,
        "checkpoint": tiny_paths(),
        "out": str(out),
        "buckets": [64],
        "lock": str(LOCK),
        "layout_rows": None,
        "max_options": 32,
    } | changes
    path = folder / "request.json"
    path.write_text(json.dumps(request), encoding="utf-8")
    return path, folder / "result.json", out


def run_convert(folder, flags=("-I", "-X", "utf8"), env=None, python=sys.executable, limit=None, **changes):
    """Runs the converter as its users do. Returns (exit code, result or None, stdout lines, out folder)."""
    request, result, out = make_request(folder, **changes)
    done = subprocess.run(
        [str(python), *flags, str(CONVERT), str(request), str(result)],
        capture_output=True, cwd=folder, env=env if env is not None else dict(os.environ), preexec_fn=limit,
    )  # fmt: skip
    document = json.loads(result.read_text(encoding="utf-8")) if result.exists() else None
    return done.returncode, document, done.stdout.decode("utf-8").splitlines(), out


def tree(folder):
    """Relative path -> SHA-256 of every file below a folder."""
    files = sorted(path for path in Path(folder).rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
