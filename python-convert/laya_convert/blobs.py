"""Weight files of a package: FP16 tensors, each written once and found again by name."""

import os
from collections import deque
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from .checkpoint import HOST_ONLY
from .errors import ConvertError
from .host import rope_tables
from .native import BlobStorageWriter

HEADER_BYTES = RECORD_BYTES = ALIGNMENT = 64
# coremltools writes tensors of fewer values into the model itself.
IMMEDIATE_BELOW = 10
WORKERS = 2
AHEAD = 3


class BlobFile:
    """A weight file being written. `name` is its name in the package's `weights` folder."""

    def __init__(self, path):
        self.name = os.path.basename(path)
        self.path = path
        self._writer = self._guard(BlobStorageWriter, path)
        self._end = HEADER_BYTES

    def write(self, values):
        """Appends a flat FP16 array; returns the offset of its record."""
        offset = self._guard(self._writer.write_fp16_data, np.ascontiguousarray(values).view(np.uint16))
        start = -(-self._end // ALIGNMENT) * ALIGNMENT
        if offset != start:
            raise self._failed(f"a record at {start}", f"a record at {offset}")
        self._end = start + RECORD_BYTES + values.nbytes
        return offset

    def close(self):
        """Flushes the file and checks that every byte arrived. Raises WRITE_FAILED."""
        self._writer = None
        size = os.stat(self.path).st_size
        if size < self._end:
            raise self._failed(f"at least {self._end} bytes", f"{size} bytes")

    def _guard(self, call, argument):
        try:
            return call(argument)
        except (RuntimeError, OSError) as error:
            raise self._failed("a written weight file", str(error)) from error

    def _failed(self, expected, found):
        return ConvertError(
            "WRITE_FAILED", "the weight file could not be written", expected=expected, found=found, where=self.path,
            hint="check the free space of the output folder",
        )  # fmt: skip


class SharedWeights:
    """`weight.bin`: the graph's tensors in the order of the checkpoint's own list, the same for every bucket."""

    def __init__(self, path, checkpoint):
        """Writes every tensor. Two threads read, convert and check ahead while this one writes."""
        self.name = os.path.basename(path)
        self.path = path
        self._shapes = checkpoint.shapes
        self._offsets, self._immediate = {}, {}
        names = [name for name in checkpoint.shapes if not name.startswith(HOST_ONLY)]
        host = [name for name in checkpoint.shapes if name.startswith(HOST_ONLY)]
        file = BlobFile(path)
        with ThreadPoolExecutor(WORKERS) as pool:
            try:
                checks = [pool.submit(checkpoint.check_values, name) for name in host]
                for name, values in zip(names, _ahead(pool, checkpoint.fp16, names), strict=True):
                    self._place(file, name, values)
                for check in checks:
                    check.result()
            finally:
                pool.shutdown(cancel_futures=True)
        file.close()

    def offset(self, tensor):
        """The offset of the tensor's record, or None when it is immediate."""
        return self._offsets.get(tensor)

    def immediate(self, tensor):
        """The bytes of a tensor too small for the file."""
        return self._immediate[tensor]

    def shape(self, tensor):
        """The tensor's shape in the checkpoint."""
        return self._shapes[tensor]

    def _place(self, file, name, values):
        if len(values) < IMMEDIATE_BELOW:
            self._immediate[name] = values.tobytes()
        else:
            self._offsets[name] = file.write(values)


def _ahead(pool, function, names):
    """Yields function(name) in order, keeping a few results in the making."""
    pending = deque()
    for name in names:
        pending.append(pool.submit(function, name))
        if len(pending) > AHEAD:
            yield pending.popleft().result()
    while pending:
        yield pending.popleft().result()


class RopeWeights:
    """`rope.bin`: the rotary tables of one length, one pair for each base."""

    def __init__(self, path, length):
        self.file = BlobFile(path)
        self._length = length
        self._offsets = {}

    def offsets(self, base):
        """(cos, sin) record offsets for a base; each table is (1, 32, 1, length) FP16."""
        if base not in self._offsets:
            tables = rope_tables(base, self._length)
            self._offsets[base] = tuple(self.file.write(table.astype(np.float16).reshape(-1)) for table in tables)
        return self._offsets[base]
