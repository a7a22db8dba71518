"""The emitted programs as coremltools reads them: types, structure, constants and numbers."""

import json

import coremltools as ct
import numpy as np
from builder_graph import BuilderGraph
from coremltools.converters.mil.frontend.milproto.load import load as load_milproto
from laya_convert.architecture import read_architecture
from laya_convert.checkpoint import Checkpoint, tensor_shapes
from laya_convert.host import features
from mil_interpreter import run
from support import TINY, FolderTest, golden_row, make_checkpoint, read_tensors, run_convert, tiny_paths

LENGTHS = [64, 96, 128, 256]
FLOAT16 = ct.proto.FeatureTypes_pb2.ArrayFeatureType.FLOAT16


def load(specification, weights_folder):
    """The pymil function of a specification; the loader infers every type again and compares."""
    return load_milproto(specification, specification.specificationVersion, str(weights_folder)).functions["main"]


def structure(function):
    """What a function computes, without names: operations in order, inputs as constants or positions of producers."""
    places = {var: ("input", name) for name, var in function.inputs.items()}

    def of(var):
        if isinstance(var, (list, tuple)):
            return tuple(of(item) for item in var)
        if var in places:
            return places[var]
        value = np.asarray(var.val)
        return ("const", str(value.dtype), value.shape, value.tobytes() if value.dtype.kind != "U" else str(value))

    lines = []
    for operation in function.operations:
        if operation.op_type == "const":
            continue
        inputs = {name: of(var) for name, var in operation.inputs.items() if var is not None}
        outputs = [(var.dtype, tuple(var.shape)) for var in operation.outputs]
        places |= {var: ("operation", len(lines), index) for index, var in enumerate(operation.outputs)}
        lines.append((operation.op_type, inputs, outputs))
    return lines, [(var.name, places[var]) for var in function.outputs]


def interface(specification):
    """Inputs and outputs of a specification: name, shape, data type."""
    description = specification.description
    return [
        (feature.name, tuple(feature.type.multiArrayType.shape), feature.type.multiArrayType.dataType)
        for feature in [*description.input, *description.output]
    ]


def builder(folder, length):
    """The Builder's graph for a checkpoint folder."""
    weights = {name: array for name, (_, array) in read_tensors(folder / "model.safetensors").items()}
    config, agent = (
        json.loads((folder / name).read_text()) for name in ("encoder/config.json", "rl_agent_config.json")
    )
    return BuilderGraph(weights, config, agent["head_layers"], length)


def random_checkpoint(folder, heads, layers, head_layers):
    """A checkpoint of another shape than laya-tiny's, FP16, both layer kinds in turn."""
    width, rng = 64 * heads, np.random.default_rng(heads)

    def encoder(config):
        kinds = ["full_attention", "sliding_attention"] * layers
        shape = {"hidden_size": width, "num_attention_heads": heads, "intermediate_size": 80, "vocab_size": 50}
        config.update(shape, num_hidden_layers=layers, layer_types=kinds[:layers])

    def agent(config):
        config.update(head_layers=head_layers, act_costs={"a": 1, "b": 2})

    def tensors(every):
        every.clear()
        arch = read_architecture(folder / "encoder/config.json", folder / "rl_agent_config.json")
        every.update({name: ("F16", rng.standard_normal(shape) / 8) for name, shape in tensor_shapes(arch).items()})

    return make_checkpoint(folder, tensors=tensors, encoder=encoder, agent=agent)


