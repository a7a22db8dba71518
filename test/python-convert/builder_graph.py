"""The graph once more, by hand in coremltools' Builder: what the emitted program is compared with."""

import coremltools as ct
import numpy as np
from coremltools.converters.mil import Builder as mb
from coremltools.converters.mil.mil import types

HALF = np.float16
OPTIONS = 32


class BuilderGraph:
    """weights: name -> array; config: encoder/config.json; head_layers; length of the bucket."""

    def __init__(self, weights, config, head_layers, length):
        self.weights = weights
        self.config = config
        self.head_layers = head_layers
        self.length = length
        self.width = config["hidden_size"]
        self.heads = config["num_attention_heads"]

    def model(self):
        """The model that `ct.convert` makes of the graph without any pass."""
        d, length = self.width, self.length
        shapes = (
            (1, d, 1, length),
            (1, length, 1, length),
            (1, length, 1, length),
            (1, d, 1, 1),
            (1, length, 1, OPTIONS),
        )
        specs = [mb.TensorSpec(shape, types.fp16) for shape in shapes]

        @mb.program(input_specs=specs, opset_version=ct.target.iOS18)
        def program(embeddings, full_mask, local_mask, type_vectors, marker_map):
            return self.body(embeddings, full_mask, local_mask, type_vectors, marker_map)

        return ct.convert(
            program, source="milinternal", convert_to="mlprogram", minimum_deployment_target=ct.target.macOS15,
            compute_precision=ct.precision.FLOAT16, pass_pipeline=ct.PassPipeline.EMPTY, skip_model_load=True,
        )  # fmt: skip

    def body(self, embeddings, full_mask, local_mask, type_vectors, marker_map):
        x = self.norm(embeddings, "encoder.embeddings.norm")
        for i, kind in enumerate(self.config["layer_types"]):
            name = f"encoder.layers.{i}"
            full = kind == "full_attention"
            inner = x if i == 0 else self.norm(x, f"{name}.attn_norm")
            qkv = self.conv(inner, f"{name}.attn.Wqkv.weight")
            base = self.config["rope_parameters"][kind]["rope_theta"]
            mixed = self.attention(qkv, full_mask if full else local_mask, self.tables(base))
            x = mb.add(x=x, y=self.conv(mixed, f"{name}.attn.Wo.weight"))
            wide = self.conv(self.norm(x, f"{name}.mlp_norm"), f"{name}.mlp.Wi.weight")
            value, gate = self.split(wide, 2)
            gated = mb.mul(x=mb.gelu(x=value, mode="EXACT"), y=gate)
            x = mb.add(x=x, y=self.conv(gated, f"{name}.mlp.Wo.weight"))
        x = mb.add(x=self.norm(x, "encoder.final_norm"), y=type_vectors)
        for j in range(self.head_layers):
            name = f"head.layers.{j}"
            attention = f"{name}.self_attn"
            inner = self.norm(x, f"{name}.norm1", bias=True)
            qkv = self.conv(inner, f"{attention}.in_proj_weight", f"{attention}.in_proj_bias")
            mixed = self.attention(qkv, full_mask, None)
            x = mb.add(x=x, y=self.conv(mixed, f"{attention}.out_proj.weight", f"{attention}.out_proj.bias"))
            inner = self.norm(x, f"{name}.norm2", bias=True)
            inner = mb.relu(x=self.conv(inner, f"{name}.linear1.weight", f"{name}.linear1.bias"))
            x = mb.add(x=x, y=self.conv(inner, f"{name}.linear2.weight", f"{name}.linear2.bias"))
        markers = mb.einsum(values=[x, marker_map], equation="bchk,bkhq->bchq")
        hidden = self.conv(self.norm(markers, "scorer.0", bias=True), "scorer.1.weight", "scorer.1.bias")
        logits = self.conv(mb.gelu(x=hidden, mode="EXACT"), "scorer.3.weight", "scorer.3.bias")
        logits.name = "logits"
        cls = mb.slice_by_index(x=x, begin=[0, 0, 0, 0], end=[1, self.width, 1, 1], name="cls")
        return logits, cls

    def attention(self, qkv, mask, tables):
        mixed = []
        queries, keys, values = (self.split(part, self.heads) for part in self.split(qkv, 3))
        for query, key, value in zip(queries, keys, values, strict=True):
            if tables is not None:
                query, key = self.rotate(query, tables), self.rotate(key, tables)
            turned = mb.transpose(x=key, perm=[0, 3, 2, 1])
            scores = mb.einsum(values=[turned, query], equation="bkhc,bchq->bkhq")
            scores = mb.add(x=mb.mul(x=scores, y=HALF(0.125)), y=mask)
            weights = mb.softmax(x=scores, axis=1)
            mixed.append(mb.einsum(values=[value, weights], equation="bchk,bkhq->bchq"))
        return mb.concat(values=mixed, axis=1) if len(mixed) > 1 else mixed[0]

    def rotate(self, x, tables):
        cos, sin = tables
        left, right = self.split(x, 2)
        first = mb.sub(x=mb.mul(x=left, y=cos), y=mb.mul(x=right, y=sin))
        return mb.concat(values=[first, mb.add(x=mb.mul(x=right, y=cos), y=mb.mul(x=left, y=sin))], axis=1)

    def tables(self, base):
        inverse = 1.0 / np.power(np.float32(base), np.arange(0, 64, 2, dtype=np.float32) / np.float32(64))
        angles = np.outer(inverse, np.arange(self.length, dtype=np.float32))[None, :, None, :]
        return np.cos(angles.astype(np.float64)).astype(HALF), np.sin(angles.astype(np.float64)).astype(HALF)

    def norm(self, x, name, bias=False):
        out = mb.layer_norm(x=x, axes=[1], epsilon=HALF(1e-5))
        out = mb.mul(x=out, y=self.half(f"{name}.weight", (1, -1, 1, 1)))
        return mb.add(x=out, y=self.half(f"{name}.bias", (1, -1, 1, 1))) if bias else out

    def conv(self, x, weight, bias=None):
        matrix = self.half(weight, self.weights[weight].shape + (1, 1))
        more = {} if bias is None else {"bias": self.half(bias, (-1,))}
        return mb.conv(x=x, weight=matrix, pad_type="valid", **more)

    def split(self, x, parts):
        if parts == 1:
            return [x]
        return mb.split(x=x, split_sizes=[x.shape[1] // parts] * parts, axis=1)

    def half(self, name, shape):
        return self.weights[name].astype(HALF).reshape(shape)
