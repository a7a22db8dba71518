"""Runs a loaded MIL program in numpy FP32, from its own constants: a second reading of what was emitted."""

import math

import numpy as np

_erf = np.vectorize(math.erf, otypes=[np.float64])


def run(function, inputs):
    """Output name -> FP32 array of a pymil function for `inputs` (name -> array)."""
    values = {function.inputs[name]: array.astype(np.float32) for name, array in inputs.items()}

    def of(var):
        if isinstance(var, (list, tuple)):
            return [of(item) for item in var]
        value = values[var] if var in values else var.val
        return value.astype(np.float32) if getattr(value, "dtype", None) == np.float16 else value

    for operation in function.operations:
        if operation.op_type == "const":
            continue
        given = {name: of(var) for name, var in operation.inputs.items() if var is not None}
        result = _OPERATIONS[operation.op_type](**given)
        results = result if isinstance(result, list) else [result]
        for var, value in zip(operation.outputs, results, strict=True):
            assert tuple(var.shape) == value.shape, f"{var.name}: declared {var.shape}, computed {value.shape}"
            values[var] = value
    return {var.name: values[var] for var in function.outputs}


def _conv(x, weight, strides, pad_type, pad, dilations, groups, bias=None):
    assert (list(strides), pad_type, list(pad), list(dilations), groups) == ([1, 1], "valid", [0] * 4, [1, 1], 1)
    out = np.einsum("oi,bihl->bohl", weight[:, :, 0, 0], x, optimize=True)
    return out if bias is None else out + bias[None, :, None, None]


def _layer_norm(x, axes, epsilon):
    axes = tuple(axes)
    centred = x - x.mean(axis=axes, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=axes, keepdims=True) + epsilon)


def _softmax(x, axis):
    weights = np.exp(x - x.max(axis=axis, keepdims=True))
    return weights / weights.sum(axis=axis, keepdims=True)


def _gelu(x, mode):
    assert mode == "EXACT"
    return (0.5 * x * (1 + _erf(x.astype(np.float64) / math.sqrt(2)))).astype(np.float32)


def _slice(x, begin, end):
    return x[tuple(slice(first, last) for first, last in zip(begin, end, strict=True))]


def _concat(values, axis, interleave):
    assert not interleave
    return np.concatenate(values, axis=axis)


_OPERATIONS = {
    "add": lambda x, y: x + y,
    "concat": _concat,
    "conv": _conv,
    "einsum": lambda values, equation: np.einsum(equation, *values, optimize=True),
    "gelu": _gelu,
    "layer_norm": _layer_norm,
    "mul": lambda x, y: x * y,
    "relu": lambda x: np.maximum(x, 0),
    "slice_by_index": _slice,
    "softmax": _softmax,
    "split": lambda x, split_sizes, axis: np.split(x, np.cumsum(split_sizes)[:-1], axis=axis),
    "sub": lambda x, y: x - y,
    "transpose": lambda x, perm: x.transpose(perm),
}
