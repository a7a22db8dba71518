"""The benchmark's random checkpoints are checkpoints: same bytes every time, accepted by the converter."""

import json
import subprocess
import sys

from support import ROOT, TINY, FolderTest, checkpoint_paths, run_convert, tree


class Random(FolderTest):
    def make(self, name, *options):
        command = [sys.executable, "-I", str(ROOT / "bench" / "make_checkpoint.py"), str(self.folder / name), *options]
        done = subprocess.run(command, capture_output=True, check=True)
        return json.loads(done.stdout)

    def test_same_arguments_give_the_same_bytes(self):
        options = ("--size", "small", "--dtype", "F16", "--tokenizer", str(TINY / "tokenizer"))
        record = self.make("a", *options)
        self.make("b", *options)
        self.make("c", *options, "--seed", "2")
        one, two, other = (tree(self.folder / name) for name in "abc")
        self.assertEqual(one, two)
        self.assertEqual([path for path in one if one[path] != other[path]], ["model.safetensors"])
        self.assertEqual(record["bytes"], (self.folder / "a" / "model.safetensors").stat().st_size)

    def test_converts(self):
        for dtype in ("F16", "F32"):
            self.make(dtype, "--size", "small", "--dtype", dtype)
            folder = self.folder / f"run-{dtype}"
            code, result, _, _ = run_convert(
                folder, checkpoint=checkpoint_paths(self.folder / dtype), buckets=[128, 256]
            )
            self.assertEqual(code, 0, result)
