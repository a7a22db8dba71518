"""What goldens/laya-tiny.json must hold; needs none of the packages that recorded it."""

import hashlib
import json
import math
import sys
import unittest
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "python-convert" / "reference"))

import golden_file  # noqa: E402
from invalid_cases import invalid_requests  # noqa: E402

PATH = ROOT / "goldens" / "laya-tiny.json"
CHECKPOINT = ROOT / "models" / "laya-tiny"
BUCKETS = (64, 96, 128, 256)
MASK = 4


def margin(logits):
    """Difference of the two largest probabilities."""
    exps = [math.exp(z - max(logits)) for z in logits]
    top = sorted((e / sum(exps) for e in exps), reverse=True)
    return top[0] - top[1]


def numbers(value):
    """Every number inside a JSON value."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for element in value:
            yield from numbers(element)
    elif isinstance(value, int | float):
        yield value


class Goldens(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.goldens = json.loads(PATH.read_text(encoding="utf-8"))
        cls.rows = [
            (item, logits, case["name"])
            for case in cls.goldens["cases"]
            for item, logits in zip(case["items"], case["logits"], strict=True)
        ]

    def test_is_the_file_that_the_recorder_writes(self):
        self.assertEqual(golden_file.render(self.goldens), PATH.read_text(encoding="utf-8"))
        self.assertLess(PATH.stat().st_size, 2_000_000)

    def test_was_recorded_by_these_scripts_from_these_weights(self):
        self.assertEqual(self.goldens["recorded_by"], golden_file.recorder_sha256())
        weights = golden_file.sha256_file(CHECKPOINT / "model.safetensors")
        self.assertEqual(self.goldens["source_weights_sha256"], weights)

    def test_names_the_revision_of_the_shipped_files(self):
        files = [path for path in CHECKPOINT.rglob("*") if path.is_file() and path.name != "README.md"]
        names = sorted(path.relative_to(CHECKPOINT).as_posix() for path in files)
        lines = "".join(f"{golden_file.sha256_file(CHECKPOINT / name)}  {name}\n" for name in names)
        revision = hashlib.sha256(lines.encode()).hexdigest()[:40]
        self.assertEqual(self.goldens["revision"], revision)
        self.assertIn(revision, (CHECKPOINT / "README.md").read_text(encoding="utf-8"))

    def test_has_enough_decisive_rows(self):
        self.assertGreaterEqual(len(self.goldens["cases"]), 48)
        self.assertGreaterEqual(len(self.rows), 150)
        decisive = [logits for _, logits, _ in self.rows if len(logits) > 1 and margin(logits) >= 0.04]
        self.assertGreater(len(decisive), 0.8 * len(self.rows))

    def test_fills_every_bucket_exactly_one_below_and_one_above_for_every_type(self):
        seen = Counter((len(item["ids"]), item["qtype"]) for item, _, _ in self.rows)
        for bucket in BUCKETS:
            for qtype in range(3):
                lengths = (bucket - 1, bucket) if bucket == BUCKETS[-1] else (bucket - 1, bucket, bucket + 1)
                for length in lengths:
                    self.assertGreater(seen[length, qtype], 0, (length, qtype))

    def test_covers_one_to_thirty_two_options(self):
        counts = {len(item["markers"]) for item, _, _ in self.rows}
        self.assertLessEqual({1, 2, 3, 5, 6, 10, 11, 20, 32}, counts)
        self.assertEqual(max(counts), 32)

    def test_rows_agree_with_their_markers(self):
        for item, logits, name in self.rows:
            self.assertEqual(len(item["markers"]), len(logits), name)
            self.assertTrue(all(item["ids"][marker] == MASK for marker in item["markers"]), name)
            self.assertEqual(item["ids"].count(MASK), len(item["markers"]), name)

    def test_every_number_is_finite(self):
        for case in self.goldens["cases"]:
            outputs = [case["logits"], case["action_logits"], case["answers"], case["usage"]]
            self.assertTrue(all(math.isfinite(number) for number in numbers(outputs)), case["name"])
            self.assertEqual(len(case["action_logits"]), len(case["items"]), case["name"])

    def test_request_texts_read_as_the_recorded_request(self):
        texts = [case for case in self.goldens["cases"] if "request_text" in case]
        self.assertGreaterEqual(len(texts), 4)
        for case in texts:
            request = json.loads(case["request_text"])
            recorded = {"state": case["state"], "questions": case["questions"]}
            self.assertEqual(json.dumps(request["state"]), json.dumps(recorded["state"]), case["name"])
            self.assertEqual(json.dumps(request["questions"]), json.dumps(recorded["questions"]), case["name"])

    def test_records_every_refusal(self):
        max_len = json.loads((CHECKPOINT / "rl_agent_config.json").read_text())["max_len"]
        recorded = {entry["name"]: entry for entry in self.goldens["invalid"]}
        wanted = dict(invalid_requests(max_len))
        self.assertGreaterEqual(len(recorded), 30)
        self.assertEqual(list(recorded), list(wanted))
        for name, entry in recorded.items():
            self.assertEqual(entry["request"], wanted[name], name)
            self.assertIn(entry["error"], ("ValueError", "TypeError"), name)


if __name__ == "__main__":
    unittest.main()
