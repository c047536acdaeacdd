"""Normalisation of source text before the tokenizer.

Each checkpoint declares its steps in `ModelConfig.normalisation`:

- `nfc`: Unicode canonical composition; é is then always one character.
- `simplified-chinese`: Traditional characters become simplified ones (OpenCC, table t2s).

A tokenizer may normalise further (SentencePiece's own rules are part of its model file).
"""

import unicodedata
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

from transformer.i18n import say

MAX_REPEATED = 80  # characters of the text that a note repeats


def normalise(text: str, steps: Sequence[str]) -> str:
    """Apply the named steps in order."""
    for step in steps:
        text = _STEPS[step](text)
    return text


def notes_on(text: str, steps: Sequence[str]) -> tuple[str, ...]:
    """One sentence for each step that a reader should know of because it changed the text visibly."""
    notes = []
    for step in steps:
        changed = _STEPS[step](text)
        if step == "simplified-chinese" and changed != text:
            notes.append(_simplified_note(changed))
        text = changed
    return tuple(notes)


def _simplified_note(text: str) -> str:
    if len(text) <= MAX_REPEATED:
        return say("Traditional characters were converted to simplified ones: {text}", text=text)
    begin = text[:MAX_REPEATED].rstrip()
    return say("Traditional characters were converted to simplified ones: {text}…", text=begin)


@lru_cache(maxsize=1)
def _converter() -> Any:
    from opencc import OpenCC  # not before it is needed: the library is imported without

    return OpenCC("t2s")


_STEPS: dict[str, Callable[[str], str]] = {
    "nfc": partial(unicodedata.normalize, "NFC"),
    "simplified-chinese": lambda text: str(_converter().convert(text)),
}
