"""Both tree hashes of docs/artifact-protocol.md, section 4, on their own: standard library, nothing of this project.

    tree_hash.py FOLDER...       prints {"v1": ..., "v2": ...} for each folder, a line each; {"error": ...} for a bad one
    tree_hash.py --check FILE    makes the trees of a vectors file and compares; exit code 1 when a hash differs
    tree_hash.py --make FILE     writes the hashes of its trees into a vectors file
"""

import hashlib
import json
import os
import stat
import struct
import sys
import tempfile


class BadTree(Exception):
    """A tree that has no hash: links, special files, names that are not UTF-8."""


def entries(folder, prefix=""):
    """(path, None) for each folder and (path, (size, digest)) for each file; a folder stands before what is in it.

    Names of one folder come in the order of their code points, which is how Python compares text.
    """
    for name in sorted(os.listdir(folder)):
        try:
            name.encode("utf-8")
        except UnicodeEncodeError:
            raise BadTree(f"{prefix}{name!r} is not UTF-8") from None
        path = os.path.join(folder, name)
        mode = os.lstat(path).st_mode
        if stat.S_ISDIR(mode):
            yield prefix + name, None
            yield from entries(path, f"{prefix}{name}/")
        elif stat.S_ISREG(mode):
            yield prefix + name, content(path)
        else:
            raise BadTree(f"{prefix}{name} is no file and no folder")


def content(path):
    digest, size = hashlib.sha256(), 0
    with open(path, "rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
            size += len(block)
    return size, digest.digest()


def tree_hashes(folder):
    v1, v2 = hashlib.sha256(), hashlib.sha256(b"laya-artifacts tree v2\n")
    for path, found in entries(folder):
        name = path.encode("utf-8")
        if found is None:
            v2.update(b"d" + struct.pack("<Q", len(name)) + name)
            continue
        size, digest = found
        v1.update(name + digest)
        v2.update(b"f" + struct.pack("<Q", len(name)) + name + struct.pack("<Q", size) + digest)
    return {"v1": v1.hexdigest(), "v2": v2.hexdigest()}


def make_tree(folder, tree):
    """Makes a tree from its description: path -> text, {"hex": ...}, {"repeat": [text, count]}, or None for a folder."""
    for path, what in tree.items():
        full = os.path.join(folder, *path.split("/"))
        os.makedirs(full if what is None else os.path.dirname(full), exist_ok=True)
        if what is None:
            continue
        with open(full, "wb") as stream:
            stream.write(bytes_of(what))


def bytes_of(what):
    if isinstance(what, str):
        return what.encode("utf-8")
    if "hex" in what:
        return bytes.fromhex(what["hex"])
    text, count = what["repeat"]
    return text.encode("utf-8") * count


def hashes_of_case(case):
    with tempfile.TemporaryDirectory() as folder:
        make_tree(folder, case["tree"])
        return tree_hashes(folder)


def check(path):
    with open(path, encoding="utf-8") as stream:
        cases = json.load(stream)["cases"]
    wrong = [case["name"] for case in cases if hashes_of_case(case) != {"v1": case["v1"], "v2": case["v2"]}]
    print(json.dumps({"cases": len(cases), "wrong": wrong}))
    return 1 if wrong or not cases else 0


def make(path):
    with open(path, encoding="utf-8") as stream:
        vectors = json.load(stream)
    for case in vectors["cases"]:
        case.update(hashes_of_case(case))
    with open(path, "w", encoding="utf-8") as stream:
        json.dump(vectors, stream, indent=2, ensure_ascii=True)
        stream.write("\n")
    return 0


def main(arguments):
    if arguments[:1] == ["--check"]:
        return check(arguments[1])
    if arguments[:1] == ["--make"]:
        return make(arguments[1])
    for folder in arguments:
        try:
            print(json.dumps(tree_hashes(folder)))
        except BadTree as problem:
            print(json.dumps({"error": ascii(str(problem))}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
