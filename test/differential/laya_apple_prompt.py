"""Runs requests through laya-apple's prompt code, which needs numpy and tokenizers only.

    python -I -X utf8 laya_apple_prompt.py WHEEL CHECKPOINT REQUESTS OUT

WHEEL is its wheel, or "-" where the package is installed. OUT has a line for each request: `id`, then `rows` of [ids, markers, type], or `error`.
"""

import json
import sys
from pathlib import Path


def prepared(module, tokenizer, config, text):
    """What laya-apple makes of one request's text."""
    request = json.loads(text)
    try:
        made = module.prepare(tokenizer, config, request["state"], request["questions"])
    except Exception as error:
        return {"error": type(error).__name__}
    return {"rows": [[item["ids"], item["markers"], item["qtype"]] for item in made.items]}


def main(wheel, checkpoint, requests, out):
    """One line of OUT for each of REQUESTS."""
    if wheel != "-":
        sys.path.insert(0, wheel)
    from laya_apple import prompt

    config = json.loads((Path(checkpoint) / "rl_agent_config.json").read_text(encoding="utf-8"))
    tokenizer = prompt.Tokenizer(Path(checkpoint) / "tokenizer")
    with open(requests, encoding="ascii") as source, open(out, "w", encoding="ascii", newline="\n") as target:
        for line in source:
            record = json.loads(line)
            made = prepared(prompt, tokenizer, config, record["request"])
            target.write(json.dumps({"id": record["id"], **made}, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    main(*sys.argv[1:])
