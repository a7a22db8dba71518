"""Trains and calibrates laya-tiny."""

import math
import random

import torch
from laya.agent import Agent
from laya.common import QTYPES, build_sequence, collate_items
from torch import nn
from torch.nn import functional as F

from tiny_model import AGENT_CONFIG, Probes

BATCH = 16
LEARNING_RATE = 1.5e-3
WARM_UP = 40
PROBE_WEIGHTS = (0.5, 0.1)  # for the first 60 % of the steps, and after


def encode(tokenizer, rows):
    """Upstream's token ids for each row, with what the losses need."""
    items = []
    for row in rows:
        question = Agent._to_internal(row.question)
        ids, markers = build_sequence(
            tokenizer, row.state, question, AGENT_CONFIG["max_len"], AGENT_CONFIG["head_max_len"]
        )
        items.append({"ids": ids, "markers": markers, "qtype": QTYPES[question["t"]], "label": row.label, "row": row})
    return items


def batches(rng, items, pad):
    """Endless batches of rows of similar length."""
    while True:
        order = list(items)
        rng.shuffle(order)
        groups = []
        for start in range(0, len(order), BATCH * 20):
            near = sorted(order[start : start + BATCH * 20], key=lambda item: len(item["ids"]))
            groups += [near[i : i + BATCH] for i in range(0, len(near), BATCH)]
        rng.shuffle(groups)
        for group in groups:
            yield collate_items([group], pad)


def forward(model, batch):
    """Option logits and action logits of a batch."""
    return model(batch["input_ids"], batch["attention_mask"], batch["marker_pos"], batch["marker_mask"], batch["qtype"])


def rate(step, steps):
    """Learning rate factor: linear warm-up, then a cosine to zero."""
    if step < WARM_UP:
        return (step + 1) / WARM_UP
    return 0.5 * (1 + math.cos(math.pi * (step - WARM_UP) / max(1, steps - WARM_UP)))


def train(model, items, pad, steps, seed, log):
    """Cross-entropy over the options + 0.1 of the action's (class 0: the answer is right) + weighted probes."""
    probes = Probes(model.encoder.config.hidden_size)
    seen = {}
    hook = model.encoder.register_forward_hook(
        lambda _module, _inputs, output: seen.update(hidden=output.last_hidden_state)
    )
    parameters = [*model.parameters(), *probes.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=LEARNING_RATE)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: rate(step, steps))
    stream = batches(random.Random(seed), items, pad)
    model.train()
    for step in range(steps):
        batch = next(stream)
        logits, actions = forward(model, batch)
        loss = F.cross_entropy(logits, batch["label"])
        wrong = (logits.argmax(-1) != batch["label"]).long()
        weight = PROBE_WEIGHTS[step >= 0.6 * steps]
        total = loss + 0.1 * F.cross_entropy(actions, wrong) + weight * probes.loss(seen["hidden"], batch)
        optimizer.zero_grad()
        total.backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        schedule.step()
        if step % 50 == 49:
            log(f"step {step + 1}: option loss {loss.item():.3f}, right {1 - wrong.float().mean().item():.2f}")
    hook.remove()
    model.eval()


@torch.no_grad()
def outputs(model, items, pad):
    """(logits padded to the widest row, labels) over all items."""
    parts = [collate_items([items[i : i + BATCH]], pad) for i in range(0, len(items), BATCH)]
    width = max(part["marker_mask"].shape[1] for part in parts)
    logits = [F.pad(forward(model, part)[0], (0, width - part["marker_mask"].shape[1]), value=-1e4) for part in parts]
    return torch.cat(logits), torch.cat([part["label"] for part in parts])


def fit_temperature(logits, labels):
    """(temperature, NLL before, NLL after) of the one temperature with the least NLL."""
    log_t = torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.LBFGS([log_t], max_iter=100, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = F.cross_entropy(logits / log_t.exp(), labels)
        loss.backward()
        return loss

    before = F.cross_entropy(logits, labels).item()
    optimizer.step(closure)
    temperature = log_t.exp().item()
    return temperature, before, F.cross_entropy(logits / temperature, labels).item()


def bake_temperature(model, temperature):
    """Divides the scorer's last layer by the temperature, so that the config's can stay at 1."""
    with torch.no_grad():
        model.scorer[3].weight.div_(temperature)
        model.scorer[3].bias.div_(temperature)


def refit_action_head(model, items, pad, seed, steps=400):
    """Fits `act_head` again on the features of the calibrated logits."""
    features, wrong = [], []
    hook = model.act_head.register_forward_pre_hook(lambda _module, inputs: features.append(inputs[0].detach()))
    logits, labels = outputs(model, items, pad)
    hook.remove()
    wrong = (logits.argmax(-1) != labels).long()
    inputs = torch.cat(features)
    optimizer = torch.optim.AdamW(model.act_head.parameters(), lr=1e-3)
    generator = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        pick = torch.randint(len(inputs), (64,), generator=generator)
        loss = F.cross_entropy(model.act_head(inputs[pick]), wrong[pick])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
