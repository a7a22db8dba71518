"""The body `bc1s-masked`, written once against the operations of an `ops` object.

Activations are (1, channels, 1, length). Inputs: embeddings (1,d,1,L), full_mask and local_mask (1,L,1,L; additive,
key before query), type_vectors (1,d,1,1), marker_map (1,L,1,32; one-hot). Outputs: logits (1,1,1,32), cls (1,d,1,1).

`ops` provides, over its own kind of value:
  input(name); conv(x, weight, bias=None) 1x1 with named tensors; normalise(x, eps) over channels, unscaled;
  scale_channels(x, name) and shift_channels(x, name) by a named tensor; split(x, parts) and concat(values) of
  channels; rope(kind) -> (cos, sin) tables; mul, add, sub; scale(x, number); swap_channels_and_length(x);
  scores(keys_swapped, queries); weighted(values, weights); softmax over channels; gelu (exact); relu;
  first_position(x); scope(name) context; output(name, x).
"""

from .architecture import HEAD_DIM, HEAD_NORM_EPS

INPUTS = ("embeddings", "full_mask", "local_mask", "type_vectors", "marker_map")
OUTPUTS = ("logits", "cls")
MAX_OPTIONS = 32


def input_shapes(arch, length):
    """Input name -> shape for a bucket of `length` tokens, in the order of the graph's signature."""
    d = arch.hidden
    shapes = (
        (1, d, 1, length),
        (1, length, 1, length),
        (1, length, 1, length),
        (1, d, 1, 1),
        (1, length, 1, MAX_OPTIONS),
    )
    return dict(zip(INPUTS, shapes, strict=True))


def output_shapes(arch):
    """Output name -> shape."""
    return dict(zip(OUTPUTS, ((1, 1, 1, MAX_OPTIONS), (1, arch.hidden, 1, 1)), strict=True))


def body(ops, arch):
    """Emits the whole graph through `ops`."""
    with ops.scope("embedding"):
        x = _norm(ops, ops.input("embeddings"), "encoder.embeddings.norm", arch.norm_eps)
    for index, kind in enumerate(arch.layers):
        with ops.scope(f"layer_{index}"):
            x = _encoder_layer(ops, arch, x, index, kind)
    with ops.scope("final"):
        x = ops.add(_norm(ops, x, "encoder.final_norm", arch.norm_eps), ops.input("type_vectors"))
    for index in range(arch.head_layers):
        with ops.scope(f"head_{index}"):
            x = _decision_layer(ops, arch, x, f"head.layers.{index}")
    with ops.scope("scorer"):
        markers = ops.weighted(x, ops.input("marker_map"))
        hidden = ops.conv(_norm(ops, markers, "scorer.0", HEAD_NORM_EPS, bias=True), "scorer.1.weight", "scorer.1.bias")
        ops.output("logits", ops.conv(ops.gelu(hidden), "scorer.3.weight", "scorer.3.bias"))
    ops.output("cls", ops.first_position(x))


def _norm(ops, x, name, eps, bias=False):
    x = ops.scale_channels(ops.normalise(x, eps), f"{name}.weight")
    return ops.shift_channels(x, f"{name}.bias") if bias else x


def _encoder_layer(ops, arch, x, index, kind):
    mask = ops.input("full_mask" if kind == "full_attention" else "local_mask")
    name = f"encoder.layers.{index}"
    inner = x if index == 0 else _norm(ops, x, f"{name}.attn_norm", arch.norm_eps)
    qkv = ops.conv(inner, f"{name}.attn.Wqkv.weight")
    x = ops.add(x, ops.conv(_attention(ops, qkv, arch.heads, mask, ops.rope(kind)), f"{name}.attn.Wo.weight"))
    inner = ops.conv(_norm(ops, x, f"{name}.mlp_norm", arch.norm_eps), f"{name}.mlp.Wi.weight")
    value, gate = ops.split(inner, 2)
    return ops.add(x, ops.conv(ops.mul(ops.gelu(value), gate), f"{name}.mlp.Wo.weight"))


def _decision_layer(ops, arch, x, name):
    attention = f"{name}.self_attn"
    inner = _norm(ops, x, f"{name}.norm1", HEAD_NORM_EPS, bias=True)
    qkv = ops.conv(inner, f"{attention}.in_proj_weight", f"{attention}.in_proj_bias")
    mixed = _attention(ops, qkv, arch.decision_heads, ops.input("full_mask"), None)
    x = ops.add(x, ops.conv(mixed, f"{attention}.out_proj.weight", f"{attention}.out_proj.bias"))
    inner = _norm(ops, x, f"{name}.norm2", HEAD_NORM_EPS, bias=True)
    inner = ops.relu(ops.conv(inner, f"{name}.linear1.weight", f"{name}.linear1.bias"))
    return ops.add(x, ops.conv(inner, f"{name}.linear2.weight", f"{name}.linear2.bias"))


def _attention(ops, qkv, heads, mask, rope):
    """Attention head by head; `qkv` stacks queries, keys and values, each head by head."""
    queries, keys, values = (ops.split(part, heads) for part in ops.split(qkv, 3))
    mixed = []
    for query, key, value in zip(queries, keys, values, strict=True):
        if rope is not None:
            query, key = _rotate(ops, query, rope), _rotate(ops, key, rope)
        scores = ops.scale(ops.scores(ops.swap_channels_and_length(key), query), HEAD_DIM**-0.5)
        mixed.append(ops.weighted(value, ops.softmax(ops.add(scores, mask))))
    return ops.concat(mixed)


def _rotate(ops, x, rope):
    cos, sin = rope
    left, right = ops.split(x, 2)
    turned = ops.sub(ops.mul(left, cos), ops.mul(right, sin))
    return ops.concat([turned, ops.add(ops.mul(right, cos), ops.mul(left, sin))])
