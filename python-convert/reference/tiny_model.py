"""The model of laya-tiny: upstream's DecisionModel over a small ModernBERT, and the probes it is trained with."""

import math

import torch
from laya.common import DecisionModel
from torch import nn
from torch.nn import functional as F
from transformers import ModernBertConfig, ModernBertModel

import tiny_templates as t
from tiny_data import OPTION_CLASSES
from tiny_tokenizer import VOCABULARY

AGENT_CONFIG = {
    "encoder": "laya-tiny-modernbert",
    "head_layers": 2,
    "max_len": 256,
    "head_max_len": 128,
    "act_costs": {"escalate": 0.5},
    "amp_dtype": "bf16",
    "model_name": "laya-tiny",
    "temperature": [1.0, 1.0, 1.0],
    "temperature_by_options": {},
}
HALVED = ("Wo.weight", "out_proj.weight", "linear2.weight")


def encoder_config(tokenizer):
    """4 layers (0 and 3 full attention), d 128, 2 heads of 64, I 192, window 64."""
    return ModernBertConfig(
        vocab_size=VOCABULARY,
        hidden_size=128,
        intermediate_size=192,
        num_hidden_layers=4,
        num_attention_heads=2,
        local_attention=64,
        global_attn_every_n_layers=3,
        max_position_embeddings=512,
        hidden_activation="gelu",
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.cls_token_id,
        eos_token_id=tokenizer.sep_token_id,
        cls_token_id=tokenizer.cls_token_id,
        sep_token_id=tokenizer.sep_token_id,
    )


def build_model(tokenizer):
    """A freshly initialised model without dropout. At this width the usual std of 0.02 never leaves chance."""
    encoder = ModernBertModel._from_config(encoder_config(tokenizer), attn_implementation="sdpa")
    actions = len(AGENT_CONFIG["act_costs"]) + 1
    model = DecisionModel(encoder, AGENT_CONFIG["head_layers"], actions, dropout=0.0)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name == "type_emb.weight":
                parameter.normal_(0, 0.5)
            elif parameter.ndim == 2:
                std = 1 / math.sqrt(parameter.shape[1])
                parameter.normal_(0, std / 2 if name.endswith(HALVED) else std)
            elif name.endswith("bias"):
                parameter.zero_()
            else:
                parameter.fill_(1)
    return model


class Probes(nn.Module):
    """Linear readings of the encoder's output at the options' markers; thrown away after training."""

    SIZES = {
        "option": OPTION_CLASSES,
        "statement": len(t.STATEMENTS),
        "topic": len(t.TOPICS),
        "urgency": len(t.URGENCIES),
        "tone": len(t.TONES),
    }

    def __init__(self, width):
        super().__init__()
        self.readers = nn.ModuleDict({name: nn.Linear(width, size) for name, size in self.SIZES.items()})

    def loss(self, hidden, batch):
        """Sum over the probes of the mean cross-entropy at the real markers; `hidden` is [rows, tokens, width]."""
        index = batch["marker_pos"][:, :, None].expand(-1, -1, hidden.size(-1))
        at_markers = hidden.gather(1, index)[batch["marker_mask"]]
        targets = probe_targets(batch)
        losses = [
            F.cross_entropy(reader(at_markers), targets[name], ignore_index=-1) for name, reader in self.readers.items()
        ]
        return torch.stack([loss for loss in losses if torch.isfinite(loss)]).sum()


def probe_targets(batch):
    """For each probe the class at each real marker, -1 where it has none."""
    rows = [meta["row"] for meta in batch["meta"]]
    counts = [len(row.options) for row in rows]
    targets = {"option": torch.tensor([option for row in rows for option in row.options])}
    for name in ("statement", "topic", "urgency", "tone"):
        targets[name] = torch.tensor(
            [getattr(row, name) for row, count in zip(rows, counts, strict=True) for _ in range(count)]
        )
    return targets
