"""Weight files of a package: FP16 tensors, each written once and found again by name."""

import os

import numpy as np

from .errors import ConvertError
from .host import rope_tables
from .native import BlobStorageWriter

HEADER_BYTES = RECORD_BYTES = ALIGNMENT = 64


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
    """`weight.bin`: the checkpoint's tensors in the order of their first use, the same for every bucket."""

    def __init__(self, path, checkpoint):
        self.file = BlobFile(path)
        self._checkpoint = checkpoint
        self._offsets = {}
        self._immediate = set()

    def offset(self, tensor):
        """The offset of the tensor's record; reads, checks and writes the tensor the first time."""
        if tensor not in self._offsets:
            self._offsets[tensor] = self.file.write(self._checkpoint.fp16(tensor))
        return self._offsets[tensor]

    def immediate(self, tensor):
        """The bytes of a tensor too small for the file."""
        self._immediate.add(tensor)
        return self._checkpoint.fp16(tensor).tobytes()

    def shape(self, tensor):
        """The tensor's shape in the checkpoint."""
        return self._checkpoint.shapes[tensor]

    @property
    def tensors(self):
        """Names of the tensors used so far."""
        return set(self._offsets) | self._immediate


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
