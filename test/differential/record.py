"""Puts requests and what both reference packages made of them into one file: a subset for `npm test`.

    python -I -X utf8 record.py REQUESTS UPSTREAM LAYA_APPLE COUNT OUT

The first COUNT requests whose line is not longer than MAX_BYTES; `laya_apple` is "same" where it has upstream's rows.
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python-convert" / "reference"))

from golden_file import dumps  # noqa: E402

MAX_BYTES = 6000


def merged(request, upstream, apple):
    """One line of the file."""
    apple = {key: value for key, value in apple.items() if key != "id"}
    same = "rows" in apple and apple["rows"] == upstream.get("rows")
    reference = {key: value for key, value in upstream.items() if key != "id"}
    return dumps({**request, "upstream": reference, "laya_apple": "same" if same else apple}) + "\n"


def main(requests, upstream, apple, count, out):
    """Reads the three files line by line."""
    left = int(count)
    with open(out, "w", encoding="utf-8", newline="\n") as target:
        for texts in zip(*(open(path, encoding="utf-8") for path in (requests, upstream, apple)), strict=True):
            line = merged(*(json.loads(text) for text in texts))
            if left > 0 and len(line.encode()) <= MAX_BYTES:
                target.write(line)
                left -= 1


if __name__ == "__main__":
    if len(sys.argv) != 6:
        sys.exit(__doc__)
    main(*sys.argv[1:])
