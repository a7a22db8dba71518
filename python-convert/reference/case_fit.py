"""Fits request texts to a checkpoint's tokenizer, so that a row has exactly the number of tokens asked for."""

from laya.agent import Agent
from laya.common import build_head, encode_text, serialize_state

# Short endings; one of them, or a few in a row, adds exactly one token in every tokenizer seen.
ENDINGS = (" now", " today", " again", " a", " the", ".", "!", " 1", " !", "\n", " x")
MAX_ENDINGS = 12


class FitError(Exception):
    """No text of exactly the wanted number of tokens was found."""


class Fitter:
    """Counts tokens as upstream does, and makes texts of a wanted count.

    `max_len` and `head_max_len` come from the checkpoint's config, in tokens.
    """

    def __init__(self, tokenizer, config):
        self.tok = tokenizer
        self.max_len = config.get("max_len", 512)
        self.head_max_len = config.get("head_max_len", 192)

    @property
    def special_tokens(self):
        """The literal texts of the tokenizer's special tokens, sorted."""
        return sorted(set(self.tok.all_special_tokens))

    def text_tokens(self, text):
        """Number of tokens of `text` as a state."""
        clean = serialize_state(text).replace(self.tok.mask_token, " ")
        return len(encode_text(self.tok, clean, add_special_tokens=False)["input_ids"])

    def head_tokens(self, question):
        """Number of tokens of everything before the state: `[CLS] question [SEP] options [SEP]`."""
        return len(build_head(self.tok, Agent._to_internal(question), self.head_max_len)[0])

    def row_tokens(self, state, question):
        """Length of the row before any cut to `max_len`."""
        return self.head_tokens(question) + self.text_tokens(state) + 1

    def state_for(self, question, row, words):
        """A text from `words` (an endless iterator) that makes `question`'s row exactly `row` tokens long.

        None when the question alone leaves no room; FitError when no text fits.
        """
        room = row - self.head_tokens(question) - 1
        if room < 1:
            return None
        text = next(words)
        if self.text_tokens(text) > room:
            raise FitError(f"the first word has more than {room} tokens")
        while True:
            longer = f"{text} {next(words)}"
            if self.text_tokens(longer) > room:
                return self._pad(text, room, self.text_tokens)
            text = longer

    def longer_by(self, question, tokens):
        """`question` with instructions that make its head exactly `tokens` longer."""
        wanted = self.head_tokens(question) + tokens

        def size(instructions):
            return self.head_tokens({**question, "instructions": instructions})

        return {**question, "instructions": self._pad(question["instructions"], wanted, size)}

    def _pad(self, text, wanted, size):
        for _ in range(MAX_ENDINGS * 4):
            have = size(text)
            if have == wanted:
                return text
            step = next((text + end for end in ENDINGS if have < size(text + end) <= wanted), None)
            if step is None:
                break
            text = step
        raise FitError(f"no text of exactly {wanted} tokens: {text!r} has {size(text)}")
