"""Vocabulary tables, special tokens found in text, `ListTokenizer`; readers of vocab.json, merges.txt, vocab.txt.

A sentence is cut at its special pieces, such as `</s>` or `[MASK]`; the text between is split by the rules of a kind of
vocabulary. Readers take vocab.json, merges.txt and vocab.txt; their errors are one sentence that begins with the file.

A plain list is a vocab.txt, one piece per line, the first with id 0; or a vocab.json, {"piece": id}. If every piece but
the special ones is a single character, a text is cut into characters; otherwise at spaces.

Source: Hugging Face's tokenizers, "added tokens", and the files that it writes; for the two ways of a list Karpathy,
"char-rnn" (2015), and The Annotated Transformer (2018).
"""

import re
import unicodedata
from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from transformer import errors
from transformer.errors import ClauseError, TokenizerError, shown
from transformer.files import strictjson
from transformer.text.sentencepiece_check import MAX_PIECES
from transformer.text.tokenizer import NO_WRAPPING, AnyTokenizer, Encoding, Wrapping

Token = tuple[int, str]  # id, and the piece as the text has it
Pair = tuple[str, str]


@dataclass(frozen=True)
class Way:
    """How a typed piece is found; field names as in the library."""

    lstrip: bool = False  # strips the spaces before it
    rstrip: bool = False  # strips the spaces after it
    single_word: bool = False  # not found inside a word
    # Searched for last, in the normalised rest, which may be lower-case.
    normalized: bool = False


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
        self._early = _Finder({name: (name, way) for name, way in ways.items() if not way.normalized})
        self._late = _Finder({self._cleaned(name): (name, way) for name, way in ways.items() if way.normalized})

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
        self._ranks = ranks, {text: rank for text, rank in ranks.items() if pieces[text][1].lstrip}
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
            if way.single_word and any(map(_of_word, (text[max(begin - 1, 0) : begin], text[place : place + 1]))):
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
        return name, way, _after_spaces(text, end) if way.rstrip else end

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


Files = Mapping[str, bytes]
MAX_CHARACTERS = 512  # of a piece


def within(name: str) -> AbstractContextManager[None]:
    """Add the file's name to errors."""
    return errors.within(name, TokenizerError)


def file(files: Files, name: str) -> bytes:
    """A file of a folder; TokenizerError if it is missing."""
    if name not in files:
        raise TokenizerError("{label}: is missing.", label=name)
    return files[name]


def json_record(files: Files, name: str) -> dict[str, Any]:
    """A file that holds a JSON object; TokenizerError if it is missing or holds something else."""
    content = file(files, name)
    with within(name):
        record = strictjson.parse(content)
        if not isinstance(record, dict):
            raise ClauseError("expected a JSON object, found {found}", found=shown(record))
        return record


def id_table(files: Files, name: str, *, whole: bool = False) -> list[str]:
    """The pieces of a vocab.json (piece -> id) by their ids; a row without one is unused, or refused if `whole`."""
    record = json_record(files, name)
    with within(name):
        _check_count(len(record))
        pieces: dict[int, str] = {}
        for piece, i in record.items():
            if type(i) is not int or not 0 <= i < MAX_PIECES:  # True is a number in Python
                raise ClauseError(
                    "{piece} has the id {found}; expected a whole number from 0 to {last:,}",
                    piece=shown(piece),
                    found=shown(i),
                    last=MAX_PIECES - 1,
                )
            other = pieces.setdefault(i, piece)
            if other != piece:
                raise ClauseError(
                    "{piece} has the id {i}, which {other} already has", piece=shown(piece), i=i, other=shown(other)
                )
            _check_length(piece)
        if whole and len(pieces) <= max(pieces):
            raise ClauseError(
                "no token has the id {i}; every id from 0 to {last:,} needs a token",
                i=next(i for i in range(max(pieces)) if i not in pieces),
                last=max(pieces),
            )
        return [pieces.get(i, unused(i)) for i in range(max(pieces) + 1)]


def listed(files: Files, name: str) -> list[str]:
    """The pieces of a vocab.txt: one per line, each once, the first has id 0."""
    pieces = _lines(files, name)
    with within(name):
        _check_count(len(pieces))
        seen: dict[str, int] = {}
        for i, piece in enumerate(pieces):
            _check_length(piece)
            if piece in seen:
                raise ClauseError(
                    "line {line:,} is {piece}, the same as line {other:,}",
                    line=i + 1,
                    piece=shown(piece),
                    other=seen[piece] + 1,
                )
            seen[piece] = i
        return pieces


