"""Readers of untrusted vocab.json, merges.txt and vocab.txt; tokenizer of plain lists; special tokens' names.

Source: Hugging Face's tokenizers, which writes them. An error is one sentence that begins with the file.

A plain list is a vocab.txt, one piece per line, the first with id 0; or a vocab.json, {"piece": id}. If every piece but
the special ones is a single character, a text is cut into characters; otherwise at spaces.

Source: Karpathy, "char-rnn" (2015), and The Annotated Transformer (2018), for the two ways.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from glassformer.extensions.tokenizers.piece_rows import PieceRows, Token, VocabularyTable, unused
from glassformer.extensions.tokenizers.subword_tokenizers import SIGNS, Pair
from transformer import errors
from transformer.errors import ClauseError, TokenizerError, shown
from transformer.files import strictjson
from transformer.text.sentencepiece_check import MAX_PIECES
from transformer.text.tokenizer import Encoding

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


def check_bytes(pieces: Sequence[str], name: str) -> None:
    """Make sure that a vocabulary over bytes has every byte, so that it can read any text."""
    known = set(pieces)
    with within(name):
        for byte, sign in SIGNS.items():
            if sign not in known:
                raise ClauseError(
                    "has no token for the byte {byte} (written {sign}); a byte vocabulary needs a token for each of "
                    "the 256 bytes",
                    byte=f"0x{byte:02X}",
                    sign=shown(sign),
                )


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
