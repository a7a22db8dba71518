"""Converts a Laya checkpoint into Core ML packages.

Usage: python -I -X utf8 convert.py REQUEST.json RESULT.json

REQUEST: {"protocol": 1, "checkpoint": {"weights", "encoder_config", "agent_config"}, "out", "buckets", "lock",
"layout_rows", "max_options"}; paths are absolute, `out` is an existing empty folder, `lock` and `layout_rows` may be
null. RESULT is written atomically: {"protocol": 1, "ok": true, ...} with exit code 0, or {"protocol": 1, "ok": false,
"error": {"code", "message", "expected", "found", "where", "hint"}} with exit code 1, or 128 + n after signal n.
Stdout carries only lines `@progress {json}`; stderr is a log for people.
"""

import importlib.util
import json
import os
import sys


def _load_package():
    """Imports the package beside this file without putting the folder on the module search path."""
    folder = os.path.join(os.path.dirname(os.path.realpath(__file__)), "laya_convert")
    spec = importlib.util.spec_from_file_location(
        "laya_convert", os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
    )
    package = importlib.util.module_from_spec(spec)
    sys.modules["laya_convert"] = package
    spec.loader.exec_module(package)


def _progress_on_stdout():
    """Keeps stdout for the protocol: whatever else prints there, native code included, goes to stderr."""
    protocol = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)

    def progress(event):
        protocol.write(f"@progress {json.dumps(event, sort_keys=True, allow_nan=False)}\n")

    return progress


def main(argv):
    if len(argv) != 3:
        print("usage: python -I -X utf8 convert.py REQUEST.json RESULT.json", file=sys.stderr)
        return 2
    progress = _progress_on_stdout()
    _load_package()
    from laya_convert.run import main as run

    return run(argv[1], argv[2], progress)


if __name__ == "__main__":
    sys.exit(main(sys.argv))
