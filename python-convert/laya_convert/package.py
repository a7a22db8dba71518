"""The `.mlpackage` folder: the same model gives the same bytes, wherever and whenever it is written."""

import errno
import json
import os
import shutil

from . import native
from .graph import input_shapes, output_shapes

SPECIFICATION_VERSION = 9
MODEL_ITEM = "6c617961-0000-4000-8000-6d6f64656c00"
WEIGHTS_ITEM = "6c617961-0000-4000-8000-776569676874"
DATA = os.path.join("Data", "com.apple.CoreML")
# Filesystems without hard links; the package then holds a copy.
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK, errno.EXDEV, errno.ENOSYS}


def create(package):
    """Makes the empty folders of a package; returns the path of its weights folder."""
    weights = os.path.join(package, DATA, "weights")
    os.makedirs(weights)
    return weights


def share_weights(source, target):
    """Hard-links a finished weight file into another package, or copies it where links do not exist."""
    try:
        os.link(source, target)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        shutil.copyfile(source, target)


def finish(package, program, arch, length, version):
    """Writes the model specification and the item list of a package whose weights are in place."""
    specification = native.model.Model(specificationVersion=SPECIFICATION_VERSION)
    description = specification.description
    for shapes, features in (
        (input_shapes(arch, length), description.input),
        (output_shapes(arch), description.output),
    ):
        for name, shape in shapes.items():
            array = features.add(name=name).type.multiArrayType
            array.shape.extend(shape)
            array.dataType = native.features.ArrayFeatureType.FLOAT16
    description.metadata.userDefined["com.github.apple.coremltools.version"] = version
    description.metadata.userDefined["com.github.apple.coremltools.source"] = "milinternal"
    specification.mlProgram.CopyFrom(program)
    _write(os.path.join(package, DATA, "model.mlmodel"), specification.SerializeToString(deterministic=True))
    _write(os.path.join(package, "Manifest.json"), _manifest())


def _manifest():
    def item(description, name):
        return {
            "author": "com.apple.CoreML",
            "description": description,
            "name": name,
            "path": f"com.apple.CoreML/{name}",
        }

    manifest = {
        "fileFormatVersion": "1.0.0",
        "itemInfoEntries": {
            MODEL_ITEM: item("CoreML Model Specification", "model.mlmodel"),
            WEIGHTS_ITEM: item("CoreML Model Weights", "weights"),
        },
        "rootModelIdentifier": MODEL_ITEM,
    }
    return json.dumps(manifest, indent=4, sort_keys=True).encode() + b"\n"


def _write(path, data):
    with open(path, "xb") as file:
        file.write(data)