class Programs(FolderTest):
    def packages(self, **changes):
        code, _, _, out = run_convert(self.folder, buckets=LENGTHS, **changes)
        self.assertEqual(code, 0)
        models = {}
        for length in LENGTHS:
            package = out / f"L{length}.mlpackage"
            specification = ct.utils.load_spec(str(package))
            models[length] = specification, load(specification, package / "Data/com.apple.CoreML/weights")
        return models

    def assert_same_model(self, specification, function, model):
        """The emitted model and the one coremltools made: the same in everything but the names inside."""
        expected = model.get_spec()
        self.assertEqual(structure(function), structure(load(expected, model.weights_dir)))
        self.assertEqual(interface(specification), interface(expected))
        self.assertEqual(specification.specificationVersion, expected.specificationVersion)
        self.assertEqual(specification.mlProgram.version, expected.mlProgram.version)
        self.assertEqual(specification.mlProgram.attributes, expected.mlProgram.attributes)
        ours, theirs = (spec.mlProgram.functions["main"] for spec in (specification, expected))
        self.assertEqual(ours.opset, theirs.opset)
        self.assertEqual(list(ours.inputs), list(theirs.inputs))

    def test_equal_the_program_coremltools_makes_of_the_same_graph(self):
        for length, (specification, function) in self.packages().items():
            self.assert_same_model(specification, function, builder(TINY, length).model())

    def test_equal_it_for_other_shapes_too(self):
        for number, (heads, layers, head_layers) in enumerate([(1, 1, 1), (3, 5, 3)]):
            folder = self.folder / str(number)
            paths = random_checkpoint(folder / "checkpoint", heads, layers, head_layers)
            code, result, _, out = run_convert(folder, buckets=[40], checkpoint=paths)
            self.assertEqual(code, 0, result)
            package = out / "L40.mlpackage"
            specification = ct.utils.load_spec(str(package))
            function = load(specification, package / "Data/com.apple.CoreML/weights")
            self.assert_same_model(specification, function, builder(folder / "checkpoint", 40).model())

    def test_serialise_each_operation_as_coremltools_does(self):
        expected = builder(TINY, 64).model().get_spec()
        specification, _ = self.packages()[64]

        def shape_of_messages(spec):
            """For each operation type: which fields, arguments and kinds of value it is written with."""
            seen = {}
            for operation in spec.mlProgram.functions["main"].block_specializations["CoreML8"].operations:
                value = operation.attributes["val"] if "val" in operation.attributes else None
                kind = None if value is None else (
                    value.WhichOneof("value"), value.type.tensorType.dataType, value.type.tensorType.rank,
                    value.immediateValue.tensor.WhichOneof("value"),
                )  # fmt: skip
                inputs = {
                    key: {a.WhichOneof("binding") for a in arg.arguments} for key, arg in operation.inputs.items()
                }
                types = {(o.type.WhichOneof("type"), o.type.tensorType.dataType) for o in operation.outputs}
                record = (sorted(inputs.items()), sorted(operation.attributes), kind, sorted(types))
                seen.setdefault(operation.type, set()).add(repr(record))
            return seen

        self.assertEqual(shape_of_messages(specification), shape_of_messages(expected))

    def test_name_everything_once(self):
        for _, (specification, _) in self.packages().items():
            function = specification.mlProgram.functions["main"]
            operations = function.block_specializations["CoreML8"].operations
            names = [value.name for value in function.inputs]
            names += [value.name for operation in operations for value in operation.outputs]
            self.assertEqual(len(names), len(set(names)))
            for name in names:
                self.assertRegex(name, r"^[A-Za-z_][A-Za-z0-9_]*$")

    def test_compute_the_reference_logits_from_their_own_weight_files(self):
        with Checkpoint(**tiny_paths()) as checkpoint:
            for length, (_, function) in self.packages().items():
                row = golden_row(length)
                outputs = run(function, features(checkpoint, row, length))
                logits = outputs["logits"][0, 0, 0, : len(row["logits"])]
                self.assertLess(np.abs(logits - np.array(row["logits"])).max(), 0.02)
                self.assertEqual(outputs["cls"].shape, (1, 128, 1, 1))

    def test_share_one_pair_of_tables_between_layers_of_the_same_base(self):
        def same_bases(config):
            config["rope_parameters"]["sliding_attention"]["rope_theta"] = 160000.0

        checkpoint = make_checkpoint(self.folder / "checkpoint", encoder=same_bases)
        for length, (specification, _) in self.packages(checkpoint=checkpoint).items():
            operations = specification.mlProgram.functions["main"].block_specializations["CoreML8"].operations
            files = [operation.attributes["val"].blobFileValue.fileName for operation in operations]
            self.assertEqual(files.count("@model_path/weights/rope.bin"), 2)
            tables = self.folder / "out" / f"L{length}.mlpackage/Data/com.apple.CoreML/weights/rope.bin"
            self.assertEqual(tables.stat().st_size, 64 + 2 * (64 + 32 * length * 2))
