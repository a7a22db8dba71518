"""The graph in numpy FP32, weights read one at a time: the check that the graph computes the reference's numbers.

A value is a tuple with one array per row, so that each weight is read once for all rows.
"""

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np

from .environment import THREADS
from .errors import ConvertError
from .graph import body
from .host import features, rope_tables

LAYOUT_TOLERANCE = 1e-3
_ERF_LIMIT = 5.0
_BLOCK = 1 << 14
# erf(x) = x P(x^2)/Q(x^2) for |x| <= 5, fitted to 3.2e-10 absolute; all coefficients are positive, so nothing cancels.
_ERF_P = (
    1.128379163728, 0.2765510399014, 0.07115903982421, 0.008795895377661, 0.0008074345337431, 5.273565691571e-05,
    1.370655902731e-06, 3.395750550354e-09,
)  # fmt: skip
_ERF_Q = (
    1.0, 0.5784202567186, 0.1558700960596, 0.02571866135064, 0.002844681929812, 0.0002131596112768,
    1.039252536001e-05, 1.038333055811e-07,
)  # fmt: skip


def layout_differences(checkpoint, rows):
    """Length -> max |logit difference| between the FP32 graph and the row's reference logits.

    `rows` maps each length to a row (see request.py). Raises ConvertError LAYOUT_CHECK when a difference is not
    below 1e-3, NaN included.
    """
    lengths = sorted(rows)
    if not lengths:
        return {}
    inputs = [(features(checkpoint, rows[length], length), length) for length in lengths]
    with ThreadPoolExecutor(THREADS) as pool:
        ops = NumpyOps(checkpoint, inputs, pool)
        body(ops, checkpoint.architecture)
    differences = {}
    for length, logits in zip(lengths, ops.outputs["logits"], strict=True):
        expected = np.array(rows[length]["logits"], np.float64)
        difference = float(np.abs(logits[0, 0, 0, : len(expected)] - expected).max())
        if not difference < LAYOUT_TOLERANCE:
            raise ConvertError(
                "LAYOUT_CHECK", f"the graph of L{length} does not compute the reference's logits",
                expected=f"max |dlogit| below {LAYOUT_TOLERANCE:g}",
                found=difference if np.isfinite(difference) else str(difference), where=f"layout_rows.{length}",
                hint="the checkpoint's configs and weights, or the golden row, do not belong together",
            )  # fmt: skip
        differences[length] = difference
    return differences


def erf(x):
    """The error function of an FP64 array, within 4e-10."""
    x = np.clip(x, -_ERF_LIMIT, _ERF_LIMIT)
    square = x * x
    return x * _polynomial(_ERF_P, square) / _polynomial(_ERF_Q, square)


def _polynomial(coefficients, x):
    result = np.full_like(x, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        result *= x
        result += coefficient
    return result


def _gelu(x):
    """Block by block, so that the FP64 temporaries stay in the cache."""
    flat = np.ascontiguousarray(x).reshape(-1)
    result = np.empty_like(flat)
    for first in range(0, len(flat), _BLOCK):
        block = flat[first : first + _BLOCK].astype(np.float64)
        result[first : first + _BLOCK] = 0.5 * block * (1.0 + erf(block * 0.5**0.5))
    return result.reshape(x.shape)


def _each(function):
    """Lifts a function of arrays to an operation on values."""

    def operation(_, *values):
        return tuple(function(*arrays) for arrays in zip(*values, strict=True))

    return operation


def _matmul(left, right):
    return (left[0, :, 0, :] @ right[0, :, 0, :])[None, :, None, :]


def _softmax(x):
    weights = np.exp(x - x.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def _normalise(x, eps):
    centred = x - x.mean(axis=1, keepdims=True)
    return centred / np.sqrt(np.square(centred).mean(axis=1, keepdims=True) + np.float32(eps))


class NumpyOps:
    """The operations of graph.py over tuples of FP32 arrays. `outputs` holds the graph's outputs afterwards."""

    def __init__(self, checkpoint, rows, pool):
        """rows: list of (input name -> array, length). pool: the threads that share each convolution."""
        self._checkpoint = checkpoint
        self._inputs = rows
        self._pool = pool
        self.outputs = {}

    @contextmanager
    def scope(self, _name):
        yield

    def input(self, name):
        return tuple(inputs[name] for inputs, _ in self._inputs)

    def output(self, name, x):
        self.outputs[name] = x

    def conv(self, x, weight, bias=None):
        joined = np.concatenate([array[0, :, 0, :] for array in x], axis=1)
        out = np.empty((self._checkpoint.shapes[weight][0], joined.shape[1]), np.float32)
        step = -(-len(out) // THREADS)
        list(self._pool.map(lambda first: self._rows(out, weight, joined, first, step), range(0, len(out), step)))
        if bias is not None:
            out += self._checkpoint.fp32(bias)[:, None]
        ends = np.cumsum([array.shape[3] for array in x])
        return tuple(part[None, :, None, :] for part in np.split(out, ends[:-1], axis=1))

    def _rows(self, out, weight, x, first, count):
        """Computes output channels `first` to `first + count` of weight @ x."""
        rows = min(count, len(out) - first)
        np.matmul(self._checkpoint.slice_fp32(weight, first, rows), x, out=out[first : first + rows])

    def normalise(self, x, eps):
        return tuple(_normalise(array, eps) for array in x)

    def scale_channels(self, x, name):
        weight = self._checkpoint.fp32(name)[None, :, None, None]
        return tuple(array * weight for array in x)

    def shift_channels(self, x, name):
        bias = self._checkpoint.fp32(name)[None, :, None, None]
        return tuple(array + bias for array in x)

    def split(self, x, parts):
        return list(zip(*(np.split(array, parts, axis=1) for array in x), strict=True))

    def concat(self, values):
        return tuple(np.concatenate(arrays, axis=1) for arrays in zip(*values, strict=True))

    def rope(self, kind):
        tables = [rope_tables(self._checkpoint.architecture.rope_bases[kind], length) for _, length in self._inputs]
        return tuple(tuple(table.astype(np.float32) for table in half) for half in zip(*tables, strict=True))

    def scale(self, x, number):
        return tuple(array * np.float32(number) for array in x)

    mul = _each(np.multiply)
    add = _each(np.add)
    sub = _each(np.subtract)
    swap_channels_and_length = _each(lambda x: x.transpose(0, 3, 2, 1))
    scores = _each(_matmul)
    weighted = _each(_matmul)
    softmax = _each(_softmax)
    gelu = _each(_gelu)
    relu = _each(lambda x: np.maximum(x, 0))
    first_position = _each(lambda x: x[:, :, :, :1])
