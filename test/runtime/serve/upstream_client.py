"""Asks a server through upstream's own HTTP clients: upstream_client.py URL KEY OPERATION JSON; prints a line of JSON."""

import json
import sys

from laya.integrations.tools import LayaToolSelector
from laya.mcp.remote import RemoteError, RemoteRouter


def predict(url, key, request):
    """Upstream's router over HTTP: the answer, or its name for the refusal."""
    try:
        return RemoteRouter(url, api_key=key).predict(**request)
    except RemoteError as error:
        return {"refused": error.code, "message": error.message}


def health(url, key, _request):
    """Which checkpoints upstream's client takes for loaded."""
    router = RemoteRouter(url, api_key=key)
    return {"loaded": router.loaded, "revisions": router.loaded_revisions}


def select(url, key, request):
    """Upstream's tool selector over HTTP."""
    selector = LayaToolSelector(request["tools"], base_url=url, api_key=key, model="laya-tiny")
    decision = selector.select(request["state"])
    return {"tool": decision.tool_name, "probabilities": decision.probabilities}


OPERATIONS = {"predict": predict, "health": health, "select": select}

if __name__ == "__main__":
    _, address, secret, operation, text = sys.argv
    print(json.dumps(OPERATIONS[operation](address, secret or None, json.loads(text))))
