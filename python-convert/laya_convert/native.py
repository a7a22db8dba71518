"""The parts of coremltools that conversion uses: the model schema and the weight file writer.

Importing the coremltools package itself loads every converter it has, which takes seconds and prints warnings off
macOS. These parts stand alone, so they are imported under the package's name without running its `__init__`.
"""

import importlib.util
import os
import sys
import types

from .errors import ConvertError


def _load():
    # Our own threads share the large products; BLAS threads that spin for each other stall on a busy machine.
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    if "coremltools" not in sys.modules:
        spec = importlib.util.find_spec("coremltools")
        if spec is None or not spec.submodule_search_locations:
            raise ImportError("coremltools is not installed")
        package = types.ModuleType("coremltools")
        package.__path__ = list(spec.submodule_search_locations)
        sys.modules["coremltools"] = package
    import numpy  # noqa: F401  (checked here, used everywhere)
    from coremltools.libmilstoragepython import _BlobStorageWriter
    from coremltools.proto import FeatureTypes_pb2, MIL_pb2, Model_pb2

    return _BlobStorageWriter, FeatureTypes_pb2, MIL_pb2, Model_pb2


try:
    BlobStorageWriter, features, mil, model = _load()
except Exception as error:
    raise ConvertError(
        "ENVIRONMENT_NATIVE", f"coremltools cannot be used with this interpreter: {error}",
        expected="coremltools with its native weight writer", found=f"{type(error).__name__}: {error}",
        where=sys.executable, hint="install requirements.lock into Python 3.11, 3.12 or 3.13",
    ) from error  # fmt: skip
