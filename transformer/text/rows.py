"""What the tokenizers of other libraries share: rows with texts, and special pieces that may be typed.

A sentence is cut at the special pieces that stand in it, as `</s>` or `[MASK]` may; what lies between is split by the
rules of a kind of vocabulary, each in a file of its own.

Source: Hugging Face's tokenizers, "added tokens".
"""

import re
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from transformer.errors import TokenizerError
from transformer.text.tokenizer import NO_WRAPPING, Encoding, Wrapping, check_id

Token = tuple[int, str]  # id, and the piece as the text has it


@dataclass(frozen=True)
class Way:
    """How a piece is found where somebody types it.

    Attributes:
        eats_before, eats_behind: It swallows the spaces before it, or behind it.
        alone: Not inside a word.
        late: In what is left when the others are found, after it was cleaned; in small letters, if that cleans it.
    """

    eats_before: bool = False
    eats_behind: bool = False
    alone: bool = False
    late: bool = False


AS_TYPED = Way()


@dataclass(frozen=True)
class Table:
    """What a vocabulary is, whatever splits its texts.

    Attributes:
        pieces: For people, in the order of the ids.
        special: Ids of pieces without a text of their own.
        typed: Pieces that are found where somebody types them, before the text is split -> their ids.
        ways: How some of them are found; the others are as they are typed.
        wrapping: What goes around a text.
    """

    pieces: tuple[str, ...]
    special: Collection[int]
    typed: Mapping[str, int]
    ways: Mapping[str, Way] = field(default_factory=dict)
    wrapping: Wrapping = NO_WRAPPING


def padded(pieces: Sequence[str], size: int | None) -> tuple[str, ...]:
    """Pieces with names for the rows that a table of embeddings has beyond them.

    Raises:
        TokenizerError: It has fewer rows than there are pieces.
    """
    size = len(pieces) if size is None else size
    if size < len(pieces):
        raise TokenizerError(
            "the vocabulary has {found:,} pieces; the model has {size:,} rows for them.", found=len(pieces), size=size
        )
    return (*pieces, *(unused(i) for i in range(len(pieces), size)))


def unused(i: int) -> str:
    """What a row is called that no piece has."""
    return f"<unused {i}>"


class Rows(ABC):
    """A vocabulary as `transformer.text.tokenizer.AnyTokenizer` describes it, without the way of splitting.

    Args:
        table: Its pieces.
    """

    continuation = ""
    notes: tuple[str, ...] = ()

    def __init__(self, table: Table) -> None:
        self.pieces = table.pieces
        self.wrapping = table.wrapping
        self._table = table
        self._ids = {piece: i for i, piece in reversed(list(enumerate(table.pieces)))}  # of two alike the first
        ways = {name: table.ways.get(name, AS_TYPED) for name in table.typed}
        self._early = _Finder({name: (name, way) for name, way in ways.items() if not way.late})
        self._late = _Finder({self._cleaned(name): (name, way) for name, way in ways.items() if way.late})

    @property
    def size(self) -> int:
        """Number of pieces."""
        return len(self.pieces)

    def encode(self, text: str) -> Encoding:
        """Split a text into pieces; no special pieces are added, but those that were typed are found."""
        tokens = [token for part in self._parts(text) for token in part]
        return Encoding(tuple(i for i, _ in tokens), tuple(piece for _, piece in tokens))

    def decode(self, ids: Sequence[int]) -> str:
        """Join pieces to a text; special pieces leave no trace.

        Raises:
            TokenizerError: An id is outside the vocabulary.
        """
        return self._join([i for i in ids if not self.is_special(i)])

    def piece(self, i: int) -> str:
        """The piece of an id.

        Raises:
            TokenizerError: The id is outside the vocabulary.
        """
        check_id(i, self.size)
        return self.pieces[i]

    def id_of(self, piece: str) -> int | None:
        """The id of a piece, None if the vocabulary has no such piece."""
        return self._ids.get(piece)

    def is_special(self, i: int) -> bool:
        """Whether an id stands for no text of its own: start, end, padding, unknown, or an unused row."""
        check_id(i, self.size)
        return i in self._table.special

    @abstractmethod
    def _split(self, text: str) -> Iterable[Token]:
        """The tokens of a text without special pieces."""

    @abstractmethod
    def _join(self, ids: Sequence[int]) -> str:
        """The text of ids without special ones."""

    def _cleaned(self, text: str) -> str:
        """A text as it is before it is split."""
        return text

    def _parts(self, text: str) -> Iterator[Iterable[Token]]:
        for part in self._early.cut(text):
            for inner in [part] if isinstance(part, _Found) else self._late.cut(self._cleaned(part)):
                if isinstance(inner, _Found):
                    yield [(self._table.typed[inner.name], inner.name)]
                else:
                    yield self._split(inner)


@dataclass(frozen=True)
class _Found:
    """A piece that was typed."""

    name: str


class _Finder:
    """Finds pieces that are typed.

    Args:
        pieces: What is looked for -> the piece, and how it is found.
    """

    def __init__(self, pieces: Mapping[str, tuple[str, Way]]) -> None:
        longest = sorted(pieces, key=len, reverse=True)  # of two that fit the longer one is meant
        self._pieces = [pieces[text] for text in longest]
        parts = (_pattern(text, way) for text, (_, way) in zip(longest, self._pieces, strict=True))
        self._pattern = re.compile("|".join(f"({part})" for part in parts) or r"(?!)")

    def begins(self, text: str) -> bool:
        """Whether a text begins with one of them."""
        return self._pattern.match(text) is not None

    def cut(self, text: str) -> Iterator["str | _Found"]:
        """The pieces, and what lies between them."""
        start = 0
        for found in self._pattern.finditer(text):
            name, way = self._pieces[(found.lastindex or 1) - 1]
            begin, end = found.span()
            if way.alone and any(map(_of_word, (text[max(begin - 1, 0) : begin], text[end : end + 1]))):
                continue
            if begin > start:
                yield text[start:begin]
            yield _Found(name)
            start = end
        if start < len(text):
            yield text[start:]


def _pattern(text: str, way: Way) -> str:
    before, behind = r"(?:(?<!\s)\s+)?" if way.eats_before else "", r"\s*" if way.eats_behind else ""
    return before + re.escape(text) + behind


def _of_word(character: str) -> bool:
    """Whether a character belongs to a word, as that library has it; with Python's own, marks would not."""
    marks = unicodedata.category(character)[0] == "M" if character else False
    return character.isalnum() or marks or character in ("_", "\u200c", "\u200d")
