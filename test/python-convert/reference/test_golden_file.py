"""The goldens file writer: deterministic, whole, and safe from editors."""

import hashlib
import json
import sys
import tempfile
import unittest
from pathlib import Path

REFERENCE = Path(__file__).resolve().parents[3] / "python-convert" / "reference"
sys.path.insert(0, str(REFERENCE))

import golden_file  # noqa: E402


class Dumps(unittest.TestCase):
    def test_every_character_reads_back(self):
        text = "".join(map(chr, [*range(0xD800), *range(0xE000, 0x11000)])) + "\U0001f600\U000e0041\U0010ffff"
        self.assertEqual(json.loads(golden_file.dumps(text)), text)

    def test_escapes_what_an_editor_may_break_a_line_at_or_normalise(self):
        for char in "\u2028\u2029\u0085\u00a0\ufeff\u200d\u0301\U000e0041\x7f":
            self.assertTrue(golden_file.dumps(char).isascii(), hex(ord(char)))

    def test_keeps_letters_readable(self):
        self.assertEqual(golden_file.dumps({"é": "包裹 😀"}), '{"é":"包裹 😀"}')

    def test_refuses_numbers_that_are_not_finite(self):
        for number in (float("nan"), float("inf"), -float("inf")):
            with self.assertRaises(ValueError):
                golden_file.dumps({"logits": [number]})


class Write(unittest.TestCase):
    def test_has_one_list_element_a_line(self):
        text = golden_file.render({"format": "x", "cases": [{"a": 1}, {"b": "\u2028"}], "invalid": []})
        self.assertEqual(len(text.splitlines()), 8)
        self.assertEqual(json.loads(text)["cases"][1], {"b": "\u2028"})

    def test_leaves_the_old_file_when_the_new_one_can_not_be_written(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "deep" / "g.json"
            golden_file.write(path, {"cases": [1]})
            before = path.read_bytes()
            with self.assertRaises(ValueError):
                golden_file.write(path, {"cases": [float("nan")]})
            self.assertEqual(path.read_bytes(), before)
            self.assertEqual([entry.name for entry in path.parent.iterdir()], ["g.json"])


class Recorder(unittest.TestCase):
    def test_hash_covers_every_module_that_decides_the_cases(self):
        lines = ""
        for name in sorted(golden_file.RECORDER_MODULES):
            lines += f"{hashlib.sha256((REFERENCE / name).read_bytes()).hexdigest()}  {name}\n"
        self.assertEqual(golden_file.recorder_sha256(), hashlib.sha256(lines.encode()).hexdigest())
        others = {path.name for path in REFERENCE.glob("*.py")} - set(golden_file.RECORDER_MODULES)
        self.assertEqual({name for name in others if not name.startswith(("tiny_", "train_"))}, set())


if __name__ == "__main__":
    unittest.main()
