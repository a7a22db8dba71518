"""The request document, checked before anything is touched."""

import os
from dataclasses import dataclass

from . import strict_json
from .errors import ConvertError
from .graph import MAX_OPTIONS

PROTOCOL = 1
_KEYS = {"protocol", "checkpoint", "out", "buckets", "lock", "layout_rows", "max_options"}
_OPTIONAL = {"lock", "layout_rows", "max_options"}
_CHECKPOINT_KEYS = {"weights", "encoder_config", "agent_config"}
_ROW_KEYS = {"ids", "markers", "qtype", "pad_id", "logits"}


@dataclass(frozen=True)
class Request:
    """checkpoint: the three paths; out: an existing empty folder; buckets: ascending lengths; lock: path or None;
    layout_rows: length -> {ids, markers, qtype, pad_id, logits}."""

    checkpoint: dict
    out: str
    buckets: tuple
    lock: str | None
    layout_rows: dict


def read_request(path):
    """Reads and checks the request. Raises ConvertError REQUEST_INVALID or OUT_INVALID."""
    document = strict_json.read_object(path, "REQUEST_INVALID", limit=64 << 20)
    _require(document.get("protocol") == PROTOCOL, "protocol", PROTOCOL, document.get("protocol"))
    _keys(document, "request", _KEYS, _OPTIONAL)
    _require(isinstance(document["checkpoint"], dict), "checkpoint", "an object", document["checkpoint"])
    _keys(document["checkpoint"], "checkpoint", _CHECKPOINT_KEYS, set())
    for key, value in document["checkpoint"].items():
        _path(value, f"checkpoint.{key}")
    lock = document.get("lock")
    if lock is not None:
        _path(lock, "lock")
    options = document.get("max_options", MAX_OPTIONS)
    _require(options == MAX_OPTIONS and strict_json.is_int(options, 1, 1024), "max_options", MAX_OPTIONS, options)
    buckets = document["buckets"]
    _require(isinstance(buckets, list) and 1 <= len(buckets) <= 16, "buckets", "1 to 16 lengths", buckets)
    for length in buckets:
        _require(strict_json.is_int(length, 8, 8192), "buckets", "integers from 8 to 8192", length)
    _require(len(set(buckets)) == len(buckets), "buckets", "different lengths", buckets)
    rows = {} if document.get("layout_rows") is None else document["layout_rows"]
    _require(isinstance(rows, dict), "layout_rows", "an object or null", rows)
    checked = {}
    for key, row in rows.items():
        _require(key in map(str, buckets), f"layout_rows.{key[:20]}", "one of the buckets", key)
        checked[int(key)] = _row(row, int(key), f"layout_rows.{key}")
    return Request(document["checkpoint"], _out(document["out"]), tuple(sorted(buckets)), lock, checked)


def check_against(request, arch):
    """Checks what only the checkpoint can tell: bucket lengths and token ids. Raises REQUEST_INVALID."""
    longest = request.buckets[-1]
    _require(longest <= arch.max_length, "buckets", f"at most {arch.max_length} tokens", longest)
    for length, row in request.layout_rows.items():
        largest = max([*row["ids"], row["pad_id"]])
        _require(largest < arch.vocab, f"layout_rows.{length}", f"token ids below {arch.vocab}", largest)


def _row(row, length, where):
    _require(isinstance(row, dict), where, "an object", row)
    _keys(row, where, _ROW_KEYS, set())
    _ints(row["ids"], f"{where}.ids", 1, length, 0, (1 << 31) - 1)
    _ints(row["markers"], f"{where}.markers", 1, MAX_OPTIONS, 0, len(row["ids"]) - 1)
    _require(len(set(row["markers"])) == len(row["markers"]), f"{where}.markers", "different positions", row["markers"])
    _require(strict_json.is_int(row["qtype"], 0, 2), f"{where}.qtype", "0, 1 or 2", row["qtype"])
    _require(strict_json.is_int(row["pad_id"], 0, (1 << 31) - 1), f"{where}.pad_id", "a token id", row["pad_id"])
    logits = row["logits"]
    valid = isinstance(logits, list) and len(logits) == len(row["markers"]) and all(map(strict_json.is_number, logits))
    _require(valid, f"{where}.logits", "one finite number for each marker", logits)
    return row


def _ints(values, where, low_count, high_count, low, high):
    valid = isinstance(values, list) and low_count <= len(values) <= high_count
    valid = valid and all(strict_json.is_int(value, low, high) for value in values)
    _require(valid, where, f"{low_count} to {high_count} integers from {low} to {high}", values)


def _keys(value, where, known, optional):
    unknown, missing = sorted(set(value) - known), sorted(known - optional - set(value))
    _require(not unknown and not missing, where, sorted(known), {"unknown": unknown, "missing": missing})


def _path(value, where):
    _require(_is_text(value) and "\0" not in value and os.path.isabs(value), where, "an absolute path", value)


def _is_text(value):
    """Whether a string has a UTF-8 form; a lone surrogate has none."""
    try:
        return isinstance(value, str) and bool(value.encode("utf-8"))
    except UnicodeEncodeError:
        return False


def _out(path):
    _path(path, "out")
    try:
        entries = os.listdir(path)
    except OSError as error:
        raise ConvertError(
            "OUT_INVALID", f"the output folder cannot be used: {error.strerror}", expected="an existing empty folder",
            found=error.strerror, where=path,
        ) from error  # fmt: skip
    if entries:
        raise ConvertError(
            "OUT_INVALID", "the output folder is not empty", expected="an existing empty folder",
            found=sorted(entries)[:5], where=path,
        )  # fmt: skip
    return path


def _require(condition, where, expected, found):
    if not condition:
        shown = found if isinstance(found, (bool, int, dict)) else str(found)[:200]
        raise ConvertError(
            "REQUEST_INVALID", f"{where} is not valid", expected=expected, found=shown, where=where,
            hint="see the protocol in convert.py",
        )  # fmt: skip
