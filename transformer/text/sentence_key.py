"""Key under which two sentences are the same: their letters and digits."""

import unicodedata


class _Letters(dict[int, int | None]):
    """A table for `str.translate` that keeps letters, digits and the marks on them, and is filled on demand."""

    def __missing__(self, code: int) -> int | None:
        character = chr(code)
        # Marks count: in Hindi or Thai a vowel is one.
        kept = character.isalnum() or unicodedata.category(character).startswith("M")
        self[code] = code if kept else None
        return self[code]


_LETTERS = _Letters()


def sentence_key(text: str) -> str:
    """What is left of a sentence without case, width, punctuation, symbols and spaces."""
    folded = text.casefold() if text.isascii() else unicodedata.normalize("NFKC", text).casefold()
    key = folded.translate(_LETTERS)
    return key if key.isascii() else unicodedata.normalize("NFC", key)
