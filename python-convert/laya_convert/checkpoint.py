"""A checkpoint whose every tensor is known, shaped and finite."""

import numpy as np

from .architecture import read_architecture
from .errors import ConvertError
from .safetensors_file import DTYPES, SafetensorsFile

CHUNK_VALUES = 1 << 18
FP16_MAX = 65504.0
EMBEDDING = "encoder.embeddings.tok_embeddings.weight"
TYPE_EMBEDDING = "type_emb.weight"
# Read by the host in FP32; everything else becomes FP16 somewhere on its way to the graph.
FP32_ONLY = ("act_head.", "temperature")
HOST_ONLY = (EMBEDDING, TYPE_EMBEDDING, *FP32_ONLY)


def tensor_shapes(arch):
    """Name -> shape of exactly the tensors a checkpoint of this architecture holds."""
    d, wide = arch.hidden, arch.intermediate
    shapes = {EMBEDDING: (arch.vocab, d), "encoder.embeddings.norm.weight": (d,), "encoder.final_norm.weight": (d,)}
    for i in range(len(arch.layers)):
        layer = f"encoder.layers.{i}"
        if i > 0:
            shapes[f"{layer}.attn_norm.weight"] = (d,)
        shapes[f"{layer}.attn.Wqkv.weight"] = (3 * d, d)
        shapes[f"{layer}.attn.Wo.weight"] = (d, d)
        shapes[f"{layer}.mlp_norm.weight"] = (d,)
        shapes[f"{layer}.mlp.Wi.weight"] = (2 * wide, d)
        shapes[f"{layer}.mlp.Wo.weight"] = (d, wide)
    for j in range(arch.head_layers):
        layer = f"head.layers.{j}"
        shapes[f"{layer}.self_attn.in_proj_weight"] = (3 * d, d)
        shapes[f"{layer}.self_attn.in_proj_bias"] = (3 * d,)
        for name, shape in (("self_attn.out_proj", (d, d)), ("linear1", (4 * d, d)), ("linear2", (d, 4 * d))):
            _with_bias(shapes, f"{layer}.{name}", shape)
        for name in ("norm1", "norm2"):
            _with_bias(shapes, f"{layer}.{name}", (d,))
    shapes[TYPE_EMBEDDING] = (3, d)
    for name, shape in (("scorer.0", (d,)), ("scorer.1", (d, d)), ("scorer.3", (1, d))):
        _with_bias(shapes, name, shape)
    for name, shape in (("act_head.0", (256, d + 4)), ("act_head.2", (arch.actions, 256))):
        _with_bias(shapes, name, shape)
    shapes["temperature"] = (3,)
    return shapes


def _with_bias(shapes, name, shape):
    shapes[f"{name}.weight"] = shape
    shapes[f"{name}.bias"] = shape[:1]


class Checkpoint:
    """An open checkpoint. Use as a context manager; reads one tensor at a time."""

    def __init__(self, weights, encoder_config, agent_config):
        """Opens the three files (paths) and checks names, shapes and dtypes; the values are checked when read."""
        self.architecture = read_architecture(encoder_config, agent_config)
        self.shapes = tensor_shapes(self.architecture)
        self.path = weights
        self._file = SafetensorsFile(weights)
        try:
            self._check_names()
            for name, shape in self.shapes.items():
                self._check_tensor(name, shape)
        except BaseException:
            self._file.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._file.close()

    def fp32(self, name):
        """The tensor as FP32 in its own shape. Values are not checked."""
        return self._file.read(name).astype(np.float32, copy=False).reshape(self.shapes[name])

    def slice_fp32(self, name, first, count):
        """Rows first to first + count of a matrix as FP32, shape (count, width)."""
        rows = self._file.read(name, first, count).astype(np.float32, copy=False)
        return rows.reshape(count, self.shapes[name][1])

    def rows_fp32(self, name, rows):
        """The given rows (a sequence of int) of a matrix as FP32, shape (len(rows), width)."""
        unique = {row: self._file.read(name, row, 1) for row in sorted(set(rows))}
        return np.stack([unique[row] for row in rows]).astype(np.float32, copy=False)

    def fp16(self, name):
        """The tensor as a flat FP16 array. Raises WEIGHTS_NOT_FINITE or WEIGHTS_RANGE (beyond +-65504)."""
        result = np.empty(int(np.prod(self.shapes[name])), np.float16)
        for first, values in self._file.chunks(name, CHUNK_VALUES):
            part = result[first : first + len(values)]
            with np.errstate(over="ignore", invalid="ignore"):
                np.copyto(part, values, casting="same_kind")
            self._check_fp16(name, part, values)
        return result

    def check_values(self, name):
        """Checks a tensor that stays on the host: finite, and inside FP16 unless the host keeps it in FP32."""
        for _, values in self._file.chunks(name, CHUNK_VALUES):
            if name.startswith(FP32_ONLY):
                self._require_finite(name, values)
            else:
                with np.errstate(over="ignore", invalid="ignore"):
                    self._check_fp16(name, values.astype(np.float16, copy=False), values)

    def _check_fp16(self, name, half, values):
        """Refuses an FP16 chunk with infinities or NaN, told from the bits; `values` is what it was made from."""
        if (half.view(np.uint16) & 0x7FFF).max(initial=0) < 0x7C00:
            return
        self._require_finite(name, values)
        raise ConvertError(
            "WEIGHTS_RANGE", f"{name} does not fit in FP16", expected=f"values from -{FP16_MAX:g} to {FP16_MAX:g}",
            found=float(np.abs(values).max()), where=f"{self.path}: {name}",
            hint="an FP16 graph of these weights would answer NaN; rescale the checkpoint",
        )  # fmt: skip

    def _require_finite(self, name, values):
        if not np.isfinite(values).all():
            raise ConvertError(
                "WEIGHTS_NOT_FINITE", f"{name} holds NaN or infinity", expected="finite values",
                found=f"{int((~np.isfinite(values)).sum())} values that are not", where=f"{self.path}: {name}",
            )  # fmt: skip

    def _check_names(self):
        missing = sorted(set(self.shapes) - set(self._file.tensors))
        extra = sorted(set(self._file.tensors) - set(self.shapes))
        for code, names, problem in (
            ("WEIGHTS_MISSING", missing, "lacks tensors of its architecture"),
            ("WEIGHTS_EXTRA", extra, "has tensors its architecture does not use"),
        ):
            if names:
                raise ConvertError(
                    code, f"the weight file {problem}", expected=f"{len(self.shapes)} tensors",
                    found=[name[:200] for name in names[:10]], where=self.path,
                    hint="check that the config files belong to these weights",
                )  # fmt: skip

    def _check_tensor(self, name, shape):
        info = self._file.tensors[name]
        where = f"{self.path}: {name}"
        if info.dtype not in DTYPES:
            raise ConvertError(
                "WEIGHTS_DTYPE", f"{name} has a dtype that is not supported", expected=sorted(DTYPES),
                found=info.dtype, where=where,
            )  # fmt: skip
        if info.shape != shape:
            raise ConvertError(
                "WEIGHTS_SHAPE", f"{name} has another shape than its architecture says", expected=list(shape),
                found=list(info.shape), where=where,
            )  # fmt: skip
