"""Read the vocabulary files of other libraries: vocab.json, merges.txt and vocab.txt, without trusting them.

Source: Hugging Face's tokenizers, which writes them. What is wrong is said in one sentence that begins with the file.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from transformer.errors import ClauseError, TokenizerError, shown
from transformer.files import strictjson
from transformer.text.byte_pairs import SIGNS, Pair
from transformer.text.piece_rows import unused
from transformer.text.sentencepiece_check import MAX_PIECES

Files = Mapping[str, bytes]
MAX_CHARACTERS = 512  # of a piece


@contextmanager
def within(name: str) -> Iterator[None]:
    """Say of what is refused which file it is in."""
    try:
        yield
    except TokenizerError as error:
        raise TokenizerError("{file}: {problem}", file=name, problem=error.sentence) from None


def file(files: Files, name: str) -> bytes:
    """A file of a folder; TokenizerError if it is missing."""
    if name not in files:
        raise TokenizerError("{file}: is missing.", file=name)
    return files[name]


def json_record(files: Files, name: str) -> dict[str, Any]:
    """A file that holds a JSON object; TokenizerError if it is missing or holds something else."""
    try:
        record = strictjson.parse(file(files, name))
    except ClauseError as error:
        raise TokenizerError("{file}: {problem}.", file=name, problem=error.sentence) from None
    if not isinstance(record, dict):
        raise TokenizerError("{file}: expected a JSON object, found {found}.", file=name, found=shown(record))
    return record


def id_table(files: Files, name: str, *, whole: bool = False) -> list[str]:
    """The pieces of a vocab.json (piece -> id) by their ids; a row without one is unused, or refused if `whole`."""
    record = json_record(files, name)
    _check_count(len(record), name)
    pieces: dict[int, str] = {}
    for piece, i in record.items():
        if type(i) is not int or not 0 <= i < MAX_PIECES:  # True is a number in Python
            raise TokenizerError(
                "{file}: {piece} has the id {found}; expected a whole number from 0 to {last:,}.",
                file=name,
                piece=shown(piece),
                found=shown(i),
                last=MAX_PIECES - 1,
            )
        other = pieces.setdefault(i, piece)
        if other != piece:
            raise TokenizerError(
                "{file}: {piece} has the id {i}, which {other} already has.",
                file=name,
                piece=shown(piece),
                i=i,
                other=shown(other),
            )
        _check_length(piece, name)
    if whole and len(pieces) <= max(pieces):
        raise TokenizerError(
            "{file}: no piece has the id {i}; every id from 0 to {last:,} needs a piece.",
            file=name,
            i=next(i for i in range(max(pieces)) if i not in pieces),
            last=max(pieces),
        )
    return [pieces.get(i, unused(i)) for i in range(max(pieces) + 1)]


def listed(files: Files, name: str) -> list[str]:
    """The pieces of a vocab.txt: one a line, each once, the first has id 0."""
    pieces = _lines(files, name)
    _check_count(len(pieces), name)
    seen: dict[str, int] = {}
    for i, piece in enumerate(pieces):
        _check_length(piece, name)
        if piece in seen:
            raise TokenizerError(
                "{file}: line {line:,} is {piece}, the same as line {other:,}.",
                file=name,
                line=i + 1,
                piece=shown(piece),
                other=seen[piece] + 1,
            )
        seen[piece] = i
    return pieces


def merges(files: Files, name: str, pieces: Sequence[str]) -> list[Pair]:
    """The pairs of a merges.txt, in the order in which they were learned; refuses those of unknown pieces."""
    known, found = set(pieces), dict[Pair, int]()
    for number, line in enumerate(_lines(files, name), start=1):
        if line.startswith("#version"):
            continue
        left, _, right = line.partition(" ")
        if not left or not right or " " in right:
            raise TokenizerError(
                "{file}: line {line:,} is {found}; expected two pieces with a space between them.",
                file=name,
                line=number,
                found=shown(line),
            )
        missing = next((piece for piece in (left, right, left + right) if piece not in known), None)
        if missing is not None:
            raise TokenizerError(
                "{file}: line {line:,} needs the piece {piece}, which the vocabulary does not have.",
                file=name,
                line=number,
                piece=shown(missing),
            )
        if (left, right) in found:
            raise TokenizerError(
                "{file}: line {line:,} merges {left} and {right}, as line {other:,} already does.",
                file=name,
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
    for byte, sign in SIGNS.items():
        if sign not in known:
            raise TokenizerError(
                "{file}: has no piece for the byte {byte} (written {sign}); a byte vocabulary needs a piece for "
                "each of the 256 bytes.",
                file=name,
                byte=f"0x{byte:02X}",
                sign=shown(sign),
            )


def _lines(files: Files, name: str) -> list[str]:
    try:
        text = file(files, name).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TokenizerError("{file}: is not UTF-8 (error at byte {byte}).", file=name, byte=error.start) from None
    count = text.count("\n")
    if count > MAX_PIECES:
        raise TokenizerError("{file}: has {n:,} lines; the limit is {most:,}.", file=name, n=count, most=MAX_PIECES)
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")] if text else []


def _check_count(count: int, name: str) -> None:
    if not count:
        raise TokenizerError("{file}: has no pieces.", file=name)
    if count > MAX_PIECES:
        raise TokenizerError("{file}: has too many pieces; the limit is {most:,}.", file=name, most=MAX_PIECES)


def _check_length(piece: str, name: str) -> None:
    if len(piece) > MAX_CHARACTERS:
        raise TokenizerError(
            "{file}: {piece} has {n:,} characters; the limit is {most}.",
            file=name,
            piece=shown(piece),
            n=len(piece),
            most=MAX_CHARACTERS,
        )
