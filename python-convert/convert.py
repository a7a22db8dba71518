"""Converts a Laya checkpoint into Core ML packages.

Usage: python -I -X utf8 convert.py REQUEST.json RESULT.json

REQUEST: {"protocol": 1, "checkpoint": {"weights", "encoder_config", "agent_config"}, "out", "buckets", "lock",
"layout_rows", "max_options"}; paths are absolute, `out` is an existing empty folder, `lock` and `layout_rows` may be
null. RESULT is written atomically: {"protocol": 1, "ok": true, ...} with exit code 0, or {"protocol": 1, "ok": false,
"error": {"code", "message", "expected", "found", "where", "hint"}} with exit code 1, or 128 + n after signal n.
Stdout carries only lines `@progress {json}`; stderr is a log for people.
"""

import importlib.machinery
import importlib.util
import json
import os
import sys


class _SourceLoader(importlib.machinery.SourceFileLoader):
    """Compiles the file that is there: neither reads nor writes bytecode caches, so what is hashed is what runs."""

    def get_code(self, fullname):
        return self.source_to_code(self.get_data(self.path), self.path)


class _PackageFinder:
    """Finds `laya_convert` and its modules beside this file, without a folder on the module search path."""

    folder = os.path.join(os.path.dirname(os.path.realpath(__file__)), "laya_convert")

    @classmethod
    def find_spec(cls, fullname, _path=None, _target=None):
        package, _, module = fullname.partition(".")
        if package != "laya_convert":
            return None
        path = os.path.join(cls.folder, f"{module or '__init__'}.py")
        places = None if module else [cls.folder]
        loader = _SourceLoader(fullname, path)
        return importlib.util.spec_from_file_location(fullname, path, loader=loader, submodule_search_locations=places)


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
    sys.meta_path.insert(0, _PackageFinder)
    from laya_convert.run import main as run

    return run(argv[1], argv[2], progress)


if __name__ == "__main__":
    sys.exit(main(sys.argv))
