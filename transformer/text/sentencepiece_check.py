"""Checks of SentencePiece models before they are loaded: a protobuf reader, a trial process, cached verdicts.

SentencePiece trusts its files: some damaged ones end the whole process. So its bytes are first checked by rules
(`read`), then tried in a short-lived subprocess (`transformer.text.sentencepiece_probe`). `check` does both, and
remembers its verdict by the SHA-256 of the bytes.

Source: sentencepiece_model.proto of SentencePiece, for the field numbers. Types: 1 normal, 2 unknown, 3
control, 4 user-defined, 5 unused, 6 byte.

Only as much as a SentencePiece model needs. The reader never copies more than it was given, so a false length costs
nothing.

Source: Protocol Buffers documentation, "Encoding" (protobuf.dev/programming-guides/encoding).
"""

import hashlib
import math
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from transformer.errors import ClauseError, TokenizerError, shown
from transformer.i18n import Sentence, joined, say

MAX_VARINT_BYTES = 10

Field = tuple[int, int | float | memoryview]  # number and value


def fields(message: memoryview) -> Iterator[Field]:
    """The fields of a message, number and value; a ClauseError if the bytes are not a message.

    A value is an int for a varint and for 64 fixed bits, a float for 32 fixed bits (here always a float), a view of the
    bytes for text, bytes and nested messages.
    """
    position = 0
    while position < len(message):
        key, position = _varint(message, position)
        number, kind = key >> 3, key & 7
        if number == 0:
            raise _damaged(position - 1)
        if kind == 0:
            value, position = _varint(message, position)
            yield number, value
            continue
        if kind == 2:
            length, position = _varint(message, position)
        elif kind in (1, 5):
            length = 8 if kind == 1 else 4
        else:
            raise _damaged(position)
        content = message[position : position + length]
        if len(content) < length:
            raise _damaged(position)
        position += length
        if kind == 5:
            yield number, float(struct.unpack("<f", content)[0])
        else:
            yield number, int.from_bytes(content, "little") if kind == 1 else content


def _varint(message: memoryview, position: int) -> tuple[int, int]:
    """A number of 7 bits a byte, lowest first, and where it ends."""
    value = 0
    for i in range(MAX_VARINT_BYTES):
        if position + i >= len(message):
            raise _damaged(position)
        byte = message[position + i]
        value |= (byte & 0x7F) << (7 * i)
        if byte < 0x80:
            return value & (2**64 - 1), position + i + 1
    raise _damaged(position)


def _damaged(position: int) -> ClauseError:
    return ClauseError("it is cut off, or damaged at byte {position:,}", position=position)


MAX_VERDICTS = 256
NO_WINDOW = getattr(subprocess, "CREATE_NO_WINDOW", 0)  # Windows would open one for a moment


class VerdictCache:
    """What was found wrong with files, by their SHA-256: trying one takes a second."""

    def __init__(self) -> None:
        self._faults: dict[str, Sentence | None] = {}
        self._lock = Lock()

    def check(self, content: bytes, find_fault: Callable[[bytes], None]) -> None:
        """Raise the TokenizerError that `find_fault` raises for these bytes, or raised before."""
        key = hashlib.sha256(content).hexdigest()
        with self._lock:
            known, fault = key in self._faults, self._faults.get(key)
        if not known:
            try:
                find_fault(content)
            except TokenizerError as error:
                fault = error.sentence
            with self._lock:
                if len(self._faults) >= MAX_VERDICTS:
                    self._faults.clear()
                self._faults[key] = fault
        if fault is not None:
            raise TokenizerError(fault)


def try_out(probe: Path, content: bytes, *, library: str, seconds: float, arguments: Sequence[str] = ()) -> None:
    """Run a probe, a script with its arguments, on a file's bytes; a TokenizerError names the `library`."""
    # -P keeps the script's folder out of the search for modules; some here are named like the standard library's.
    command = [sys.executable, "-P", str(probe), *arguments]
    try:
        found = subprocess.run(
            command, input=content, capture_output=True, timeout=seconds, creationflags=NO_WINDOW, check=False
        )
    except subprocess.TimeoutExpired:
        raise TokenizerError(
            "{library} did not finish reading the file within {seconds:.0f} seconds.", library=library, seconds=seconds
        ) from None
    except OSError as error:
        raise TokenizerError(
            "{program} could not be started to test the file: {reason}.",
            reason=error.strerror,
            program=shown(sys.executable),
        ) from None
    reason = " ".join(found.stderr.decode(errors="replace").split())[-200:].rstrip(".")
    if found.returncode == 1:
        raise TokenizerError(
            "{library} cannot use this file: {reason}.", library=library, reason=reason or say("no reason given")
        )
    if found.returncode != 0:
        raise TokenizerError(
            "{library} crashed on the file (exit status {status}): it is damaged, or needs more memory than is "
            "allowed.",
            library=library,
            status=found.returncode,
        )


MAX_PIECES = 1_000_000
MAX_PIECE_BYTES = 512
MAX_REPLACEMENT_BYTES = 64  # what a character becomes; by Unicode's own rules (NFKC) 33 at most
PROBE_SECONDS = 60.0

UNKNOWN = 2  # a type of pieces
TYPES = range(1, 7)

# Field numbers of the model, and of the settings with texts that SentencePiece puts in the place of others.
PIECES, TRAINER, NORMALIZER, DENORMALIZER = 1, 2, 3, 5
UNKNOWN_SURFACE, REPLACEMENTS = 44, 2
_TEXTS_OF = {TRAINER: UNKNOWN_SURFACE, NORMALIZER: REPLACEMENTS, DENORMALIZER: REPLACEMENTS}

