"""The tokenizer of laya-tiny: byte-level BPE, NFC, special tokens first."""

from laya.agent import Agent
from laya.common import render_options, serialize_state
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

VOCABULARY = 3072
SPECIAL = {"unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "pad": "[PAD]", "mask": "[MASK]"}


def row_text(row):
    """Everything a row shows to the model, as one text."""
    question = Agent._to_internal(row.question)
    return "\n".join(
        [f"{question['t']} question: {question['ins']}", *render_options(question), serialize_state(row.state)]
    )


def train_tokenizer(rows):
    """A tokenizer with exactly VOCABULARY entries. ValueError when the rows don't have enough different words."""
    tokenizer = Tokenizer(models.BPE(unk_token=SPECIAL["unk"]))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    special = [
        AddedToken(text, lstrip=name == "mask", normalized=False, special=True) for name, text in SPECIAL.items()
    ]
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=special,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator((row_text(row) for row in rows), trainer)
    if tokenizer.get_vocab_size() != VOCABULARY:
        raise ValueError(f"expected {VOCABULARY} tokens, found {tokenizer.get_vocab_size()}: use more rows")
    ids = {name: tokenizer.token_to_id(text) for name, text in SPECIAL.items()}
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{SPECIAL['cls']} $A {SPECIAL['sep']}",
        pair=f"{SPECIAL['cls']} $A {SPECIAL['sep']} $B:1 {SPECIAL['sep']}:1",
        special_tokens=[(SPECIAL[name], ids[name]) for name in ("cls", "sep")],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=8192,
        clean_up_tokenization_spaces=True,
        model_input_names=["input_ids", "attention_mask"],
        **{f"{name}_token": text for name, text in SPECIAL.items()},
    )
