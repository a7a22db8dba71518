"""What the two config files of a checkpoint say about the graph. Unknown or missing architecture keys are fatal."""

from dataclasses import dataclass

from . import strict_json
from .errors import ConvertError

HEAD_DIM = 64
LAYER_KINDS = ("full_attention", "sliding_attention")

# The only value of each key that the graph implements.
FIXED = {
    "add_cross_attention": (False,),
    "attention_bias": (False,),
    "chunk_size_feed_forward": (0,),
    "head_dim": (None, HEAD_DIM),
    "hidden_activation": ("gelu",),
    "is_decoder": (False,),
    "is_encoder_decoder": (False,),
    "mlp_bias": (False,),
    "model_type": ("modernbert",),
    "norm_bias": (False,),
    "per_layer_config": (None, {}),
    "position_embedding_type": ("absolute", "sans_pos"),
    "pruned_heads": (None, {}),
    "quantization_config": (None,),
    "rope_scaling": (None,),
}
# Keys that decide shapes, kinds and numbers; each is read below.
ARCHITECTURE = {
    "global_attn_every_n_layers", "global_rope_theta", "hidden_size", "intermediate_size", "layer_norm_eps",
    "layer_types", "local_attention", "local_rope_theta", "max_position_embeddings", "norm_eps",
    "num_attention_heads", "num_hidden_layers", "rope_parameters", "vocab_size",
}  # fmt: skip
# Keys that change nothing in an inference pass over hidden states.
HARMLESS = {
    "_attn_implementation", "_attn_implementation_autoset", "_name_or_path", "architectures", "attention_dropout",
    "attn_implementation", "bos_token_id", "classifier_activation", "classifier_bias", "classifier_dropout",
    "classifier_pooling", "cls_token_id", "decoder_bias", "deterministic_flash_attn", "dtype", "embedding_dropout",
    "eos_token_id", "finetuning_task", "gradient_checkpointing", "id2label", "initializer_cutoff_factor",
    "initializer_range", "label2id", "mask_token_id", "mlp_dropout", "name_or_path", "num_labels",
    "output_attentions", "output_hidden_states", "pad_token_id", "problem_type", "reference_compile",
    "repad_logits_with_grad", "return_dict", "sep_token_id", "sparse_pred_ignore_index", "sparse_prediction",
    "tie_word_embeddings", "tokenizer_class", "torch_dtype", "torchscript", "transformers_version", "unk_token_id",
    "use_cache",
}  # fmt: skip


@dataclass(frozen=True)
class Architecture:
    """The numbers that fix the graph, its weights and its host side.

    hidden (d), intermediate (I), vocab (V); layers: the attention kind of each encoder layer; rope_bases: kind -> base;
    window: |i-j| <= window in sliding layers; head_layers and actions: of the decision head; max_length: in tokens.
    """

    hidden: int
    intermediate: int
    vocab: int
    heads: int
    layers: tuple
    rope_bases: dict
    norm_eps: float
    window: int
    head_layers: int
    actions: int
    max_length: int

    @property
    def decision_heads(self):
        return self.hidden // HEAD_DIM


# Epsilon of torch's LayerNorm, which the decision head and the scorer use unconfigured.
HEAD_NORM_EPS = 1e-5


def read_architecture(encoder_path, agent_path):
    """Reads and checks both config files. Raises ConvertError CONFIG_* or UNSUPPORTED_*."""
    encoder = _Config(encoder_path)
    agent = _Config(agent_path)
    _check_keys(encoder)
    hidden = encoder.integer("hidden_size", HEAD_DIM, 1 << 14)
    heads = encoder.integer("num_attention_heads", 1, 1 << 8)
    if hidden != heads * HEAD_DIM:
        raise encoder.unsupported("num_attention_heads", f"hidden_size / {HEAD_DIM}", heads)
    layers = _layer_kinds(encoder)
    norm_eps = encoder.number("norm_eps", 1e-12, 1e-2)
    if encoder.values.get("layer_norm_eps", norm_eps) != norm_eps:
        raise encoder.unsupported("layer_norm_eps", norm_eps, encoder.values["layer_norm_eps"])
    _check_agent(agent)
    return Architecture(
        hidden=hidden,
        intermediate=encoder.integer("intermediate_size", 1, 1 << 17),
        vocab=encoder.integer("vocab_size", 1, 1 << 22),
        heads=heads,
        layers=layers,
        rope_bases={kind: _rope_base(encoder, kind) for kind in sorted(set(layers))},
        norm_eps=float(norm_eps),
        window=encoder.integer("local_attention", 1, 1 << 20) // 2,
        head_layers=agent.integer("head_layers", 1, 64),
        actions=len(agent.values.get("act_costs", {})) + 1,
        max_length=_max_length(encoder, agent),
    )


