"""WordPiece, as BERT and DistilBERT read: words first, then the longest pieces from left to right.

1. A text is cleaned: control characters go, white space becomes a space, a Chinese character is a word of its own;
   uncased vocabularies have small letters without accents.
2. It is cut into words at spaces, and each punctuation mark is one, too.
3. A word begins with the longest piece that fits; what goes on with a word is written ##so. If no piece fits at some
   place, or the word has over 100 characters, the whole word is unknown.

Sources: Schuster and Nakajima, "Japanese and Korean Voice Search" (2012); Devlin et al., "BERT" (2019), section 3,
and the tokenizer published with it.
"""

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from glassformer.extensions.tokenizers.piece_rows import PieceRows, Token, VocabularyTable

GOES_ON = "##"
MOST_CHARACTERS = 100  # of a word

# Blocks of Chinese characters, also those that Japanese and Korean use.
_CHINESE = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B920, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)
# A text that is joined has no space before these.
_TIGHT = (" .", " ?", " !", " ,", " n't", " 'm", " 's", " 've", " 're")


@dataclass(frozen=True)
class Cleaning:
    """What is done to a text first."""

    lower_case: bool = True  # small letters only
    strip_accents: bool | None = None  # letters without their accents; None for "if small letters"
    chinese: bool = True  # A space around each Chinese character

    def clean(self, text: str) -> str:
        """The text as it is cut into words."""
        text = "".join(" " if _is_space(c) else c for c in text if not _is_noise(c))
        if self.chinese:
            text = "".join(f" {c} " if _is_chinese(c) else c for c in text)
        if self.lower_case if self.strip_accents is None else self.strip_accents:
            text = "".join(c for c in unicodedata.normalize("NFD", text) if unicodedata.category(c) != "Mn")
        return "".join(c.lower() for c in text) if self.lower_case else text  # one by one: a last sigma is as any


def _is_space(character: str) -> bool:
    return character in "\t\n\r" or unicodedata.category(character) in ("Zs", "Zl", "Zp")


def _is_noise(character: str) -> bool:
    """Characters that say nothing: control and format signs, private ones, and what stands for a lost one."""
    if character in "\t\n\r":
        return False
    return character == "\ufffd" or unicodedata.category(character)[0] == "C"


def _is_chinese(character: str) -> bool:
    return any(first <= ord(character) <= last for first, last in _CHINESE)


def _is_punctuation(character: str) -> bool:
    # Of ASCII all signs count, such as $ and ^, which Unicode calls symbols.
    signs = "!" <= character <= "~" and not character.isalnum()
    return signs or unicodedata.category(character)[0] == "P"


def cleaned_words(text: str) -> Iterator[str]:
    """The words of a cleaned text; each punctuation mark is one."""
    for chunk in text.split(" "):
        word = ""
        for character in chunk:
            if not _is_punctuation(character):
                word += character
                continue
            if word:
                yield word
            yield character
            word = ""
        if word:
            yield word


class WordPieceTokenizer(PieceRows):
    """WordPiece: a text is cleaned, its words split into `names`; what was added later is found by itself only."""

    continuation = GOES_ON

    def __init__(self, table: VocabularyTable, names: Sequence[str], *, unknown: int, cleaning: Cleaning) -> None:
        self._unknown, self._cleaning = unknown, cleaning
        self._ids_of = {name: i for i, name in enumerate(names)}
        super().__init__(table)

    def _cleaned(self, text: str) -> str:
        return self._cleaning.clean(text)

    def _split(self, text: str) -> Iterable[Token]:
        for word in cleaned_words(text):
            yield from self._pieces_of(word) or [(self._unknown, word)]

    def _pieces_of(self, word: str) -> list[Token]:
        """The pieces of a word; none if it is unknown."""
        found: list[Token] = []
        start = 0
        while start < len(word) <= MOST_CHARACTERS:
            begin = GOES_ON if start else ""
            ends = range(len(word), start, -1)
            end = next((end for end in ends if begin + word[start:end] in self._ids_of), None)
            if end is None:
                return []
            piece = begin + word[start:end]
            found.append((self._ids_of[piece], piece))
            start = end
        return found

    def _join(self, ids: Sequence[int]) -> str:
        text = ""
        for i in ids:
            piece = self.pieces[i]
            part = piece.removeprefix(GOES_ON) if text and piece.startswith(GOES_ON) else f" {piece}" if text else piece
            for tight in _TIGHT:
                part = part.replace(tight, tight[1:])
            text += part
        return text