def merges(files: Files, name: str, pieces: Sequence[str]) -> list[Pair]:
    """The pairs of a merges.txt, in the order in which they were learned; refuses those of unknown pieces."""
    known, found, lines = set(pieces), dict[Pair, int](), _lines(files, name)
    with within(name):
        for number, line in enumerate(lines, start=1):
            if line.startswith("#version"):
                continue
            left, _, right = line.partition(" ")
            if not left or not right or " " in right:
                raise ClauseError(
                    "line {line:,} is {found}; expected two tokens with a space between them",
                    line=number,
                    found=shown(line),
                )
            missing = next((piece for piece in (left, right, left + right) if piece not in known), None)
            if missing is not None:
                raise ClauseError(
                    "line {line:,} needs the token {piece}, which the vocabulary does not have",
                    line=number,
                    piece=shown(missing),
                )
            if (left, right) in found:
                raise ClauseError(
                    "line {line:,} merges {left} and {right}, as line {other:,} already does",
                    line=number,
                    left=shown(left),
                    right=shown(right),
                    other=found[left, right],
                )
            found[left, right] = number
    return list(found)


def _lines(files: Files, name: str) -> list[str]:
    content = file(files, name)
    with within(name):
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise ClauseError("is not UTF-8 (error at byte {byte})", byte=error.start) from None
        count = text.count("\n")
        if count > MAX_PIECES:
            raise ClauseError("has {n:,} lines; the limit is {most:,}", n=count, most=MAX_PIECES)
        return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")] if text else []


def _check_count(count: int) -> None:
    if not count:
        raise ClauseError("has no tokens")
    if count > MAX_PIECES:
        raise ClauseError("has too many tokens; the limit is {most:,}", most=MAX_PIECES)


def _check_length(piece: str) -> None:
    if len(piece) > MAX_CHARACTERS:
        raise ClauseError(
            "{piece} has {n:,} characters; the limit is {most}", piece=shown(piece), n=len(piece), most=MAX_CHARACTERS
        )


LINES, IDS = "vocab.txt", "vocab.json"

# What tokenizers call their special pieces, most usual first.
CALLED: Mapping[str, tuple[str, ...]] = {
    "pad_id": ("<pad>", "[PAD]", "<PAD>", "[pad]", "<blank>", "<|pad|>"),
    "unk_id": ("<unk>", "[UNK]", "<UNK>", "[unk]"),
    "bos_id": ("<s>", "<bos>", "[SOS]", "<sos>", "[BOS]", "[CLS]", "<BOS>", "<SOS>", "<start>", "<|startoftext|>"),
    "eos_id": ("</s>", "<eos>", "[EOS]", "[SEP]", "<EOS>", "<end>", "<|endoftext|>"),
}
SPECIAL = frozenset(name for names in CALLED.values() for name in names)


class ListTokenizer(PieceRows):
    """Pieces that are looked up: characters, or words between spaces; `unknown`, if any, is the row of the rest."""

    continuation = " "  # no piece begins with it, so each is a word

    def __init__(self, table: VocabularyTable, *, by_words: bool, unknown: int | None) -> None:
        super().__init__(table)
        self._by_words, self._unknown = by_words, unknown
        self._texts = {piece: i for piece, i in self._ids.items() if i not in table.special}

    def encode(self, text: str) -> Encoding:
        """Look up each character or word; where nothing stands for the unknown, what has no piece is left unread."""
        found = super().encode(text)
        known = [(i, piece) for i, piece in zip(found.ids, found.pieces, strict=True) if i >= 0]
        unread = tuple(piece for i, piece in zip(found.ids, found.pieces, strict=True) if i < 0)
        return Encoding(tuple(i for i, _ in known), tuple(piece for _, piece in known), unread)

    def _split(self, text: str) -> Iterable[Token]:
        for part in text.split() if self._by_words else text:
            if part in self._texts:
                yield self._texts[part], part
            elif not part.isspace():  # a vocabulary of characters may have no space
                yield (-1 if self._unknown is None else self._unknown), part

    def _join(self, ids: Sequence[int]) -> str:
        return (" " if self._by_words else "").join(self.pieces[i] for i in ids)


def pieces_of(files: Files, lines: str = LINES, ids: str = IDS) -> list[str]:
    """The pieces of a list in the order of their ids, of which none may be missing."""
    if lines in files:
        names, file = listed(files, lines), lines
    else:
        names, file = id_table(files, ids, whole=True), ids
    if "" in names:
        raise TokenizerError(
            "{file}: the token with the id {i} is empty; write one token per line, without empty lines.",
            file=file,
            i=names.index(""),
        )
    words = [name for name in names if name not in SPECIAL and len(name) > 1 and any(map(str.isspace, name))]
    if words:
        raise TokenizerError(
            "{file}: the token {piece} contains a space, but a model with a list of tokens splits text at spaces; "
            "give a tokenizer.json instead.",
            file=file,
            piece=shown(words[0]),
        )
    return names


def by_words(pieces: Sequence[str]) -> bool:
    """Whether a list is one of words: not all of its pieces are single characters, special ones aside."""
    return any(len(piece) > 1 for piece in pieces if piece not in SPECIAL)