class _Config:
    """A parsed config file that knows its path."""

    def __init__(self, path):
        self.path = path
        self.values = strict_json.read_object(path, "CONFIG_UNREADABLE")

    def integer(self, key, low, high, default=None):
        value = self._value(key, default)
        if not strict_json.is_int(value, low, high):
            raise self.invalid(key, f"an integer from {low} to {high}")
        return value

    def number(self, key, low, high):
        value = self._value(key, None)
        if not strict_json.is_number(value) or not low <= value <= high:
            raise self.invalid(key, f"a number from {low} to {high}")
        return value

    def _value(self, key, default):
        if key not in self.values and default is None:
            raise ConvertError(
                "CONFIG_KEY_MISSING", f"the config lacks {key}", expected=key, found=None, where=f"{self.path}: {key}",
                hint="fetch the checkpoint again; a missing architecture key cannot be guessed",
            )  # fmt: skip
        return self.values.get(key, default)

    def invalid(self, key, expected):
        return ConvertError(
            "CONFIG_VALUE_INVALID", f"{key} is not valid", expected=expected, found=_short(self.values.get(key)),
            where=f"{self.path}: {key}",
        )  # fmt: skip

    def unsupported(self, key, expected, found):
        return ConvertError(
            "UNSUPPORTED_ARCHITECTURE", f"{key} has a value the graph does not implement", expected=expected,
            found=_short(found), where=f"{self.path}: {key}",
        )  # fmt: skip


def _check_keys(encoder):
    for key in ("model_type", "hidden_activation"):
        if key not in encoder.values:
            raise encoder.unsupported(key, FIXED[key][0], None)
    for key, value in encoder.values.items():
        if key in FIXED:
            if not any(type(value) is type(allowed) and value == allowed for allowed in FIXED[key]):
                raise encoder.unsupported(key, list(FIXED[key]), value)
        elif key not in ARCHITECTURE and key not in HARMLESS:
            raise ConvertError(
                "CONFIG_KEY_UNKNOWN", f"the encoder config has a key that may change the model: {key[:80]}",
                expected="only known keys", found=key[:80], where=f"{encoder.path}: {key[:80]}",
                hint="a newer library may have renamed a key; convert with a release that knows it",
            )  # fmt: skip


def _max_length(encoder, agent):
    longest = encoder.integer("max_position_embeddings", 1, 1 << 24, default=1 << 24)
    value = agent.integer("max_len", 1, 1 << 20, default=512)
    if value > longest:
        raise agent.invalid("max_len", f"at most max_position_embeddings, {longest}")
    return value


def _layer_kinds(encoder):
    count = encoder.integer("num_hidden_layers", 1, 256)
    kinds = encoder.values.get("layer_types")
    if kinds is None:
        every = encoder.integer("global_attn_every_n_layers", 1, 256)
        return tuple(LAYER_KINDS[0] if i % every == 0 else LAYER_KINDS[1] for i in range(count))
    if not isinstance(kinds, list) or len(kinds) != count:
        raise encoder.invalid("layer_types", f"a list of {count} layer kinds")
    for kind in kinds:
        if kind not in LAYER_KINDS:
            raise encoder.unsupported("layer_types", list(LAYER_KINDS), kind)
    return tuple(kinds)


def _rope_base(encoder, kind):
    """`rope_parameters` of the kind, else the older key of the kind, else that key's published default."""
    older, default = ("global_rope_theta", 160000.0) if kind == LAYER_KINDS[0] else ("local_rope_theta", 10000.0)
    flat = encoder.number(older, 1.0, 1e9) if older in encoder.values else None
    every = encoder.values.get("rope_parameters")
    if every is None:
        return float(default if flat is None else flat)
    if not isinstance(every, dict) or set(every) - set(LAYER_KINDS):
        raise encoder.unsupported("rope_parameters", list(LAYER_KINDS), every)
    own = every.get(kind)
    if not isinstance(own, dict) or not strict_json.is_number(own.get("rope_theta")) or own["rope_theta"] < 1:
        raise encoder.invalid("rope_parameters", f"{kind} with a rope_theta of at least 1")
    if own.get("rope_type", "default") != "default":
        raise encoder.unsupported("rope_parameters", "rope_type default", own["rope_type"])
    if set(own) - {"rope_theta", "rope_type"}:
        raise encoder.unsupported("rope_parameters", ["rope_theta", "rope_type"], sorted(own))
    if flat is not None and flat != own["rope_theta"]:
        raise encoder.unsupported(older, own["rope_theta"], flat)
    return float(own["rope_theta"])


def _check_agent(agent):
    if not isinstance(agent.values.get("encoder"), str):
        raise agent.invalid("encoder", "a string")
    if not isinstance(agent.values.get("act_costs", {}), dict):
        raise agent.invalid("act_costs", "an object")
    layout = agent.values.get("option_layout", "sequential")
    if layout != "sequential":
        raise ConvertError(
            "UNSUPPORTED_OPTION_LAYOUT", "the checkpoint lays options out in a way the prompt does not implement",
            expected="sequential", found=_short(layout), where=f"{agent.path}: option_layout",
        )  # fmt: skip
    temperature = agent.values.get("temperature", [1.0, 1.0, 1.0])
    if not isinstance(temperature, list) or len(temperature) != 3:
        raise agent.invalid("temperature", "a list of exactly 3 temperatures")


def _short(value):
    return value if value is None or isinstance(value, (bool, int, float)) else str(value)[:200]
