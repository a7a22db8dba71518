"""The goldens file: deterministic JSON with one case a line."""

import hashlib
import json
import os
import re
import unicodedata
from pathlib import Path

# Characters an editor may hide, normalise or break a line at: written as escapes so that the file survives it.
_FRAGILE = {"Cc", "Cf", "Co", "Cn", "Mn", "Me", "Zl", "Zp"}
_NON_ASCII = re.compile(r"[^\x00-\x7e]")


def _escape(match):
    char = match.group()
    category = unicodedata.category(char)
    if category not in _FRAGILE and not (category == "Zs" and char != " "):
        return char
    units = char.encode("utf-16-be")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))


def dumps(value):
    """Compact JSON on one line. ValueError when a number is not finite."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return _NON_ASCII.sub(_escape, text)


def render(goldens):
    """The text of a goldens file: one top-level field a line, one list element a line."""
    lines = []
    for key, value in goldens.items():
        if isinstance(value, list) and value:
            body = "[\n" + ",\n".join(dumps(element) for element in value) + "\n]"
        else:
            body = dumps(value)
        lines.append(f"{dumps(key)}:{body}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def write(path, goldens):
    """Writes the file whole or not at all."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    partial.write_text(render(goldens), encoding="utf-8", newline="\n")
    partial.replace(path)


def sha256_file(path):
    """Hex sha256 of a file's bytes."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def recorder_sha256():
    """Identifies the recorder: sha256 over `<sha256>  <name>\\n` of its modules, sorted by name."""
    here = Path(__file__).resolve().parent
    lines = [f"{sha256_file(here / name)}  {name}\n" for name in sorted(RECORDER_MODULES)]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


RECORDER_MODULES = (
    "case.py",
    "case_edges.py",
    "case_fit.py",
    "case_json.py",
    "case_texts.py",
    "cases.py",
    "golden_file.py",
    "invalid_cases.py",
    "record_goldens.py",
)
