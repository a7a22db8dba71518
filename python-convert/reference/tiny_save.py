"""Writes laya-tiny in the layout of a Laya checkpoint."""

import json
from pathlib import Path

from safetensors.torch import save_file
from transformers import PreTrainedConfig

from tiny_model import AGENT_CONFIG
from tiny_tokenizer import SPECIAL


def _write_json(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")


def _encoder_config(config):
    """What describes the architecture: without the settings that every transformers config has."""
    general = set(PreTrainedConfig().to_dict()) - {"transformers_version"}
    own = {key: value for key, value in config.to_dict().items() if key not in general and value is not None}
    return {**own, "architectures": ["ModernBertModel"], "model_type": config.model_type}


def save_checkpoint(folder, model, tokenizer, training):
    """Writes weights (FP32), configs and tokenizer; `training` is a record of how, kept in `rl_agent_config.json`."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {name: tensor.detach().float().contiguous() for name, tensor in model.state_dict().items()}
    save_file(tensors, folder / "model.safetensors")
    _write_json(folder / "rl_agent_config.json", {**AGENT_CONFIG, "training": training})
    _write_json(folder / "encoder" / "config.json", _encoder_config(model.encoder.config))
    tokens = {f"{name}_token": text for name, text in SPECIAL.items()}
    _write_json(
        folder / "tokenizer" / "tokenizer_config.json",
        {
            **tokens,
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": 8192,
            "clean_up_tokenization_spaces": True,
            "model_input_names": ["input_ids", "attention_mask"],
        },
    )
    _write_json(folder / "tokenizer" / "special_tokens_map.json", tokens)
    tokenizer.backend_tokenizer.save(str(folder / "tokenizer" / "tokenizer.json"))
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
