"""Reads JSON that somebody else wrote."""

import json
import os
import stat

from .errors import ConvertError


class NotStrictJson(ValueError):
    """The text is not one JSON value with unique keys and finite numbers."""


def parse(text):
    """Parses `text` (bytes, UTF-8). Raises NotStrictJson; never RecursionError or another ValueError."""
    try:
        return json.loads(
            text.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_refuse_constant, parse_float=_finite
        )
    except NotStrictJson:
        raise
    except RecursionError as error:
        raise NotStrictJson("nested too deeply") from error
    except ValueError as error:
        raise NotStrictJson(str(error)) from error


def read_object(path, code, limit=1 << 20):
    """Reads the JSON object in the file `path`, at most `limit` bytes. Raises ConvertError with `code`."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        with open(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise ConvertError(code, "not a regular file", expected="a regular file", where=path)
            text = file.read(limit + 1)
    except OSError as error:
        raise ConvertError(
            code, f"cannot be read: {error.strerror}", expected="a readable JSON file", found=error.strerror, where=path
        ) from error
    if len(text) > limit:
        raise ConvertError(code, "too large", expected=f"at most {limit} bytes", found="more", where=path)
    try:
        value = parse(text)
    except NotStrictJson as error:
        raise ConvertError(
            code, f"not valid JSON: {error}", expected="a JSON object", found=str(error), where=path
        ) from error
    if not isinstance(value, dict):
        raise ConvertError(code, "not a JSON object", expected="object", found=type(value).__name__, where=path)
    return value


def is_int(value, low, high):
    """Whether `value` is an integer (not a boolean) with low <= value <= high."""
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def is_number(value):
    """Whether `value` is a number and not a boolean; parsed numbers are finite already."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _unique(pairs):
    result = dict(pairs)
    if len(result) != len(pairs):
        seen = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))
        raise NotStrictJson(f"duplicate key {twice!r}")
    return result


def _refuse_constant(text):
    raise NotStrictJson(f"{text} is not JSON")


def _finite(text):
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise NotStrictJson(f"{text} is out of range")
    return value
