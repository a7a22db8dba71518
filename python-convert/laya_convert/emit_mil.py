"""Emits the graph as a MIL program, each operation as coremltools serialises it for iOS 18 / macOS 15."""

from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from . import native
from .architecture import HEAD_DIM
from .graph import body, input_shapes
from .mil_messages import BOOL, FP16, INT32, STRING, build_info, immediate, tensor_type

OPSET = "CoreML8"
SCORES = "bkhc,bchq->bkhq"
WEIGHTED = "bchk,bkhq->bchq"


@dataclass(frozen=True)
class Value:
    """An SSA value of the program: its name and shape. `operation` is the message that defines it."""

    name: str
    shape: tuple
    operation: object = None


def emit_program(arch, length, weights, rope, version):
    """Returns (Program message, Counter of operation types) for one bucket.

    weights: SharedWeights, rope: RopeWeights of that length; version: of coremltools, for the build information.
    """
    program = native.mil.Program(version=1)
    ops = MilOps(program.functions["main"], arch, length, weights, rope)
    body(ops, arch)
    ops.consume_unused_inputs()
    build_info(program.attributes["buildInfo"], version)
    return program, ops.histogram


class MilOps:
    """The operations of graph.py, appended to a MIL function. `histogram` counts what was emitted, by type."""

    def __init__(self, function, arch, length, weights, rope):
        self._arch = arch
        self._weights = weights
        self._rope = rope
        self._length = length
        self._inputs, self._used = {}, set()
        for name, shape in input_shapes(arch, length).items():
            entry = function.inputs.add(name=name)
            tensor_type(entry.type, FP16, shape)
            self._inputs[name] = Value(name, shape)
        function.opset = OPSET
        self._block = function.block_specializations[OPSET]
        self._scope = []
        self._taken = Counter()
        self._constants = {}
        self.histogram = Counter()

    @contextmanager
    def scope(self, name):
        self._scope.append(name)
        yield
        self._scope.pop()

    def input(self, name):
        self._used.add(name)
        return self._inputs[name]

    def consume_unused_inputs(self):
        """Core ML wants every input read: a model without sliding layers still takes a local mask."""
        for name, value in self._inputs.items():
            if name not in self._used:
                self._operation("identity", {"x": name}, value.shape)

    def output(self, name, x):
        x.operation.outputs[0].name = name
        immediate(x.operation.attributes["name"], STRING, (), [name])
        self._block.outputs.append(name)

    def conv(self, x, weight, bias=None):
        out, inner = self._weights.shape(weight)
        inputs = {
            "x": x.name,
            "weight": self._tensor(weight, (out, inner, 1, 1)),
            "strides": self._ints("strides", [1, 1]),
            "pad_type": self._constant("pad_type_valid", STRING, (), ["valid"]),
            "pad": self._ints("pad", [0, 0, 0, 0]),
            "dilations": self._ints("dilations", [1, 1]),
            "groups": self._int("groups", 1),
        }
        if bias is not None:
            inputs["bias"] = self._tensor(bias, (out,))
        return self._operation("conv", inputs, (1, out) + x.shape[2:])

    def normalise(self, x, eps):
        inputs = {"x": x.name, "axes": self._ints("axes", [1]), "epsilon": self._half("epsilon", eps)}
        return self._operation("layer_norm", inputs, x.shape)

    def scale_channels(self, x, name):
        return self._binary("mul", x, self._tensor(name, (1, x.shape[1], 1, 1)), x.shape)

    def shift_channels(self, x, name):
        return self._binary("add", x, self._tensor(name, (1, x.shape[1], 1, 1)), x.shape)

    def split(self, x, parts):
        if parts == 1:
            return [x]
        width = x.shape[1] // parts
        inputs = {"x": x.name, "split_sizes": self._ints("split_sizes", [width] * parts), "axis": self._channel_axis()}
        return self._operations("split", inputs, [(1, width) + x.shape[2:]] * parts)

    def concat(self, values):
        if len(values) == 1:
            return values[0]
        inputs = {
            "values": [value.name for value in values],
            "axis": self._channel_axis(),
            "interleave": self._constant("interleave", BOOL, (), [False]),
        }
        return self._operation("concat", inputs, (1, sum(v.shape[1] for v in values)) + values[0].shape[2:])

    def rope(self, kind):
        base = self._arch.rope_bases[kind]
        shape = (1, HEAD_DIM // 2, 1, self._length)
        pair = zip(("cos", "sin"), self._rope.offsets(base), strict=True)
        return tuple(
            Value(self._blob(("rope", base, part), f"rope_{kind}_{part}", self._rope.file.name, offset, shape), shape)
            for part, offset in pair
        )

    def mul(self, x, y):
        return self._binary("mul", x, y.name, x.shape)

    def add(self, x, y):
        return self._binary("add", x, y.name, x.shape)

    def sub(self, x, y):
        return self._binary("sub", x, y.name, x.shape)

    def scale(self, x, number):
        return self._binary("mul", x, self._half("scale", number), x.shape)

    def swap_channels_and_length(self, x):
        one, channels, height, length = x.shape
        inputs = {"x": x.name, "perm": self._ints("perm", [0, 3, 2, 1])}
        return self._operation("transpose", inputs, (one, length, height, channels))

    def scores(self, keys, queries):
        return self._einsum(SCORES, keys, queries, (1, keys.shape[1], 1, queries.shape[3]))

    def weighted(self, values, weights):
        return self._einsum(WEIGHTED, values, weights, (1, values.shape[1], 1, weights.shape[3]))

    def softmax(self, x):
        return self._operation("softmax", {"x": x.name, "axis": self._channel_axis()}, x.shape)

    def gelu(self, x):
        mode = self._constant("gelu_mode_exact", STRING, (), ["EXACT"])
        return self._operation("gelu", {"x": x.name, "mode": mode}, x.shape)

    def relu(self, x):
        return self._operation("relu", {"x": x.name}, x.shape)

    def first_position(self, x):
        end = [1, x.shape[1], 1, 1]
        inputs = {"x": x.name, "begin": self._ints("begin", [0, 0, 0, 0]), "end": self._ints("end", end)}
        return self._operation("slice_by_index", inputs, tuple(end))

    def _binary(self, kind, x, other, shape):
        return self._operation(kind, {"x": x.name, "y": other}, shape)

    def _einsum(self, equation, left, right, shape):
        label = "equation_scores" if equation == SCORES else "equation_weighted"
        inputs = {
            "values": [left.name, right.name],
            "equation": self._constant(label, STRING, (), [equation]),
        }
        return self._operation("einsum", inputs, shape)

    def _operation(self, kind, inputs, shape):
        return self._operations(kind, inputs, [shape])[0]

    def _operations(self, kind, inputs, shapes):
        """Appends one operation with an output for each shape and returns the outputs."""
        name = self._fresh("_".join([*self._scope, kind]))
        operation = self._block.operations.add(type=kind)
        for key, bound in inputs.items():
            arguments = operation.inputs[key].arguments
            for argument in bound if isinstance(bound, list) else [bound]:
                arguments.add(name=argument)
        values = []
        for index, shape in enumerate(shapes):
            value = Value(name if len(shapes) == 1 else f"{name}_{index}", shape, operation)
            tensor_type(operation.outputs.add(name=value.name).type, FP16, shape)
            values.append(value)
        immediate(operation.attributes["name"], STRING, (), [name])
        self.histogram[kind] += 1
        return values

    def _fresh(self, stem):
        """A name nobody has, numbered within its stem."""
        self._taken[stem] += 1
        return f"{stem}_{self._taken[stem] - 1}"

    def _channel_axis(self):
        return self._int("axis", 1)

    def _int(self, label, value):
        return self._constant(f"{label}_{value}", INT32, (), [value])

    def _ints(self, label, values):
        return self._constant("_".join([label, *map(str, values)]), INT32, (len(values),), values)

    def _half(self, label, number):
        half = np.float16(number)
        return self._constant(f"{label}_{half.view(np.uint16):04x}", FP16, (), half.tobytes())

    def _constant(self, name, dtype, shape, values):
        """The name of a constant with an immediate value, which all its users share."""
        if name not in self._constants:
            immediate(self._new_constant(name, name, dtype, shape), dtype, shape, values)
        return self._constants[name]

    def _tensor(self, tensor, shape):
        """The name of the constant for a checkpoint tensor. Tiny ones are immediate, as coremltools writes them."""
        name, offset = tensor.replace(".", "_"), self._weights.offset(tensor)
        if offset is None:
            return self._constant(name, FP16, shape, self._weights.immediate(tensor))
        return self._blob(tensor, name, self._weights.name, offset, shape)

    def _blob(self, key, name, file, offset, shape):
        if key not in self._constants:
            value = self._new_constant(key, name, FP16, shape)
            tensor_type(value.type, FP16, shape)
            value.blobFileValue.fileName = f"@model_path/weights/{file}"
            value.blobFileValue.offset = offset
        return self._constants[key]

    def _new_constant(self, key, name, dtype, shape):
        """Appends a const operation and returns its value message, still empty."""
        self._constants[key] = name
        operation = self._block.operations.add(type="const")
        tensor_type(operation.outputs.add(name=name).type, dtype, shape)
        immediate(operation.attributes["name"], STRING, (), [name])
        self.histogram["const"] += 1
        return operation.attributes["val"]