_PROBE = Path(__file__).with_name("sentencepiece_probe.py")

# What is often found where a model is expected, and what is then said of it.
_OTHERS = (
    (b"version https://git-lfs", say("is a Git LFS pointer, not the file itself; fetch it with `git lfs pull`.")),
    (b"<", say("is not a SentencePiece model but a web page or XML; download the file itself.")),
    (
        b"{",
        say(
            "is not a SentencePiece model but JSON (perhaps tokenizer.json); "
            "the SentencePiece model is a .model or .spm file."
        ),
    ),
    (b"PK\x03\x04", say("is an archive, not a SentencePiece model; unpack it first.")),
    (b"\x1f\x8b", say("is an archive, not a SentencePiece model; unpack it first.")),
)


@dataclass(frozen=True)
class Piece:
    """One piece: its text, its log-probability or rank, its type (see the top of this file)."""

    text: str
    score: float
    type: int


_verdicts = VerdictCache()


def check(model: bytes) -> None:
    """Check that a model file, whose size the caller has limited, is safe to load.

    A TokenizerError if it is something else, damaged, beyond the limits, or SentencePiece fails on it.
    """
    _verdicts.check(model, _find_fault)


def read(model: bytes) -> list[Piece]:
    """The pieces of a model, in the order of their ids, without SentencePiece; refuses bytes that are none."""
    other = next((other for start, other in _OTHERS if model.lstrip()[:32].startswith(start)), None)
    if not model:
        raise TokenizerError("is empty; copy or download it again.")
    if other:
        raise TokenizerError(other)
    pieces: list[Piece] = []
    try:
        for number, value in fields(memoryview(model)):
            if number == PIECES:
                pieces.append(_piece(value, len(pieces)))
            elif number in _TEXTS_OF:
                _check_texts(value, _TEXTS_OF[number])
            if len(pieces) > MAX_PIECES:
                raise TokenizerError("has too many tokens; the limit is {most:,}.", most=MAX_PIECES)
    except ClauseError as error:
        raise TokenizerError(
            "is not a SentencePiece model, or is damaged: {problem}.", problem=error.sentence
        ) from None
    return pieces


def _find_fault(model: bytes) -> None:
    """Load the model and use every piece once, in a process of its own, if it keeps the rules."""
    _check_pieces(read(model))
    try_out(_PROBE, model, library="SentencePiece", seconds=PROBE_SECONDS)


def _piece(message: int | float | memoryview, i: int) -> Piece:
    if not isinstance(message, memoryview):
        raise ClauseError("token {i} is not a protobuf message", i=i)
    text, score, kind = b"", 0.0, 1
    for number, value in fields(message):
        if number == 1 and isinstance(value, memoryview):
            if len(value) > MAX_PIECE_BYTES:
                raise TokenizerError(
                    "token {i} is {n:,} byte long; the limit is {most}.",
                    "token {i} is {n:,} bytes long; the limit is {most}.",
                    len(value),
                    i=i,
                    most=MAX_PIECE_BYTES,
                )
            text = bytes(value)
        elif number == 2 and isinstance(value, float):
            score = value
        elif number == 3 and isinstance(value, int):
            kind = value
        elif number in (1, 2, 3):
            raise ClauseError("token {i} has a field {number} of the wrong type", i=i, number=number)
    try:
        return Piece(text.decode(), score, kind)
    except UnicodeDecodeError:
        raise TokenizerError("token {i} is not UTF-8: {text}.", i=i, text=shown(text)) from None


def _check_texts(message: int | float | memoryview, wanted: int) -> None:
    """No text that replaces a character or an unknown piece is so long that short inputs become huge ones."""
    if not isinstance(message, memoryview):
        raise ClauseError("its settings are not a protobuf message")
    for number, value in fields(message):
        if number != wanted or not isinstance(value, memoryview):
            continue
        texts = bytes(value)
        if wanted == REPLACEMENTS:  # the length of a search tree, the tree, then texts that each end in a zero
            texts = texts[4 + int.from_bytes(texts[:4], "little") :]
        longest = max(map(len, texts.split(b"\0")))
        if longest > MAX_REPLACEMENT_BYTES:
            raise TokenizerError(
                "replaces a character with {longest:,} bytes; the limit is {most}.",
                longest=longest,
                most=MAX_REPLACEMENT_BYTES,
            )


def _check_pieces(pieces: list[Piece]) -> None:
    if not pieces:
        raise TokenizerError("is not a SentencePiece model, or is damaged: it has no pieces.")
    seen: dict[str, int] = {}
    for i, piece in enumerate(pieces):
        if not piece.text:
            raise TokenizerError("token {i} is empty.", i=i)
        if piece.text in seen:
            raise TokenizerError(
                "token {i} is {piece}, the same as token {other}.", i=i, piece=shown(piece.text), other=seen[piece.text]
            )
        if not math.isfinite(piece.score):
            raise TokenizerError(
                "token {i}, {piece}, has the score {score}; expected a finite number.",
                i=i,
                piece=shown(piece.text),
                score=piece.score,
            )
        if piece.type not in TYPES:
            raise TokenizerError(
                "token {i}, {piece}, has type {type}; expected 1 to 6.", i=i, piece=shown(piece.text), type=piece.type
            )
        seen[piece.text] = i
    unknown = [shown(piece.text) for piece in pieces if piece.type == UNKNOWN]
    if len(unknown) != 1:
        found = joined(", ", unknown[:5]) if unknown else say("none")
        raise TokenizerError(
            "has {n} token for unknown text ({found}); expected exactly one, for example '<unk>'.",
            "has {n} tokens for unknown text ({found}); expected exactly one, for example '<unk>'.",
            len(unknown),
            found=found,
        )
