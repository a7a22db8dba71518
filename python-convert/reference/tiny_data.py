"""Generated support messages with typed questions and their right answers, for laya-tiny."""

import random
from dataclasses import dataclass
from typing import Any

import tiny_templates as t


@dataclass(frozen=True)
class Row:
    """One question about one message.

    `label` is the index of the right option. `options` has each option's class for the probe: topics 0-4, urgency
    levels 5-8, false 9, true 10. `statement` is an index in STATEMENTS, or -1 when the question isn't a noul.
    """

    state: Any
    question: dict
    label: int
    options: tuple
    statement: int
    topic: int
    urgency: int
    tone: int


OPTION_CLASSES = len(t.TOPICS) + len(t.URGENCIES) + 2


def _fill(rng, text):
    values = {key: rng.choice(words) for key, words in t.FILLERS.items()}
    amount = f"{rng.randrange(5, 900)}.{rng.randrange(100):02d} {rng.choice(('euros', 'dollars'))}"
    return text.format(n=rng.randrange(100, 10000), m=amount, **values)


def _urgency(rng, split, urgency):
    if rng.random() < 0.4:
        return rng.choice(t.URGENCY_SENTENCES[split][urgency])
    return rng.choice(t.URGENCY_FRAMES[split]).format(u=rng.choice(t.URGENCY_PHRASES[urgency]))


def _message(rng, split, topic, urgency, tone):
    sentences = [
        _fill(rng, rng.choice(t.TOPIC_SENTENCES[split][topic])),
        _urgency(rng, split, urgency),
        _fill(rng, rng.choice(t.TONE_SENTENCES[split][tone])),
    ]
    if rng.random() < 0.3:
        rng.shuffle(sentences)
    opening = _fill(rng, rng.choice(t.OPENINGS))
    text = " ".join([opening, *sentences] if opening else sentences)
    if rng.random() >= 0.2:
        return text
    return {"id": rng.randrange(1000), "from": rng.choice(t.FILLERS["w"]), "message": text}


def _choice(rng, split, topic):
    others = rng.sample([name for name in t.TOPICS if name != topic], rng.randrange(1, len(t.TOPICS)))
    labels = [topic, *others]
    rng.shuffle(labels)
    criteria = labels
    if rng.random() < 0.7:
        criteria = {name: rng.choice(t.DESCRIPTIONS[name]) for name in labels}
    question = {"type": "choice", "instructions": rng.choice(t.CHOICE_TEXTS[split]), "criteria": criteria}
    return question, labels.index(topic), tuple(t.TOPICS.index(name) for name in labels)


def _score(rng, split, urgency):
    question = {
        "type": "score",
        "instructions": rng.choice(t.SCORE_TEXTS[split]),
        "criteria": list(rng.choice(t.LEVELS)),
    }
    first = len(t.TOPICS)
    return question, t.URGENCIES.index(urgency), tuple(range(first, first + len(t.URGENCIES)))


def _noul(rng, split, truths):
    wanted = rng.random() < 0.5
    statement = rng.choice([name for name, truth in truths.items() if truth == wanted] or list(truths))
    question = {"type": "noul", "instructions": rng.choice(t.NOUL_TEXTS[split][statement])}
    if rng.random() < 0.25:
        question["labels"] = rng.choice(t.NOUL_LABELS)
    return question, int(truths[statement]), (OPTION_CLASSES - 2, OPTION_CLASSES - 1), t.STATEMENTS.index(statement)


def message_rows(rng, split):
    """The rows of one message of `split` ("train" or "held-out"): a choice, a score and up to two nouls."""
    topic, urgency, tone = rng.choice(t.TOPICS), rng.choice(t.URGENCIES), rng.choice(t.TONES)
    state = _message(rng, split, topic, urgency, tone)
    truths = {name: name == topic for name in t.TOPICS}
    truths |= {"urgent": urgency == "emergency", "angry": tone == "angry"}
    asked = [(*_choice(rng, split, topic), -1), (*_score(rng, split, urgency), -1)]
    asked += [_noul(rng, split, truths) for _ in range(rng.randrange(3))]
    factors = (t.TOPICS.index(topic), t.URGENCIES.index(urgency), t.TONES.index(tone))
    return [Row(state, question, label, options, statement, *factors) for question, label, options, statement in asked]


def rows(seed, split, count):
    """`count` rows; the same arguments give the same rows."""
    rng = random.Random(seed)
    made = []
    while len(made) < count:
        made += message_rows(rng, split)
    return made[:count]
