"""Hostile safetensors files: every malformed header is refused before a tensor is read."""

import json
import os

import numpy as np
from laya_convert.safetensors_file import SafetensorsFile
from support import FolderTest, write_tensors


def entry(first, last, dtype="F32", shape=None):
    return {"dtype": dtype, "shape": [(last - first) // 4] if shape is None else shape, "data_offsets": [first, last]}


class Headers(FolderTest):
    def write(self, header, data=b"", length=None):
        text = header if isinstance(header, bytes) else json.dumps(header).encode()
        path = self.folder / "model.safetensors"
        path.write_bytes((len(text) if length is None else length).to_bytes(8, "little") + text + data)
        return str(path)

    def refused(self, header, data=b"", length=None):
        path = self.write(header, data, length)
        self.assertEqual(self.code_of(SafetensorsFile, path), "WEIGHTS_HEADER", header)

    def test_reads_tensors_in_any_order_with_padding_and_metadata(self):
        header = {
            "__metadata__": {"format": "pt"},
            "b": entry(8, 16),
            "a": entry(0, 8),
            "c": entry(16, 16, shape=[0, 3]),
        }
        data = np.arange(4, dtype="<f4").tobytes()
        with SafetensorsFile(self.write(json.dumps(header).encode() + b"   ", data)) as file:
            self.assertEqual(file.read("a").tolist(), [0, 1])
            self.assertEqual(file.read("b").tolist(), [2, 3])
            self.assertEqual(file.read("c").tolist(), [])

    def test_reads_rows_and_chunks(self):
        path = self.folder / "rows"
        write_tensors(path, {"a": ("F16", np.arange(12).reshape(4, 3)), "b": ("F32", np.arange(7))})
        with SafetensorsFile(str(path)) as file:
            self.assertEqual(file.read("a", 2, 1).tolist(), [6, 7, 8])
            self.assertEqual([(first, part.tolist()) for first, part in file.chunks("b", 3)],
                             [(0, [0, 1, 2]), (3, [3, 4, 5]), (6, [6])])  # fmt: skip

    def test_refuses_impossible_header_lengths(self):
        for length in (0, 1, 3, 1 << 40, (1 << 64) - 1):
            self.refused({}, length=length)
        (self.folder / "short").write_bytes(b"\x02\0\0\0\0\0\0\0{")
        self.assertEqual(self.code_of(SafetensorsFile, str(self.folder / "short")), "WEIGHTS_HEADER")

    def test_refuses_headers_that_are_not_strict_json(self):
        for text in (b"[]", b"{}}", b" {}", b"{'a':1}", b"\xff\xfe{}", b'{"a":' + b"[" * 50_000, b'{"a":NaN}', b"{\0}",
                     b'{"a":' + b"9" * 10_000 + b"}"):  # fmt: skip
            self.refused(text)

    def test_refuses_duplicate_names(self):
        part = json.dumps(entry(0, 4)).encode()
        self.refused(b'{"a":' + part + b',"a":' + part + b"}", b"\0" * 4)

    def test_refuses_malformed_entries(self):
        good = entry(0, 4)
        for change in (
            {"dtype": "F33"}, {"dtype": 7}, {"dtype": None}, {"shape": [-1]}, {"shape": [True]}, {"shape": [1.0]},
            {"shape": "1"}, {"shape": [1] * 9}, {"shape": [2]}, {"shape": [1 << 60]}, {"data_offsets": [0]},
            {"data_offsets": [4, 0]}, {"data_offsets": [-4, 0]}, {"data_offsets": [0, 4.0]}, {"data_offsets": "04"},
            {"more": 1},
        ):  # fmt: skip
            self.refused({"a": good | change}, b"\0" * 4)
        self.refused({"a": []}, b"\0" * 4)
        self.refused({"a": {"dtype": "F32", "shape": [1]}}, b"\0" * 4)

    def test_refuses_gaps_overlaps_and_bytes_nobody_owns(self):
        self.refused({"a": entry(0, 4), "b": entry(8, 12)}, b"\0" * 12)
        self.refused({"a": entry(0, 8), "b": entry(4, 12)}, b"\0" * 12)
        self.refused({"a": entry(0, 4), "b": entry(0, 4)}, b"\0" * 4)
        self.refused({"a": entry(4, 8)}, b"\0" * 8)
        self.refused({"a": entry(0, 4)}, b"\0" * 5)
        self.refused({"a": entry(0, 8)}, b"\0" * 7)
        self.refused({}, b"\0")

    def test_refuses_metadata_that_is_not_strings(self):
        self.refused({"__metadata__": {"a": 1}})
        self.refused({"__metadata__": "a"})

    def test_refuses_what_is_not_a_regular_file(self):
        os.mkfifo(self.folder / "fifo")
        for path in (self.folder, self.folder / "absent", self.folder / "fifo"):
            self.assertEqual(self.code_of(SafetensorsFile, str(path)), "WEIGHTS_UNREADABLE")
