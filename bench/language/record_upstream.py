"""Records what upstream's Router decides, for the benchmark and for the differential test.

    python record_upstream.py --held HELD.tsv --labelled data/labelled.tsv --states ../../test/fixtures/language-states.json

Needs upstream's `laya` (python-convert/reference/requirements.lock). HELD.tsv is what collect.py drew.
"""

import argparse
import importlib.metadata
import json
import os
import unicodedata

from laya.router import Router
from states import states

HERE = os.path.dirname(os.path.abspath(__file__))
router = Router(default="english")


def decide(state):
    """Upstream's checkpoint with the English default, and why, in the codes this project uses."""
    decision = router.route(state)
    detection = decision["detection"]
    if detection["script"] == "unknown":
        code = "no_text_default"
    elif detection["script"] != "latin":
        code = "language_non_latin_script"
    elif not detection["is_english"]:
        code = "language_not_english"
    else:
        code = "language_undecided_default" if detection["language_undecided"] else "language_english"
    assert (decision["model"] == "english") == (code not in ("language_non_latin_script", "language_not_english"))
    return decision, code


def rows_of(path):
    with open(path, encoding="utf-8") as file:
        return [tuple(line.rstrip("\n").split("\t")) for line in file]


def variants(rows):
    """Lines as they come from systems that strip accents, and from people who shout: three a language and kind."""
    taken = {}
    for _, language, text in rows:
        plain = "".join(ch for ch in unicodedata.normalize("NFD", text) if not unicodedata.combining(ch))
        plain = plain.translate(str.maketrans("łŁøØđĐıßæ", "lLoOdDisa"))
        for kind, changed in (("unaccented", plain), ("capitals", text.upper())):
            number = taken.get((kind, language), 0)
            changes = changed.isascii() and not text.isascii() if kind == "unaccented" else changed != text
            if changes and number < (20 if language == "en" else 3) and latin(changed):
                taken[kind, language] = number + 1
                yield kind, language, changed


def latin(text):
    return all(not ch.isalpha() or "LATIN" in unicodedata.name(ch, "") for ch in text)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--held", required=True)
    parser.add_argument("--labelled", required=True)
    parser.add_argument("--states", required=True)
    options = parser.parse_args()
    chat = rows_of(os.path.join(HERE, "data", "chat.tsv"))
    rows = rows_of(options.held) + chat
    rows += variants(rows)
    with open(options.labelled, "w", encoding="utf-8", newline="\n") as file:
        for source, language, text in rows:
            file.write("\t".join((source, language, decide(text)[1], text)) + "\n")

    recorded = []
    for kind, expected, state in states([row[1:] for row in chat]):
        decision, code = decide(state)
        detection = {key: decision["detection"][key] for key in ("script", "language", "is_english")}
        upstream = {"model": decision["model"], "code": code, "detection": detection}
        recorded.append({"kind": kind, "expected": expected, "state": state, "upstream": upstream})
    facts = {"recorded_with": f"laya {importlib.metadata.version('laya')}, Router(default='english').route(state)"}
    with open(options.states, "w", encoding="utf-8", newline="\n") as file:
        lines = ",\n".join(json.dumps(one, ensure_ascii=False) for one in recorded)
        file.write(f'{{"recorded_with": {json.dumps(facts["recorded_with"])},\n"states": [\n{lines}\n]}}\n')
    print(f"{len(rows)} lines, {len(recorded)} states")


if __name__ == "__main__":
    main()
