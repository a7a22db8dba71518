"""Runs laya-apple 1.7.0's own command line where there is no Mac, for tests and benchmarks of the store that is shared with it.

Usage: python laya_apple_cli.py artifacts export MODEL --length L --out DIR, and so on.

What needs a Mac or a checkpoint answers at once: the platform's profile, the compute plan, loading a compiled model,
the checkpoint with its weights, and the parity gate. Everything else (hashing, tar, gzip, staging, renames) is its own.
"""

import sys
import tempfile
import types
from pathlib import Path

PROFILE = {"soc": "Apple M4 Max", "macos": "27.0", "macos_build": "26A428", "coremltools": "9.0"}
PLAN = {
    "compute_units": "CPU_AND_NE",
    "ops": {"ane": 3, "gpu": 0, "cpu": 0},
    "cost_share": {"ane": 1.0, "gpu": 0.0, "cpu": 0.0},
    "transitions": 0,
}


def pretend_coremltools():
    """A module with the names that are looked up; importing the real one takes a second."""
    module = types.ModuleType("coremltools")
    module.__version__ = PROFILE["coremltools"]
    module.ComputeUnit = types.SimpleNamespace(CPU_AND_NE="CPU_AND_NE", CPU_ONLY="CPU_ONLY")
    module.models = types.SimpleNamespace(CompiledMLModel=lambda *args, **options: object())
    sys.modules["coremltools"] = module


def stub_mac_calls():
    """Replaces the calls that can't be made here in every module that has them by name."""
    import laya_apple.artifacts
    import laya_apple.hub
    import laya_apple.lifecycle
    import laya_apple.parity.ane
    import laya_apple.prebuilt

    for module in (laya_apple.artifacts, laya_apple.lifecycle, laya_apple.prebuilt):
        module.platform_profile = lambda: dict(PROFILE)
    laya_apple.artifacts.compute_plan_summary = lambda *args, **options: dict(PLAN)
    laya_apple.hub.checkpoint_path = lambda spec, local_files_only=False: Path(tempfile.gettempdir())
    laya_apple.hub.verify_weights = lambda spec, path: spec.weights_sha256
    laya_apple.parity.ane.ane_parity = lambda *args, **options: {"passed": True, "prob_max_abs": 0.0}


if __name__ == "__main__":
    pretend_coremltools()
    stub_mac_calls()
    from laya_apple.cli import main

    sys.exit(main(sys.argv[1:]))
