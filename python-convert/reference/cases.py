"""The golden requests for one checkpoint: seeded, and fitted to its tokenizer where lengths matter."""

import itertools
import random

from case import Case, choice, noul, score
from case_edges import edge_cases
from case_texts import (
    OPENINGS,
    TONE_SENTENCES,
    TOPIC_DESCRIPTIONS,
    TOPIC_SENTENCES,
    URGENCY_LEVELS,
    URGENCY_SENTENCES,
)

SEED = 1107
OPTION_COUNTS = (1, 2, 3, 5, 6, 10, 11, 20, 32)
TOPICS = tuple(TOPIC_SENTENCES)
THINGS = (
    "kettle lamp bike keyboard speaker jacket toaster charger printer blender tent mattress laptop headset table "
    "helmet watch chair monitor phone tablet router camera desk backpack shoes card invoice parcel password window "
    "letter"
).split()


def ticket(rng, topic=None):
    """A customer's message as a list of sentences, and its topic."""
    topic = topic or rng.choice(TOPICS)
    tone = rng.choice(sorted(TONE_SENTENCES))
    body = [rng.choice(TOPIC_SENTENCES[topic]), rng.choice(URGENCY_SENTENCES), rng.choice(TONE_SENTENCES[tone])]
    if rng.random() < 0.3:
        rng.shuffle(body)
    return [rng.choice(OPENINGS), *body], topic


def endless_words(rng):
    """Words of random tickets, without an end."""
    while True:
        yield from " ".join(ticket(rng)[0]).split(" ")


def eight_questions(rng, topic):
    """A request's worth of questions of every type about a ticket."""
    labels = rng.sample(TOPICS, len(TOPICS))
    some = rng.sample([t for t in TOPICS if t != topic], 2) + [topic]
    rng.shuffle(some)
    other = rng.choice([t for t in TOPICS if t != topic])
    return {
        "topic": choice("Which team should handle this message?", labels),
        "described": choice("What is the topic?", {t: TOPIC_DESCRIPTIONS[t] for t in some}),
        "urgency": score("Rate the urgency.", list(URGENCY_LEVELS)),
        "angry": noul("Is the customer angry?"),
        "about": noul(f"The message is about {topic}."),
        "not about": noul(f"The message is about {other}.", labels={"false": "B", "true": "A"}),
        "tone": score("How kind is the tone?", ["furious", "neutral", "very nice"]),
        "answer": noul(
            "Does the customer need an answer today?",
            criteria={"true": "an answer is needed today", "false": "there is no hurry"},
        ),
    }


def ticket_cases(rng):
    """Eight questions each about strings, JSON objects and conversations."""
    cases = []
    for number in range(4):
        sentences, topic = ticket(rng, TOPICS[number])
        cases.append(Case(f"ticket-text-{number}", " ".join(sentences), eight_questions(rng, topic)))
    for number in range(4):
        sentences, topic = ticket(rng, TOPICS[-1 - number])
        state = {
            "id": 4470 + number,
            "from": {"name": "Nina Köhler", "vip": number % 2 == 0, "since": None},
            "body": " ".join(sentences),
            "amounts": [59.9, 1.0, -0.5],
        }
        cases.append(Case(f"ticket-json-{number}", state, eight_questions(rng, topic)))
    for number in range(4):
        sentences, topic = ticket(rng, rng.choice(TOPICS))
        turns = [{"role": "agent", "content": "Hello, how can I help?"}]
        turns += [{"role": "customer", "content": sentence} for sentence in sentences]
        cases.append(Case(f"ticket-conversation-{number}", turns, eight_questions(rng, topic)))
    return cases


def length_cases(rng, fitter, buckets):
    """For each bucket and type a row one below, exactly at and one above the bucket (above `max_len`: cut by one)."""
    questions = {
        "choice": choice("Which team should handle this?", ["billing", "shipping", "returns"]),
        "score": score("Rate the urgency.", ["no hurry", "this week", "today"]),
        "noul": noul("Is the customer angry?"),
    }
    cases = []
    for bucket, (kind, question) in itertools.product(buckets, questions.items()):
        state = fitter.state_for(question, bucket - 1, endless_words(rng))
        if state is not None:
            three = {
                "below": question,
                "exact": fitter.longer_by(question, 1),
                "above": fitter.longer_by(question, 2),
            }
            cases.append(Case(f"length-{bucket}-{kind}", state, three))
    return cases


