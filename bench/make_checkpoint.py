"""Writes a random checkpoint in the Laya layout, by default of ModernBERT-large's size (421 million parameters).

Usage: python -I make_checkpoint.py FOLDER [--size large|base|small] [--dtype F16|F32] [--seed N] [--tokenizer FOLDER]

FOLDER must not exist. The weights are written tensor by tensor, so memory holds one at a time. The same arguments
and numpy version give the same bytes. Prints one JSON object: parameters, bytes, seconds.
Needs numpy only.
"""

import argparse
import json
import os
import shutil
import sys
import time

import numpy as np

SIZES = {
    "large": {"hidden": 1024, "layers": 28, "intermediate": 2624, "vocab": 50368, "local_base": 10000.0},
    "base": {"hidden": 768, "layers": 22, "intermediate": 1152, "vocab": 256000, "local_base": 160000.0},
    "small": {"hidden": 256, "layers": 6, "intermediate": 384, "vocab": 3072, "local_base": 10000.0},
}
HEAD_LAYERS = 2
ACT_COSTS = {"escalate": 0.5}
GLOBAL_EVERY = 3


def tensor_shapes(size):
    """Name -> shape, in the order of the file."""
    d, wide = size["hidden"], size["intermediate"]
    shapes = {"encoder.embeddings.tok_embeddings.weight": (size["vocab"], d), "encoder.embeddings.norm.weight": (d,)}
    for i in range(size["layers"]):
        name = f"encoder.layers.{i}"
        if i > 0:
            shapes[f"{name}.attn_norm.weight"] = (d,)
        shapes[f"{name}.attn.Wqkv.weight"] = (3 * d, d)
        shapes[f"{name}.attn.Wo.weight"] = (d, d)
        shapes[f"{name}.mlp_norm.weight"] = (d,)
        shapes[f"{name}.mlp.Wi.weight"] = (2 * wide, d)
        shapes[f"{name}.mlp.Wo.weight"] = (d, wide)
    shapes["encoder.final_norm.weight"] = (d,)
    linear = {"type_emb.weight": (3, d)}
    for j in range(HEAD_LAYERS):
        name = f"head.layers.{j}"
        linear[f"{name}.self_attn.in_proj_weight"] = (3 * d, d)
        linear[f"{name}.self_attn.out_proj.weight"] = (d, d)
        linear[f"{name}.linear1.weight"] = (4 * d, d)
        linear[f"{name}.linear2.weight"] = (d, 4 * d)
        linear[f"{name}.norm1.weight"] = linear[f"{name}.norm2.weight"] = (d,)
    linear |= {"scorer.0.weight": (d,), "scorer.1.weight": (d, d), "scorer.3.weight": (1, d)}
    linear |= {"act_head.0.weight": (256, d + 4), "act_head.2.weight": (len(ACT_COSTS) + 1, 256)}
    for name, shape in linear.items():
        shapes[name] = shape
        if name != "type_emb.weight":
            shapes[name.removesuffix("weight") + "bias"] = shape[:1]
    shapes["temperature"] = (3,)
    return shapes


def values(name, shape, rng):
    """FP32 values that keep activations near 1: norm weights near 1, matrices with variance 1 / fan-in."""
    if name == "temperature":
        return np.ones(shape, np.float32)
    noise = rng.standard_normal(shape, np.float32)
    if len(shape) == 2:
        return noise / np.float32(shape[1] ** 0.5) if "emb" not in name else noise
    return 1 + noise / 10 if name.endswith("weight") else noise / 10


def write_weights(path, shapes, dtype, seed):
    """Streams the safetensors file; returns (parameters, bytes)."""
    kind = np.dtype("<f2" if dtype == "F16" else "<f4")
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for name, shape in shapes.items():
        size = int(np.prod(shape)) * kind.itemsize
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    rng = np.random.default_rng(seed)
    with open(path, "xb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name, shape in shapes.items():
            file.write(values(name, shape, rng).astype(kind).data)
    return offset // kind.itemsize, os.stat(path).st_size


def encoder_config(size):
    kinds = ["sliding_attention" if i % GLOBAL_EVERY else "full_attention" for i in range(size["layers"])]
    bases = {"full_attention": 160000.0, "sliding_attention": size["local_base"]}
    return {
        "architectures": ["ModernBertModel"],
        "attention_bias": False,
        "global_attn_every_n_layers": GLOBAL_EVERY,
        "hidden_activation": "gelu",
        "hidden_size": size["hidden"],
        "intermediate_size": size["intermediate"],
        "layer_types": kinds,
        "local_attention": 128,
        "max_position_embeddings": 8192,
        "mlp_bias": False,
        "model_type": "modernbert",
        "norm_bias": False,
        "norm_eps": 1e-5,
        "num_attention_heads": size["hidden"] // 64,
        "num_hidden_layers": size["layers"],
        "pad_token_id": 3,
        "rope_parameters": {kind: {"rope_theta": base, "rope_type": "default"} for kind, base in bases.items()},
        "vocab_size": size["vocab"],
    }


def agent_config():
    return {
        "encoder": "random",
        "head_layers": HEAD_LAYERS,
        "max_len": 512,
        "head_max_len": 192,
        "act_costs": ACT_COSTS,
        "temperature": [1.0, 1.0, 1.0],
        "temperature_by_options": {},
    }


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("folder")
    parser.add_argument("--size", choices=sorted(SIZES), default="large")
    parser.add_argument("--dtype", choices=("F16", "F32"), default="F32")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tokenizer", help="a folder to copy as `tokenizer`")
    options = parser.parse_args(argv)
    started, size = time.perf_counter(), SIZES[options.size]
    os.makedirs(os.path.join(options.folder, "encoder"))
    for path, config in (("encoder/config.json", encoder_config(size)), ("rl_agent_config.json", agent_config())):
        with open(os.path.join(options.folder, path), "x", encoding="utf-8") as file:
            json.dump(config, file, indent=2)
    if options.tokenizer:
        shutil.copytree(options.tokenizer, os.path.join(options.folder, "tokenizer"))
    weights = os.path.join(options.folder, "model.safetensors")
    parameters, written = write_weights(weights, tensor_shapes(size), options.dtype, options.seed)
    seconds = round(time.perf_counter() - started, 3)
    print(json.dumps({"parameters": parameters, "bytes": written, "seconds": seconds}))


if __name__ == "__main__":
    main(sys.argv[1:])
