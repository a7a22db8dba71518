"""Checks, before any work, that this is the interpreter and the environment that the lock file describes."""

import importlib.metadata
import os
import re
import shutil
import sys

from .errors import ConvertError

PYTHON_VERSIONS = ((3, 11), (3, 13))
SPACE_MARGIN = 64 << 20
# Threads that share the arithmetic of the layout check.
THREADS = max(1, min(8, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1))
_REQUIREMENT = re.compile(
    r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)==(?P<version>[^\s;]+)(?:\s*;\s*(?P<marker>.+?))?(?:\s+--hash=sha256:[0-9a-f]{64})+"
)
_INSTALL_HINT = "recreate the conversion environment from requirements.lock"
RECORDED = ("coremltools", "numpy", "protobuf")


def check_environment(lock):
    """Returns name -> version of the packages that convert. Raises ConvertError ENVIRONMENT_*.

    `lock` is the path of the lock file, or None to record the environment without comparing it.
    """
    _check_interpreter()
    if lock is None:
        return {name: _installed(name, None) for name in RECORDED}
    packages = {}
    for name, version, marker in read_lock(lock):
        if marker is None or _applies(marker):
            packages[name] = _installed(name, version)
    for name in RECORDED:
        if name not in packages:
            raise ConvertError(
                "ENVIRONMENT_LOCK", f"the lock file does not name {name}", expected=list(RECORDED),
                found=sorted(packages), where=lock, hint="compile requirements.in again",
            )  # fmt: skip
    return packages


def check_native():
    """Imports the compiled parts. Raises ENVIRONMENT_NATIVE when one is missing, ENVIRONMENT_FOREIGN_MODULE when one
    comes from outside the environment."""
    from . import native

    modules = [sys.modules[name] for name in ("numpy", "google.protobuf", native.mil.__name__)]
    modules.append(sys.modules[native.BlobStorageWriter.__module__])
    for module in modules:
        if not _inside_prefix(module.__file__):
            raise ConvertError(
                "ENVIRONMENT_FOREIGN_MODULE", f"{module.__name__} is loaded from outside the environment",
                expected=f"a file below {sys.prefix}", found=module.__file__, where=sys.executable, hint=_INSTALL_HINT,
            )  # fmt: skip


def check_space(folder, needed):
    """Raises DISK_SPACE when the filesystem of `folder` has less than `needed` bytes and a margin free."""
    free = shutil.disk_usage(folder).free
    if free < needed + SPACE_MARGIN:
        raise ConvertError(
            "DISK_SPACE", "the output folder has too little free space", expected=f"{needed + SPACE_MARGIN} bytes",
            found=f"{free} bytes", where=folder, hint="free some space and convert again",
        )  # fmt: skip


def read_lock(path):
    """The requirements of a hash-locked file as a list of (normalised name, version, marker or None)."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(4 << 20)
    except (OSError, UnicodeDecodeError) as error:
        raise ConvertError(
            "ENVIRONMENT_LOCK", f"the lock file cannot be read: {error}", expected="a requirements lock file",
            found=type(error).__name__, where=path,
        ) from error  # fmt: skip
    lines = (line.split("#", 1)[0].strip() for line in text.replace("\\\n", " ").split("\n"))
    requirements = []
    for line in filter(None, lines):
        match = _REQUIREMENT.fullmatch(line)
        if match is None:
            raise ConvertError(
                "ENVIRONMENT_LOCK", "the lock file has a line that is not a pinned, hashed requirement",
                expected="name==version --hash=sha256:...", found=line[:120], where=path,
            )  # fmt: skip
        requirements.append((_normal(match["name"]), match["version"], match["marker"]))
    return requirements


def _check_interpreter():
    low, high = PYTHON_VERSIONS
    if not low <= sys.version_info[:2] <= high:
        raise ConvertError(
            "ENVIRONMENT_PYTHON", "coremltools has no native parts for this Python",
            expected=f"Python {low[0]}.{low[1]} to {high[0]}.{high[1]}", found=sys.version.split()[0],
            where=sys.executable, hint=_INSTALL_HINT,
        )  # fmt: skip
    if not sys.flags.isolated or not sys.flags.utf8_mode:
        raise ConvertError(
            "ENVIRONMENT_NOT_ISOLATED", "the interpreter takes settings from outside the environment",
            expected="python -I -X utf8", found=f"isolated={sys.flags.isolated} utf8_mode={sys.flags.utf8_mode}",
            where=sys.executable, hint="start the converter as python -I -X utf8 convert.py REQUEST RESULT",
        )  # fmt: skip


def _installed(name, version):
    """The installed version of a package, which must be `version` when given and lie inside the environment."""
    try:
        found = importlib.metadata.distribution(name)
        found_version = found.version
    except importlib.metadata.PackageNotFoundError:
        found, found_version = None, None
    if found is None or found_version is None or (version is not None and found_version != version):
        raise ConvertError(
            "ENVIRONMENT_PACKAGE", f"{name} is not the locked version",
            expected=f"{name}=={version}" if version else name, found=found_version, where=name, hint=_INSTALL_HINT,
        )  # fmt: skip
    home = str(found.locate_file(""))
    if not _inside_prefix(home):
        raise ConvertError(
            "ENVIRONMENT_FOREIGN_MODULE", f"{name} is installed outside the environment",
            expected=f"a folder below {sys.prefix}", found=home, where=name, hint=_INSTALL_HINT,
        )  # fmt: skip
    return found_version


def _inside_prefix(path):
    prefix = os.path.realpath(sys.prefix)
    return os.path.commonpath([prefix, os.path.realpath(path)]) == prefix


def _applies(marker):
    try:
        from packaging.markers import InvalidMarker, Marker
    except ImportError as error:
        raise ConvertError(
            "ENVIRONMENT_PACKAGE", "packaging cannot be imported", expected="packaging", found=str(error),
            where="packaging", hint=_INSTALL_HINT,
        ) from error  # fmt: skip
    try:
        return Marker(marker).evaluate()
    except InvalidMarker as error:
        raise ConvertError(
            "ENVIRONMENT_LOCK", "the lock file has an invalid marker", expected="a PEP 508 marker", found=marker[:120]
        ) from error


def _normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()