def option_count_cases(rng):
    """Choices and scores of 1 to 32 options; the long ones shrink the head budget."""
    cases = []
    for count in OPTION_COUNTS:
        labels = rng.sample(THINGS, count)
        described = {label: f"the {label} of the customer from {rng.choice(OPENINGS)}" for label in labels}
        questions = {
            "labels": choice("Which thing is it about?", labels),
            "described": choice("Which of these things has to be sent back?", described),
            "levels": score("How much of it is left?", [f"{label} and {i} more" for i, label in enumerate(labels)]),
        }
        state = f"I want to send the {labels[-1]} back. " + " ".join(ticket(rng, "returns")[0])
        cases.append(Case(f"options-{count}", state, questions))
    return cases


def truncation_cases(rng, fitter):
    """States far longer than `max_len`: strings and objects keep their start, lists their end."""
    words = endless_words(rng)
    long = " ".join(itertools.islice(words, 2 * fitter.max_len))
    turns = [
        {"role": ("agent", "customer")[i % 2], "content": " ".join(ticket(rng)[0])} for i in range(fitter.max_len // 8)
    ]
    questions = {
        "topic": choice("Which team should handle this message?", {t: TOPIC_DESCRIPTIONS[t] for t in TOPICS}),
        "urgency": score("Rate the urgency.", list(URGENCY_LEVELS)),
        "angry": noul("Is the customer angry?"),
    }
    barely = fitter.state_for(questions["angry"], fitter.max_len, words)
    return [
        Case("cut-text", "FIRST " + long + " LAST", questions),
        Case("cut-object", {"first": 1, "text": long, "last": [1.0, None]}, questions),
        Case(
            "cut-conversation",
            [*turns, {"role": "customer", "content": "I am furious, the parcel never arrived."}],
            questions,
        ),
        Case("cut-list-of-text", ["first", long, "last"], questions),
        Case("cut-only-some-questions", barely, questions),
        Case(
            "cut-unicode", "é" * fitter.max_len + "你好" * fitter.max_len + "👍🏽" * 40, {"angry": questions["angry"]}
        ),
    ]


def long_text_cases(rng):
    """Options cut at 48 tokens, options that are equal after the cut, and instructions cut to the head budget."""
    words = endless_words(rng)

    def text(count):
        return " ".join(itertools.islice(words, count))

    same = text(60)
    state = " ".join(ticket(rng, "billing")[0])
    return [
        Case(
            "long-options",
            state,
            {
                "one long": choice("Which one?", {"short": "a card", "long": text(90)}),
                "levels": score("How bad is it?", ["fine", text(70), "terrible"]),
                "noul": noul("Is it about billing?", criteria={"true": text(80), "false": "it is not"}),
            },
        ),
        Case(
            "equal-after-the-cut",
            state,
            {
                "same start": choice("Which one?", {"a": same + " one", "a b": same + " two", "c": "other"}),
                "same labels": score("How bad is it?", [same + " one", same + " two", same + " one"]),
            },
        ),
        Case("long-instructions", state, {"q": noul(text(200)), "q2": choice(text(150), ["billing", text(30)])}),
        Case(
            "shrunk-options",
            state,
            {
                "twelve": choice(text(60), {f"label {i}": text(20) for i in range(12)}),
                "thirty": score(text(40), [text(12) for _ in range(30)]),
            },
        ),
    ]


def build_cases(fitter, buckets=(64, 96, 128, 256)):
    """Every golden case for a checkpoint, in a fixed order. The same checkpoint gives the same cases."""
    rng = random.Random(SEED)
    lengths = sorted({bucket for bucket in buckets if bucket <= fitter.max_len} | {fitter.max_len})
    cases = [
        *ticket_cases(rng),
        *length_cases(rng, fitter, lengths),
        *option_count_cases(rng),
        *truncation_cases(rng, fitter),
        *long_text_cases(rng),
        *edge_cases(fitter.special_tokens, fitter.tok.mask_token),
    ]
    names = [case.name for case in cases]
    if len(set(names)) != len(names):
        raise ValueError("two cases have one name")
    return cases
