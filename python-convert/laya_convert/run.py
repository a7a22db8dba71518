"""The conversion: named steps from request to packages, and the result document."""

import json
import os
import platform
import resource
import shutil
import signal
import sys
import time
import traceback

from .environment import THREADS, check_environment, check_native, check_space
from .errors import ConvertError
from .request import PROTOCOL, check_against, read_request

MODEL_BYTES = 16 << 20


class Interrupted(BaseException):
    """A signal asked the conversion to stop."""

    def __init__(self, number):
        super().__init__(signal.Signals(number).name)
        self.number = number


def main(request_path, result_path, progress):
    """Runs one request and writes its result. `progress` is called with one event dict at a time.

    Returns the exit code: 0 converted, 1 refused, 128 + n stopped by signal n. On anything but 0 the output folder is
    left empty.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    out = None
    try:
        _remove_file(result_path)
        request = read_request(request_path)
        out = request.out
        _write_result(result_path, convert(request, progress))
        return 0
    except BaseException as error:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        if out is not None:
            _empty(out)
        _write_result(result_path, {"protocol": PROTOCOL, "ok": False, "error": _error_record(error)})
        return 128 + error.number if isinstance(error, Interrupted) else 1


def convert(request, progress):
    """Converts every bucket of a checked request; returns the result document. Raises ConvertError."""
    clock = _Clock()
    packages = check_environment(request.lock)
    check_native()
    clock.lap("environment")
    from .checkpoint import Checkpoint

    with Checkpoint(**request.checkpoint) as checkpoint:
        check_against(request, checkpoint.architecture)
        check_space(request.out, _needed_bytes(checkpoint, len(request.buckets)))
        clock.lap("checkpoint")
        progress({"event": "checkpoint_read", "tensors": len(checkpoint.shapes)})
        differences = _layout_check(checkpoint, request.layout_rows, progress)
        clock.lap("layout_check")
        buckets = _write_packages(checkpoint, request, packages["coremltools"], differences, progress)
        clock.lap("packages")
    return {
        "protocol": PROTOCOL,
        "ok": True,
        "python": platform.python_version(),
        "packages": packages,
        "threads": THREADS,
        "buckets": buckets,
        "seconds": clock.laps | {"total": clock.total()},
        "peak_rss_bytes": _peak_rss_bytes(),
    }


def _layout_check(checkpoint, rows, progress):
    from .evaluate import layout_differences

    differences = layout_differences(checkpoint, rows)
    if rows:
        progress({"event": "layout_checked", "lengths": sorted(rows)})
    return differences


def _write_packages(checkpoint, request, version, differences, progress):
    """Writes one package a bucket. The first bucket writes the shared weights; the others link them."""
    from . import package
    from .blobs import RopeWeights, SharedWeights
    from .emit_mil import emit_program

    shared, buckets = None, {}
    for length in request.buckets:
        clock = _Clock()
        name = f"L{length}.mlpackage"
        weights = package.create(os.path.join(request.out, name))
        if shared is None:
            shared = SharedWeights(os.path.join(weights, "weight.bin"), checkpoint)
        else:
            package.share_weights(shared.path, os.path.join(weights, shared.name))
        rope = RopeWeights(os.path.join(weights, "rope.bin"), length)
        program, histogram = emit_program(checkpoint.architecture, length, shared, rope, version)
        rope.file.close()
        package.finish(os.path.join(request.out, name), program, checkpoint.architecture, length, version)
        buckets[str(length)] = {
            "package": name,
            "layout_check_max_abs_logit_fp32": differences.get(length),
            "operations": dict(histogram),
            "seconds": clock.total(),
        }
        progress({"event": "bucket_done", "length": length})
    return buckets


def _needed_bytes(checkpoint, buckets):
    """Bytes the packages take at most: the FP16 weights once, model and tables for each bucket."""
    values = 0
    for shape in checkpoint.shapes.values():
        size = 1
        for count in shape:
            size *= count
        values += size
    return 2 * values + 128 * len(checkpoint.shapes) + buckets * MODEL_BYTES


def _error_record(error):
    if isinstance(error, ConvertError):
        return error.record()
    if isinstance(error, Interrupted):
        return ConvertError("INTERRUPTED", f"stopped by {error}", hint="convert again").record()
    traceback.print_exception(error, file=sys.stderr)
    if isinstance(error, OSError):
        return ConvertError(
            "WRITE_FAILED", f"a file operation failed: {error.strerror}", found=error.strerror,
            where=str(error.filename), hint="check the free space and rights of the output folder",
        ).record()  # fmt: skip
    if isinstance(error, MemoryError):
        return ConvertError("OUT_OF_MEMORY", "the conversion ran out of memory", hint="close other programs").record()
    return ConvertError(
        "INTERNAL", f"the converter failed: {type(error).__name__}", found=str(error)[:500],
        hint="report this with the log",
    ).record()  # fmt: skip


def _write_result(path, result):
    text = json.dumps(result, sort_keys=True, indent=1, allow_nan=False) + "\n"
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        with open(temporary, "x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.rename(temporary, path)
    except BaseException:
        _remove_file(temporary)
        raise


def _remove_file(path):
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def _empty(folder):
    for entry in os.listdir(folder):
        shutil.rmtree(os.path.join(folder, entry), ignore_errors=True)


def _interrupt(number, _frame):
    raise Interrupted(number)


def _peak_rss_bytes():
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


class _Clock:
    """Wall seconds since it was made, and between laps."""

    def __init__(self):
        self._start = self._last = time.perf_counter()
        self.laps = {}

    def lap(self, name):
        now = time.perf_counter()
        self.laps[name] = round(now - self._last, 4)
        self._last = now

    def total(self):
        return round(time.perf_counter() - self._start, 4)
