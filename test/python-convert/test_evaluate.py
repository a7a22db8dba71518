"""The numpy graph against upstream's logits, and its parts."""

import json
import math

import numpy as np
from laya_convert.checkpoint import Checkpoint
from laya_convert.evaluate import erf, layout_differences
from support import PAD_ID, ROOT, FolderTest, golden_row, tiny_paths


class Layout(FolderTest):
    def test_equals_upstream_on_rows_of_every_length_and_type(self):
        goldens = json.loads((ROOT / "goldens" / "laya-tiny.json").read_text(encoding="utf-8"))
        rows = {}
        for case in goldens["cases"]:
            for item, logits in zip(case["items"], case["logits"], strict=True):
                key = (item["qtype"], len(item["ids"]) // 16)
                row = {name: item[name] for name in ("ids", "markers", "qtype")} | {"pad_id": PAD_ID, "logits": logits}
                rows.setdefault(key, row)
        self.assertGreater(len(rows), 20)
        with Checkpoint(**tiny_paths()) as checkpoint:
            for row in rows.values():
                length = next(length for length in (64, 96, 128, 256) if length >= len(row["ids"]))
                self.assertLess(layout_differences(checkpoint, {length: row})[length], 5e-5)

    def test_several_rows_at_once_give_what_each_gives_alone(self):
        rows = {length: golden_row(length) for length in (64, 96, 128)}
        with Checkpoint(**tiny_paths()) as checkpoint:
            together = layout_differences(checkpoint, rows)
            self.assertEqual(list(together), [64, 96, 128])
            self.assertEqual(layout_differences(checkpoint, {}), {})
            for length, row in rows.items():
                alone = layout_differences(checkpoint, {length: row})[length]
                self.assertAlmostEqual(alone, together[length], places=4)

    def test_refuses_a_difference_of_the_tolerance_and_numbers_that_overflow(self):
        row = golden_row(64)
        with Checkpoint(**tiny_paths()) as checkpoint:
            for wrong in (0.0011, 1e300):
                logits = [row["logits"][0] + wrong, *row["logits"][1:]]
                code = self.code_of(layout_differences, checkpoint, {64: row | {"logits": logits}})
                self.assertEqual(code, "LAYOUT_CHECK")

    def test_refuses_nan(self):
        # B05: a comparison with NaN must not read as passed.
        with Checkpoint(**tiny_paths()) as checkpoint:
            real = checkpoint.fp32
            checkpoint.fp32 = lambda name: real(name) * np.float32("nan") if name == "scorer.0.weight" else real(name)
            self.assertEqual(self.code_of(layout_differences, checkpoint, {64: golden_row(64)}), "LAYOUT_CHECK")


class Erf(FolderTest):
    def test_is_within_its_bound_everywhere(self):
        x = np.concatenate([np.linspace(-7, 7, 20_001), [0.0, -0.0, 1e-300, -1e300, np.inf]])
        expected = np.array([math.erf(value) for value in x])
        self.assertLess(np.abs(erf(x) - expected).max(), 4e-10)
