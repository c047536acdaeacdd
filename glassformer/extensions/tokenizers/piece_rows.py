"""Base class of imported tokenizers: vocabulary rows, and special tokens in text.

A sentence is cut at its special pieces, such as `</s>` or `[MASK]`; the text between is split by the rules of a kind of
vocabulary, each in its own module.

Source: Hugging Face's tokenizers, "added tokens".
"""

import re
import unicodedata
from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from transformer.errors import TokenizerError
from transformer.text.tokenizer import NO_WRAPPING, AnyTokenizer, Encoding, Wrapping

Token = tuple[int, str]  # id, and the piece as the text has it


@dataclass(frozen=True)
class Way:
    """How a typed piece is found."""

    eats_before: bool = False  # strips the spaces before it
    eats_behind: bool = False  # strips the spaces after it
    alone: bool = False  # not inside a word
    # Searched for last, in the cleaned rest, which may be lower-case.
    late: bool = False


AS_TYPED = Way()


@dataclass(frozen=True)
class VocabularyTable:
    """What a vocabulary is, whatever splits its texts."""

    pieces: tuple[str, ...]  # for people, in the order of the ids
    special: Collection[int]  # ids of pieces without a text of their own
    typed: Mapping[str, int]  # pieces that are found in typed text before it is split -> their ids
    # How some of them are found; the others match exactly.
    ways: Mapping[str, Way] = field(default_factory=dict)
    wrapping: Wrapping = NO_WRAPPING  # what goes around a text


def padded(pieces: Sequence[str], size: int | None) -> tuple[str, ...]:
    """Pieces with names for the rows that a table of embeddings has beyond them; TokenizerError if it has fewer."""
    size = len(pieces) if size is None else size
    if size < len(pieces):
        raise TokenizerError(
            "the vocabulary has {found:,} tokens, but the model's embedding table has only {size:,} rows.",
            found=len(pieces),
            size=size,
        )
    return (*pieces, *(unused(i) for i in range(len(pieces), size)))


def unused(i: int) -> str:
    """The name of a row without a piece."""
    return f"<unused {i}>"


class PieceRows(AnyTokenizer):
    """A vocabulary of rows, without the way of splitting: special pieces that were typed are found first."""

    def __init__(self, table: VocabularyTable) -> None:
        super().__init__(table.pieces, table.special)
        self.wrapping, self._typed = table.wrapping, table.typed
        ways = {name: table.ways.get(name, AS_TYPED) for name in table.typed}
        self._early = _Finder({name: (name, way) for name, way in ways.items() if not way.late})
        self._late = _Finder({self._cleaned(name): (name, way) for name, way in ways.items() if way.late})

    def encode(self, text: str) -> Encoding:
        """Split a text into pieces; no special pieces are added, but those that were typed are found."""
        tokens = [token for part in self._parts(text) for token in part]
        return Encoding(tuple(i for i, _ in tokens), tuple(piece for _, piece in tokens))

    def decode(self, ids: Sequence[int]) -> str:
        """Join pieces to a text; special pieces leave no trace."""
        return self._join([i for i in ids if not self.is_special(i)])

    @abstractmethod
    def _split(self, text: str) -> Iterable[Token]:
        """The tokens of a text without special pieces."""

    @abstractmethod
    def _join(self, ids: Sequence[int]) -> str:
        """The text of ids without special ones."""

    def _cleaned(self, text: str) -> str:
        """Normalise a text before it is split."""
        return text

    def _parts(self, text: str) -> Iterator[Iterable[Token]]:
        for part in self._early.cut(text):
            for inner in [part] if isinstance(part, _Found) else self._late.cut(self._cleaned(part)):
                if isinstance(inner, _Found):
                    yield [(self._typed[inner.name], inner.name)]
                else:
                    yield self._split(inner)


@dataclass(frozen=True)
class _Found:
    name: str


class _Finder:
    """Finds typed pieces from left to right, the longest of several at a place.

    Each place needs one look-up per length, whatever the pieces are: a regular expression of thousands of pieces would
    take minutes. `pieces` maps the text to find to the piece, and how it is found.
    """

    def __init__(self, pieces: Mapping[str, tuple[str, Way]]) -> None:
        longest = sorted(filter(None, pieces), key=len, reverse=True)
        self._pieces = [(text, *pieces[text]) for text in longest]
        ranks = {text: rank for rank, text in enumerate(longest)}
        self._ranks = ranks, {text: rank for text, rank in ranks.items() if pieces[text][1].eats_before}
        self._lengths = tuple(map(_lengths, self._ranks))
        begin = "".join(map(re.escape, self._lengths[0])) + (r"\s" if self._ranks[1] else "")
        self._begin = re.compile(f"[{begin}]" if begin else r"(?!)")

    def begins(self, text: str) -> bool:
        return bool(text) and self._at(text, 0) is not None

    def cut(self, text: str) -> Iterator["str | _Found"]:
        """Yield the pieces, and the text between them."""
        start = place = 0
        while begins := self._begin.search(text, place):
            begin = place = begins.start()
            found = self._at(text, begin)
            if found is None:
                place += 1
                continue
            name, way, place = found
            if way.alone and any(map(_of_word, (text[max(begin - 1, 0) : begin], text[place : place + 1]))):
                continue
            if begin > start:
                yield text[start:begin]
            yield _Found(name)
            start = place
        if start < len(text):
            yield text[start:]

    def _at(self, text: str, begin: int) -> tuple[str, Way, int] | None:
        """The piece at a place, after spaces that it strips, and its end."""
        fits = [(rank, begin) for rank in self._rank(text, begin, eats=False)]
        if self._ranks[1] and text[begin].isspace() and not text[max(begin - 1, 0) : begin].isspace():
            places = range(begin + 1, _after_spaces(text, begin) + 1)
            fits += [(rank, place) for place in places for rank in self._rank(text, place, eats=True)]
        if not fits:
            return None
        rank, place = min(fits, key=lambda fit: (fit[0], -fit[1]))
        typed, name, way = self._pieces[rank]
        end = place + len(typed)
        return name, way, _after_spaces(text, end) if way.eats_behind else end

    def _rank(self, text: str, place: int, *, eats: bool) -> Iterator[int]:
        """The rank of the longest piece at this place, if any; with `eats` of those that strip spaces before them."""
        ranks = self._ranks[eats]
        for length in self._lengths[eats].get(text[place : place + 1], ()):
            if (rank := ranks.get(text[place : place + length])) is not None:
                yield rank
                return


def _lengths(texts: Iterable[str]) -> dict[str, list[int]]:
    """First character -> the lengths of texts that begin with it, longest first."""
    found: dict[str, dict[int, None]] = {}
    for text in texts:
        found.setdefault(text[0], {})[len(text)] = None
    return {first: sorted(lengths, reverse=True) for first, lengths in found.items()}


def _after_spaces(text: str, place: int) -> int:
    while place < len(text) and text[place].isspace():
        place += 1
    return place


def _of_word(character: str) -> bool:
    """Whether a character is part of a word, as in that library; Python's own test excludes marks."""
    marks = unicodedata.category(character)[0] == "M" if character else False
    return character.isalnum() or marks or character in ("_", "\u200c", "\u200d")
