"""Tensors of a checkpoint: exactly the known names and shapes, FP16 or FP32, finite."""

import numpy as np
from laya_convert.architecture import read_architecture
from laya_convert.checkpoint import EMBEDDING, Checkpoint, tensor_shapes
from support import TINY, FolderTest, make_checkpoint, read_tensors, run_convert, tiny_paths


def replaced(name, change):
    """A change of one tensor: `change` maps its array to (dtype, array)."""

    def apply(tensors):
        tensors[name] = change(tensors[name][1].copy())

    return apply


def with_value(value, index):
    def change(array):
        array.reshape(-1)[index] = value
        return "F32", array

    return change


class Tensors(FolderTest):
    def code(self, tensors):
        paths = make_checkpoint(self.folder / "checkpoint", tensors=tensors)
        return self.code_of(lambda: Checkpoint(**paths))

    def test_knows_exactly_the_tensors_of_laya_tiny(self):
        arch = read_architecture(TINY / "encoder/config.json", TINY / "rl_agent_config.json")
        actual = {name: array.shape for name, (_, array) in read_tensors(TINY / "model.safetensors").items()}
        self.assertEqual(tensor_shapes(arch), actual)

    def test_refuses_a_missing_tensor(self):
        self.assertEqual(self.code(lambda tensors: tensors.pop("encoder.layers.2.attn_norm.weight")), "WEIGHTS_MISSING")

    def test_refuses_an_unknown_tensor(self):
        def add(tensors):
            tensors["encoder.layers.0.attn_norm.weight"] = ("F32", np.ones(128))

        self.assertEqual(self.code(add), "WEIGHTS_EXTRA")

    def test_refuses_a_transposed_matrix(self):
        change = replaced("encoder.layers.1.mlp.Wi.weight", lambda array: ("F32", array.T))
        self.assertEqual(self.code(change), "WEIGHTS_SHAPE")

    def test_refuses_a_scalar_bias(self):
        self.assertEqual(self.code(replaced("scorer.3.bias", lambda array: ("F32", array[0]))), "WEIGHTS_SHAPE")

    def test_refuses_other_dtypes(self):
        for number, dtype in enumerate(("F64", "BF16")):
            paths = make_checkpoint(
                self.folder / str(number), tensors=replaced("scorer.1.bias", lambda array, d=dtype: (d, array))
            )
            self.assertEqual(self.code_of(lambda paths=paths: Checkpoint(**paths)), "WEIGHTS_DTYPE")

    def test_reads_fp32_rows_and_slices_of_the_stored_numbers(self):
        stored = read_tensors(TINY / "model.safetensors")
        with Checkpoint(**tiny_paths()) as checkpoint:
            np.testing.assert_array_equal(
                checkpoint.rows_fp32(EMBEDDING, [7, 3, 7]), stored[EMBEDDING][1][[7, 3, 7]], strict=True
            )
            np.testing.assert_array_equal(
                checkpoint.slice_fp32("scorer.1.weight", 5, 9), stored["scorer.1.weight"][1][5:14], strict=True
            )
            np.testing.assert_array_equal(
                checkpoint.fp16("head.layers.0.linear1.weight"),
                stored["head.layers.0.linear1.weight"][1].astype(np.float16).reshape(-1), strict=True,
            )  # fmt: skip


class Values(FolderTest):
    def refused(self, number, name, value, code, index=5):
        folder = self.folder / str(number)
        folder.mkdir()
        paths = make_checkpoint(folder / "checkpoint", tensors=replaced(name, with_value(value, index)))
        exit_code, result, _, out = run_convert(folder, checkpoint=paths, buckets=[64, 96])
        self.assertEqual((exit_code, result["error"]["code"], list(out.iterdir())), (1, code, []))
        self.assertTrue(result["error"]["where"].endswith(name))

    def test_refuses_nan_and_infinity_in_every_kind_of_tensor(self):
        cases = [
            ("encoder.layers.3.attn.Wo.weight", np.nan),
            ("encoder.final_norm.weight", -np.inf),
            (EMBEDDING, np.inf),
            ("type_emb.weight", np.nan),
            ("act_head.0.weight", np.nan),
        ]
        for number, (name, value) in enumerate(cases):
            self.refused(number, name, value, "WEIGHTS_NOT_FINITE")
        self.refused("bias", "scorer.3.bias", np.nan, "WEIGHTS_NOT_FINITE", index=0)
        self.refused("last", EMBEDDING, np.nan, "WEIGHTS_NOT_FINITE", index=-1)

    def test_refuses_numbers_beyond_fp16_where_fp16_is_used(self):
        # B05
        self.refused(0, "encoder.layers.0.mlp.Wi.weight", 65520.0, "WEIGHTS_RANGE")
        self.refused(1, EMBEDDING, -1e6, "WEIGHTS_RANGE")

    def test_takes_the_largest_fp16_number_and_any_finite_number_in_the_action_head(self):
        folder = self.folder / "checkpoint"

        def change(tensors):
            replaced("scorer.1.bias", with_value(65504.0, 0))(tensors)
            replaced("act_head.2.bias", with_value(3e38, 0))(tensors)

        code, _, _, _ = run_convert(self.folder, checkpoint=make_checkpoint(folder, tensors=change))
        self.assertEqual(code, 0)

    def test_reports_weights_that_shrink_while_they_are_read(self):
        paths = make_checkpoint(self.folder / "checkpoint", tensors=lambda tensors: None)
        with Checkpoint(**paths) as checkpoint:
            with open(paths["weights"], "r+b") as file:
                file.truncate(100_000)
            self.assertEqual(self.code_of(checkpoint.fp16, "type_emb.weight"), "WEIGHTS_UNREADABLE")
