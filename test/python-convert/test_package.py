"""Package files: weight records, sharing, fixed identifiers."""

import errno
import json
import os
from unittest import mock

import numpy as np
from coremltools.libmilstoragepython import _BlobStorageReader
from laya_convert import package
from laya_convert.blobs import BlobFile
from support import FolderTest, run_convert


class Blobs(FolderTest):
    def test_records_stand_where_the_writer_said(self):
        path = self.folder / "weight.bin"
        arrays = [np.arange(count, dtype=np.float16) for count in (100, 33, 1, 64)]
        file = BlobFile(str(path))
        offsets = [file.write(array) for array in arrays]
        file.close()
        reader, data = _BlobStorageReader(str(path)), path.read_bytes()
        for offset, array in zip(offsets, arrays, strict=True):
            self.assertEqual(offset % 64, 0)
            self.assertEqual(data[offset : offset + 4], (0xDEADBEEF).to_bytes(4, "little"))
            self.assertEqual(np.array(reader.read_fp16_data(offset), np.uint16).tobytes(), array.tobytes())

    def test_a_file_that_cannot_be_written_is_a_coded_error(self):
        self.assertEqual(self.code_of(lambda: BlobFile(str(self.folder / "no" / "a")).write(np.zeros(9, np.float16))),
                         "WRITE_FAILED")  # fmt: skip

    def test_a_file_cut_short_is_noticed(self):
        file = BlobFile(str(self.folder / "weight.bin"))
        file.write(np.zeros(1000, np.float16))
        os.truncate(file.path, 100)
        self.assertEqual(self.code_of(file.close), "WRITE_FAILED")


class Sharing(FolderTest):
    def test_copies_where_links_do_not_exist(self):
        source, target = self.folder / "a", self.folder / "b"
        source.write_bytes(b"weights")
        with mock.patch.object(os, "link", side_effect=OSError(errno.EPERM, "no links")):
            package.share_weights(str(source), str(target))
        self.assertEqual(target.read_bytes(), b"weights")
        self.assertNotEqual(source.stat().st_ino, target.stat().st_ino)

    def test_other_errors_are_not_taken_for_missing_links(self):
        (self.folder / "a").write_bytes(b"weights")
        with mock.patch.object(os, "link", side_effect=OSError(errno.ENOSPC, "full")):
            self.assertRaises(OSError, package.share_weights, str(self.folder / "a"), str(self.folder / "b"))
        self.assertEqual(os.listdir(self.folder), ["a"])


class Manifest(FolderTest):
    def test_identifiers_are_the_same_every_time_and_name_the_files(self):
        # B13
        _, _, _, out = run_convert(self.folder, buckets=[64, 96])
        texts = {(out / f"L{length}.mlpackage" / "Manifest.json").read_text() for length in (64, 96)}
        self.assertEqual(len(texts), 1)
        manifest = json.loads(texts.pop())
        entries = manifest["itemInfoEntries"]
        self.assertEqual(entries[manifest["rootModelIdentifier"]]["path"], "com.apple.CoreML/model.mlmodel")
        for entry in entries.values():
            self.assertTrue((out / "L64.mlpackage" / "Data" / entry["path"]).exists())
        model = (out / "L64.mlpackage" / "Data" / "com.apple.CoreML" / "model.mlmodel").read_bytes()
        self.assertNotIn(b"conversion_date", model)
