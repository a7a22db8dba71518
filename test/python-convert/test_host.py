"""Host features of a row, on cases small enough to write out."""

import numpy as np
from laya_convert.checkpoint import EMBEDDING, TYPE_EMBEDDING, Checkpoint
from laya_convert.host import MASKED, features, masks, rope_tables
from support import PAD_ID, TINY, FolderTest, read_tensors, tiny_paths


class Host(FolderTest):
    def test_masks_hide_padding_and_what_is_outside_the_window(self):
        full, local = masks(np.array([True, True, True, False]), window=1)
        hidden = MASKED
        # rows are keys, columns are queries; the last query is padding and sees every valid key
        self.assertEqual(full[0, :, 0, :].tolist(), [[0] * 4, [0] * 4, [0] * 4, [hidden] * 4])
        self.assertEqual(local[0, :, 0, :].tolist(), [[0, 0, hidden, 0], [0, 0, 0, 0], [hidden, 0, 0, 0], [hidden] * 4])

    def test_masks_stay_inside_fp16_and_leave_every_query_a_key(self):
        # B05: no constant may turn into minus infinity, no softmax row may be empty.
        for valid in (1, 5, 64):
            for mask in masks(np.arange(64) < valid, window=2):
                self.assertTrue(np.isfinite(mask.astype(np.float16)).all())
                self.assertTrue((mask.max(axis=1) == 0).all())

    def test_features_of_a_short_row(self):
        stored = {name: array for name, (_, array) in read_tensors(TINY / "model.safetensors").items()}
        row = {"ids": [1, 9, 2], "markers": [2, 1], "qtype": 2, "pad_id": PAD_ID, "logits": [0, 0]}
        with Checkpoint(**tiny_paths()) as checkpoint:
            inputs = features(checkpoint, row, 8)
        self.assertEqual(inputs["embeddings"].shape, (1, 128, 1, 8))
        np.testing.assert_array_equal(inputs["embeddings"][0, :, 0, :].T, stored[EMBEDDING][[1, 9, 2] + [PAD_ID] * 5])
        np.testing.assert_array_equal(inputs["type_vectors"][0, :, 0, 0], stored[TYPE_EMBEDDING][2])
        self.assertEqual(np.argwhere(inputs["marker_map"][0, :, 0, :]).tolist(), [[1, 1], [2, 0]])
        self.assertEqual((inputs["full_mask"][0, :, 0, 0] == 0).sum(), 3)

    def test_rotary_tables_turn_by_position_times_frequency(self):
        cos, sin = rope_tables(10000.0, 128)
        self.assertEqual(cos.shape, (1, 32, 1, 128))
        np.testing.assert_allclose(cos**2 + sin**2, 1, atol=1e-12)
        self.assertEqual((cos[0, 0, 0, 0], sin[0, 5, 0, 0]), (1.0, 0.0))
        self.assertAlmostEqual(sin[0, 16, 0, 100], np.sin(100 * 10000.0**-0.5), places=6)
        np.testing.assert_array_equal(rope_tables(10000.0, 64)[1], sin[..., :64])
