"""Suggested sentence for a model without examples: one of another model that its tokenizer reads, or own tokens.

How well a tokenizer reads a text is measured by what it makes of it: nothing unknown, and few tokens a word. What
language a model was trained on it does not know; of two languages that share a vocabulary either may be suggested.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING, Final

from transformer.text.tokenizer import AnyTokenizer, RawIds

if TYPE_CHECKING:
    from transformer.checkpoint.load import Checkpoint

N_IDS: Final = 4
MOST_A_WORD: Final = 7  # tokens; a tokenizer that has more spells the text in letters or bytes
LETTERS_A_WORD: Final = 2  # of a text without spaces
_PARTS: Final = re.compile(r"\w+|[^\w\s]")


def suggested(checkpoint: Checkpoint, others: Iterable[str]) -> str:
    """A text that a model can read: its own example, else the best read of some others, else ids of its own."""
    tokenizer = checkpoint.src_tokenizer
    if own := checkpoint.card.first_example():
        return own
    if not isinstance(tokenizer, RawIds):
        read = {text: _tokens_a_word(tokenizer, text) for text in others}
        best = min(read, key=read.__getitem__, default="")
        if best and read[best] <= MOST_A_WORD:
            return best
    ordinary = (i for i in range(tokenizer.size) if not tokenizer.is_special(i) and tokenizer.decode([i]).strip())
    return tokenizer.decode(list(islice(ordinary, N_IDS))).strip()


def _tokens_a_word(tokenizer: AnyTokenizer, text: str) -> float:
    """Infinite where something is unknown."""
    found = tokenizer.encode(text)
    if found.unread or not found.ids or any(map(tokenizer.is_special, found.ids)):
        return float("inf")
    unspaced = sum(unicodedata.category(letter) == "Lo" for letter in text)  # such as ideographs
    parts = len(_PARTS.findall(text)) - bool(unspaced)
    return (len(found.ids) + 1) / (unspaced / LETTERS_A_WORD + parts)  # one more: of two alike the longer
