"""A reader for untrusted safetensors files that never holds more than one tensor."""

import os
import stat

import numpy as np

from . import strict_json
from .errors import ConvertError

DTYPES = {"F16": np.dtype("<f2"), "F32": np.dtype("<f4")}
ITEM_BYTES = {
    "BOOL": 1, "U8": 1, "I8": 1, "F8_E5M2": 1, "F8_E4M3": 1, "I16": 2, "U16": 2, "F16": 2, "BF16": 2,
    "I32": 4, "U32": 4, "F32": 4, "I64": 8, "U64": 8, "F64": 8,
}  # fmt: skip
MAX_HEADER_BYTES = 100_000_000
MAX_RANK = 8


class TensorInfo:
    """One header entry: dtype name, shape (tuple of int), byte range in the file."""

    __slots__ = ("dtype", "shape", "start", "bytes")

    def __init__(self, dtype, shape, start, size):
        self.dtype = dtype
        self.shape = shape
        self.start = start
        self.bytes = size


class SafetensorsFile:
    """An open file. `tensors` maps each name to its TensorInfo; every byte of the file belongs to one tensor."""

    def __init__(self, path):
        """Opens and checks the header. Raises ConvertError WEIGHTS_UNREADABLE or WEIGHTS_HEADER."""
        self.path = path
        try:
            self._fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        except OSError as error:
            raise self._unreadable(error.strerror) from error
        try:
            self.tensors = self._read_header()
        except BaseException:
            self.close()
            raise

    def close(self):
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def read(self, name, first_row=0, rows=None):
        """The tensor as a new flat array in its stored dtype, or `rows` of its first axis from `first_row` on."""
        info = self.tensors[name]
        start, size = info.start, info.bytes
        if rows is not None:
            row_bytes = info.bytes // info.shape[0]
            start, size = start + first_row * row_bytes, rows * row_bytes
        array = np.empty(size // DTYPES[info.dtype].itemsize, DTYPES[info.dtype])
        self._fill(memoryview(array).cast("B"), start)
        return array

    def chunks(self, name, count):
        """Yields (index of the first value, values) over the flat tensor, `count` values at a time.

        The array is reused: it is valid until the next step. Safe to run in several threads.
        """
        info = self.tensors[name]
        kind = DTYPES[info.dtype]
        total = info.bytes // kind.itemsize
        buffer = np.empty(min(count, total), kind)
        for first in range(0, total, count):
            values = buffer[: min(count, total - first)]
            self._fill(memoryview(values).cast("B"), info.start + first * kind.itemsize)
            yield first, values

    def _fill(self, view, offset):
        """Fills `view` from the file; a short file is an error, since the header promised the bytes."""
        done = 0
        while done < len(view):
            try:
                count = os.preadv(self._fd, [view[done:]], offset + done)
            except OSError as error:
                raise self._unreadable(error.strerror) from error
            if count == 0:
                raise self._unreadable("ends early")
            done += count

    def _read_header(self):
        status = os.fstat(self._fd)
        if not stat.S_ISREG(status.st_mode):
            raise self._unreadable("not a regular file")
        if status.st_size < 10:
            raise self._bad("is too short for a header", "at least 10 bytes", status.st_size)
        prefix = bytearray(8)
        self._fill(memoryview(prefix), 0)
        length = int.from_bytes(prefix, "little")
        if not 2 <= length <= min(MAX_HEADER_BYTES, status.st_size - 8):
            limit = f"2 to {min(MAX_HEADER_BYTES, status.st_size - 8)} bytes"
            raise self._bad("names an impossible header length", limit, length)
        text = bytearray(length)
        self._fill(memoryview(text), 8)
        if text[:1] != b"{":
            raise self._bad("has a header that is not an object", "{", repr(bytes(text[:1])))
        try:
            header = strict_json.parse(text)
        except strict_json.NotStrictJson as error:
            raise self._bad(f"has an invalid header: {error}", "a JSON object with unique keys", str(error)) from error
        metadata = header.pop("__metadata__", {})
        if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
            raise self._bad("has invalid metadata", "an object of strings", "something else", "__metadata__")
        tensors = {name: self._entry(name, entry, 8 + length) for name, entry in header.items()}
        self._check_cover(tensors, 8 + length, status.st_size)
        return tensors

    def _entry(self, name, entry, base):
        if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
            found = sorted(entry) if isinstance(entry, dict) else type(entry).__name__
            raise self._bad("has an invalid entry", ["data_offsets", "dtype", "shape"], found, name)
        dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
        if not isinstance(dtype, str) or dtype not in ITEM_BYTES:
            raise self._bad("has an unknown dtype", sorted(ITEM_BYTES), str(dtype)[:40], name)
        if not isinstance(shape, list) or len(shape) > MAX_RANK or not all(_is_size(n) for n in shape):
            raise self._bad("has an invalid shape", f"at most {MAX_RANK} sizes", str(shape)[:80], name)
        if not isinstance(offsets, list) or len(offsets) != 2 or not all(_is_size(n) for n in offsets):
            raise self._bad("has invalid offsets", "two offsets", str(offsets)[:80], name)
        size = ITEM_BYTES[dtype]
        for count in shape:
            size *= count
        if offsets[1] - offsets[0] != size:
            raise self._bad("has a byte range of another size than its shape", size, offsets[1] - offsets[0], name)
        return TensorInfo(dtype, tuple(shape), base + offsets[0], size)

    def _check_cover(self, tensors, base, file_size):
        """The tensors must follow each other from the header to the end, without gaps or overlaps."""
        end = base
        for name, info in sorted(tensors.items(), key=lambda item: (item[1].start, item[1].bytes)):
            if info.start != end:
                kind = "overlaps the tensor before it" if info.start < end else "leaves a gap before it"
                raise self._bad(f"has a tensor that {kind}", end - base, info.start - base, name)
            end += info.bytes
        if end != file_size:
            raise self._bad("is not as long as its tensors", end, file_size)

    def _bad(self, problem, expected, found, name=None):
        where = self.path if name is None else f"{self.path}: {name[:200]}"
        return ConvertError("WEIGHTS_HEADER", f"the weight file {problem}", expected=expected, found=found, where=where)

    def _unreadable(self, reason):
        return ConvertError(
            "WEIGHTS_UNREADABLE", f"the weight file cannot be read: {reason}", expected="a readable safetensors file",
            found=reason, where=self.path,
        )  # fmt: skip


def _is_size(value):
    return strict_json.is_int(value, 0, 1 << 48)
