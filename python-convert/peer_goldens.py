"""Takes one model's goldens out of the laya-apple wheel and writes them in this project's form.

    python -I -X utf8 peer_goldens.py WHEEL MODEL REVISION OUT

The order of keys and the text of strings stay as they are. Needs the standard library only.
"""

import json
import os
import sys
import zipfile
from pathlib import Path


def convert(peer, model, revision):
    """The goldens document of spec "goldens" from laya-apple's: the same cases under this project's header."""
    cases = [
        {key: case[key] for key in ("name", "state", "questions", "items", "logits", "action_logits")}
        for case in peer["cases"]
    ]
    return {
        "format": "laya-goldens",
        "format_version": 1,
        "model": model,
        "revision": revision,
        "reference": peer["reference"],
        "reference_packages": peer["reference_packages"],
        "source_weights_sha256": peer["source_weights_sha256"],
        "cases": cases,
    }


def main(wheel, model, revision, out):
    """Reads the member, converts it, and publishes the file by one rename."""
    with zipfile.ZipFile(wheel) as archive:
        peer = json.loads(archive.read(f"laya_apple/parity/goldens/{model}.json"))
    target = Path(out)
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    text = json.dumps(convert(peer, model, revision), ensure_ascii=False, allow_nan=False)
    temporary.write_text(text + "\n", encoding="utf-8")
    os.replace(temporary, target)


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit("usage: peer_goldens.py WHEEL MODEL REVISION OUT")
    main(*sys.argv[1:])
