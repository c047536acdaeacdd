"""Tokenizers: base class `AnyTokenizer`, SentencePiece, raw ids without a vocabulary; normalisation of text.

Each checkpoint declares the normalisation of its source text in `ModelConfig.normalisation`:

- `nfc`: Unicode canonical composition; é is then always one character.
- `simplified-chinese`: Traditional characters become simplified ones (OpenCC, table t2s).

A tokenizer may normalise further (SentencePiece's own rules are part of its model file). A training here learns
SentencePiece; an extension reads the tokenizers of other programs.

Source: Kudo and Richardson, "SentencePiece" (2018).
"""

import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import sentencepiece

from transformer.errors import TokenizerError
from transformer.i18n import say
from transformer.text import SPACE_MARK as SPACE_MARK

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
            begin = changed if len(changed) <= MAX_REPEATED else f"{changed[:MAX_REPEATED].rstrip()}…"
            notes.append(say("Traditional characters were converted to simplified ones: {text}", text=begin))
        text = changed
    return tuple(notes)


@lru_cache(maxsize=1)
def _converter() -> Any:
    from opencc import OpenCC  # not before it is needed: the library is imported without

    return OpenCC("t2s")


_STEPS: dict[str, Callable[[str], str]] = {
    "nfc": partial(unicodedata.normalize, "NFC"),
    "simplified-chinese": lambda text: str(_converter().convert(text)),
}


@dataclass(frozen=True)
class Encoding:
    """A text as tokens."""

    ids: tuple[int, ...]  # the id of each token
    # The piece of each token as it is in the text, also if its id is the unknown one.
    pieces: tuple[str, ...]
    # Words without tokens: only numbers are read if there is no vocabulary.
    unread: tuple[str, ...] = ()


@dataclass(frozen=True)
class Wrapping:
    """The ids that a tokenizer of another library puts around a text; `encode` never does."""

    before: tuple[int, ...] = ()  # around a source
    after: tuple[int, ...] = ()  # around a source
    start: int | None = None  # what the decoder reads first; None if the tokenizer does not say
    # What the decoder writes first, as the language of the target; None for whatever it likes.
    forced: int | None = None


NO_WRAPPING = Wrapping()


class AnyTokenizer(ABC):
    """What can be done with a vocabulary, wherever it comes from.

    Pieces are texts for people: a space is ▁, a byte that is not a whole character <0xE4>. `special` are the ids of
    pieces without a text of their own.
    """

    continuation = ""  # what a piece begins with that goes on with a word; "" if words begin at the mark of a space
    notes: tuple[str, ...] = ()  # what a reader should know of it
    wrapping = NO_WRAPPING  # what its own library puts around a text

    def __init__(self, pieces: tuple[str, ...], special: Collection[int] = ()) -> None:
        self.pieces = pieces  # all of them, in the order of their ids
        self._special = special
        self._ids = {piece: i for i, piece in reversed(list(enumerate(pieces)))}  # of two alike the first

    @property
    def size(self) -> int:
        """Number of pieces."""
        return len(self.pieces)

    @abstractmethod
    def encode(self, text: str) -> Encoding:
        """Split a text into pieces; no special pieces are added."""

    @abstractmethod
    def decode(self, ids: Sequence[int]) -> str:
        """Join pieces to a text; special pieces leave no trace. A TokenizerError if an id is outside the vocabulary."""

    def piece(self, i: int) -> str:
        """The piece of an id; a TokenizerError if that is outside the vocabulary."""
        check_id(i, self.size)
        return self.pieces[i]

    def id_of(self, piece: str) -> int | None:
        """The id of a piece, None if the vocabulary has no such piece."""
        return self._ids.get(piece)

    def is_special(self, i: int) -> bool:
        """Whether an id stands for no text of its own: start, end, padding, unknown, or an unused row."""
        check_id(i, self.size)
        return i in self._special


class Tokenizer(AnyTokenizer):
    """One vocabulary, the bytes of a SentencePiece model file that was checked; a TokenizerError if unreadable."""

    def __init__(self, model: bytes) -> None:
        self._processor = p = sentencepiece.SentencePieceProcessor()
        try:
            p.LoadFromSerializedProto(model)
        except (RuntimeError, OSError) as error:
            raise TokenizerError("SentencePiece cannot read this model: {reason}", reason=str(error)[:120]) from None
        super().__init__(tuple(map(p.IdToPiece, range(p.GetPieceSize()))))

    def encode(self, text: str) -> Encoding:
        """Split a text into pieces; no special pieces are added."""
        ids = self._processor.EncodeAsIds(text)
        pieces = self._processor.EncodeAsPieces(text)
        return Encoding(tuple(ids), tuple(pieces))

    def serialized(self) -> bytes:
        """The bytes of its model file."""
        return bytes(self._processor.serialized_model_proto())

    def normalised(self, text: str) -> str:
        """A text as it is before it is split."""
        return str(self._processor.Normalize(text))

    def decode(self, ids: Sequence[int]) -> str:
        """Join pieces to a text; control pieces (start, end, padding) leave no trace."""
        for i in (min(ids), max(ids)) if ids else ():
            check_id(i, self.size)
        return str(self._processor.DecodeIds(list(ids)))

    def is_special(self, i: int) -> bool:
        """Whether it is a control piece, the unknown one or an unused one."""
        check_id(i, self.size)
        p = self._processor
        return bool(p.IsControl(i) or p.IsUnknown(i) or p.IsUnused(i))

    def join(self, pieces: Sequence[str]) -> str:
        """Join pieces that are given as texts, also such as this vocabulary does not have."""
        return str(self._processor.DecodePieces(list(pieces)))


def check_id(i: int, size: int) -> None:
    """Refuse an id that a vocabulary does not have."""
    if not 0 <= i < size:
        raise TokenizerError("token id {i} is outside the vocabulary; ids go from 0 to {last}.", i=i, last=size - 1)


class RawIds(AnyTokenizer):
    """No vocabulary: a text is a row of ids, such as 12 7 5, and each piece is the number of its row."""

    continuation = " "  # no number begins with it, so each is a word
    notes = (
        say(
            "This model has no tokenizer, so its tokens are the row numbers of its embedding table. Type numbers "
            "separated by spaces, for example 12 7 5."
        ),
    )

    def __init__(self, size: int, special: Collection[int] = ()) -> None:
        super().__init__(tuple(map(str, range(size))), special)

    def encode(self, text: str) -> Encoding:
        """The ids that a text lists; words that are not ids of this model stay unread."""
        listed = text.replace(",", " ").split()
        read = [word for word in listed if word in self._ids]
        unread = tuple(word for word in listed if word not in self._ids)
        return Encoding(tuple(self._ids[word] for word in read), tuple(read), unread)

    def decode(self, ids: Sequence[int]) -> str:
        """The ids with spaces between them, without special ones."""
        return " ".join(str(i) for i in ids if not self.is_special(i))
