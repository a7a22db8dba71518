"""Calls Python's huggingface_hub on a hub, one operation a run; the answer is one line of JSON."""

import json
import sys
from pathlib import Path

from huggingface_hub import CommitOperationAdd, HfApi, snapshot_download
from huggingface_hub.errors import HfHubHTTPError

REPO = "owner/prebuilt"


def create(api: HfApi, folder: str, private: str) -> object:
    """A repository with one commit of everything below the folder."""
    api.create_repo(REPO, private=private == "private")
    return api.upload_folder(repo_id=REPO, folder_path=folder, commit_message="first").oid


def commit(api: HfApi, path: str, text: str, parent: str) -> object:
    """One file on top of a named parent: the commit, or the status of the refusal."""
    change = CommitOperationAdd(path_in_repo=path, path_or_fileobj=text.encode())
    try:
        return api.create_commit(REPO, [change], commit_message="change", parent_commit=parent).oid
    except HfHubHTTPError as error:
        return error.response.status_code


def listing(api: HfApi, revision: str) -> object:
    """Paths and sizes, and the digests of large files."""
    entries = api.list_repo_tree(REPO, revision=revision, recursive=True)
    files = [entry for entry in entries if hasattr(entry, "size")]
    return {file.path: [file.size, file.lfs.sha256 if file.lfs else None] for file in files}


def download(api: HfApi, revision: str, cache: str) -> object:
    """Everything at a revision."""
    return snapshot_download(REPO, revision=revision, cache_dir=cache, endpoint=api.endpoint)


def cached(api: HfApi, path: str, revision: str, cache: str) -> object:
    """A file of the cache, without a connection; None when it is not there."""
    try:
        folder = snapshot_download(
            REPO, revision=revision, cache_dir=cache, local_files_only=True, allow_patterns=[path], endpoint=api.endpoint
        )
    except Exception as error:  # noqa: BLE001 - whatever it is, the test wants its name
        return type(error).__name__
    found = Path(folder, path)
    return str(found) if found.is_file() else None


OPERATIONS = {"create": create, "commit": commit, "listing": listing, "download": download, "cached": cached}

if __name__ == "__main__":
    print(json.dumps(OPERATIONS[sys.argv[1]](HfApi(), *sys.argv[2:])))
