"""Replaces an artifact as the Python runtime does it: its lock, its staging, its two renames, its way to clean up.

peer_swap.py ROOT TARGET TEMPLATE LOCK ROUNDS    prints {"replaced": n, "failed": n}
"""

import fcntl
import json
import os
import shutil
import sys
import tempfile
from datetime import datetime, timezone


def replace(staged, target):
    """The registered artifact aside, the staged one in its place; the first one back when that can't be done."""
    aside = None
    if os.path.exists(target):
        aside = f"{target}.old-{os.getpid()}"
        try:
            os.rename(target, aside)
        except FileNotFoundError:
            aside = None
    try:
        os.rename(staged, target)
    except OSError:
        if aside is not None:
            try:
                os.rename(aside, target)
            except OSError:
                pass
        return False
    if aside is not None:
        shutil.rmtree(aside)
    return True


def main(root, target, template, lock, rounds):
    staging = os.path.join(root, "artifacts", ".staging")
    os.makedirs(staging, exist_ok=True)
    os.makedirs(os.path.dirname(lock), exist_ok=True)
    counts = {"replaced": 0, "failed": 0}
    for _ in range(int(rounds)):
        staged = tempfile.mkdtemp(prefix="import-", dir=staging)
        marker = os.path.join(staged, "BUILDING.json")
        with open(marker, "w", encoding="utf-8") as stream:
            json.dump({"pid": os.getpid()}, stream)
        shutil.copytree(template, staged, dirs_exist_ok=True)
        with open(lock, "a+", encoding="utf-8") as held:
            fcntl.flock(held.fileno(), fcntl.LOCK_EX)
            held.seek(0)
            held.truncate()
            held.write(json.dumps({"pid": os.getpid(), "since": datetime.now(timezone.utc).isoformat()}))
            held.flush()
            os.makedirs(os.path.dirname(target), exist_ok=True)
            os.unlink(marker)
            counts["replaced" if replace(staged, target) else "failed"] += 1
        shutil.rmtree(staged, ignore_errors=True)
    print(json.dumps(counts))


if __name__ == "__main__":
    main(*sys.argv[1:])
