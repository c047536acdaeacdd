"""`LibraryTokenizer` of a `tokenizer.json`, and `LibraryProcess`, the client of its worker process with limits.

The file says how texts are normalised, cut, split and wrapped; one call of the library does all of that. This module
formats its pieces for display, and separates what it puts around a text from the text. The file is not trusted: it is
parsed, tested and used in its own process (`tokenizers.tokenizers_worker`), which describes it.

The process starts when a file is opened, and again if it has ended. It ends with its last reference or with the
program, when its standard input closes. Any thread may call it; requests are serialised.

The library is part of the optional extra `hf`; only this module needs it.

Source: Hugging Face's tokenizers 0.23, "The tokenization pipeline".
"""

import copy
import json
import os
import re
import select
import subprocess
import sys
import time
import weakref
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any

from glassformer.extensions.tokenizers.subword_tokenizers import as_bytes, for_people
from glassformer.extensions.tokenizers.vocabulary import padded, unused, within
from transformer import sandbox
from transformer.errors import TokenizerError
from transformer.text import sentencepiece_check
from transformer.text.sentencepiece_check import MAX_PIECES
from transformer.text.tokenizer import AnyTokenizer, Encoding, Wrapping

CHILD = Path(__file__).with_name("tokenizers_worker.py")
OPENING_SECONDS = 120.0
MOST_ANSWER = 2**24
MOST_DESCRIPTION = 2**26  # JSON may need six bytes per byte, and each piece has quotes
CHUNK = 2**20
# Without memory a Rust panic that resolves its backtrace would deadlock.
_ALONE = {"TOKENIZERS_PARALLELISM": "false", "RAYON_NUM_THREADS": "1", "RUST_BACKTRACE": "0"}
FILE = "tokenizer.json"
PROBE_SECONDS = 120.0
_LANGUAGE = re.compile(r"__[a-z]{2,3}__|[a-z]{2,3}_[A-Z][A-Za-z]{1,3}")  # of M2M100; of mBART and NLLB
_verdicts = sentencepiece_check.VerdictCache()


@dataclass(frozen=True)
class ProcessLimits:
    """Limits of one file's process."""

    memory: int = 512 << 20  # bytes per request, beyond the loaded file's
    seconds: float = 3.0  # CPU time of a request; and of many together, beyond what each adds
    # Seconds that a request adds to the remaining time, up to `seconds`; a thousand times what one takes.
    each: float = 0.02
    wait: float = 20.0  # wall-clock timeout in seconds, for a busy machine
    tokens: int = 100_000  # most tokens of one text
    characters: int = 1_000_000  # most characters of one output
    pieces: int = MAX_PIECES  # most pieces of the file
    bytes: int = 2**23  # of all of them together


OURS = ProcessLimits()


class LibraryProcess:
    """The process of one file, which has been tried out."""

    def __init__(self, content: bytes, limits: ProcessLimits = OURS) -> None:
        self._content, self._limits, self._lock = content, limits, Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._finalize = weakref.finalize(self, sandbox.end, None)  # a destructor would come too late at exit

    def open(self) -> dict[str, Any]:
        """Start it; what the file says of itself, see `_described` of `tokenizers_worker`."""
        with self._lock:
            return self._start()

    def encode(self, text: str, *, unknown: int | None) -> tuple[list[int], dict[int, str]]:
        """The ids of a text, without a template; and the texts at the places of unknown pieces.

        TokenizerError if it takes too much time or memory, or the library refuses.
        """
        answer = self._ask({"encode": text, "unknown": unknown})
        if "tokens" in answer:
            raise TokenizerError(
                "its rules turn {characters:,} characters into {n:,} tokens; the limit is {most:,} tokens. Use a "
                "shorter text or a different tokenizer.",
                n=answer["tokens"],
                characters=len(text),
                most=self._limits.tokens,
            )
        return answer["ids"], dict(answer["unknown"])

    def decode(self, ids: list[int]) -> str:
        """The text of ids, without special pieces; TokenizerError if it takes too much, or the library refuses."""
        answer = self._ask({"decode": ids})
        if "characters" in answer:
            raise TokenizerError(
                "its rules turn {tokens:,} tokens into {n:,} characters; the limit is {most:,} characters. Use a "
                "different tokenizer.",
                n=answer["characters"],
                tokens=len(ids),
                most=self._limits.characters,
            )
        return str(answer["text"])

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        content = json.dumps(request).encode()
        with self._lock:
            try:
                if self._process is None or self._process.poll() is not None:  # another thread may have ended it
                    self._start()
                self._send(content)
                answer = self._answer(self._limits.wait, MOST_ANSWER)
            except BaseException:
                self._end()
                raise
            if answer is None:
                self._end()
                raise TokenizerError(
                    "its rules need more than {seconds:g} seconds or {memory:,} MB for one text; use a different "
                    "tokenizer.",
                    seconds=self._limits.seconds,
                    memory=self._limits.memory >> 20,
                )
        if "refused" in answer:
            reason = " ".join(str(answer["refused"])[:200].split()).rstrip(".")
            raise TokenizerError("the tokenizers library cannot use it: {reason}.", reason=reason)
        return answer

    def _start(self) -> dict[str, Any]:
        self._end()
        try:
            self._process = subprocess.Popen(
                # -P keeps the script's folder out of sys.path.
                [sys.executable, "-P", str(CHILD), "serve", json.dumps(asdict(self._limits))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=os.environ | _ALONE,
                bufsize=0,
                creationflags=sentencepiece_check.NO_WINDOW,
            )
        except OSError as error:
            raise TokenizerError("could not be opened: {reason}.", reason=str(error.strerror)) from None
        self._finalize = weakref.finalize(self, sandbox.end, self._process)
        self._send(self._content)
        found = self._answer(OPENING_SECONDS, MOST_DESCRIPTION)
        if found is not None and "pieces" in found:
            return found
        self._end()
        if found is None:
            raise TokenizerError("the tokenizers library could not load it within the limits of memory and time.")
        if "last" in found:
            most = self._limits.pieces
            raise TokenizerError(
                "its ids go up to {last:,}, but it may have at most {most:,} tokens.", last=found["last"], most=most
            )
        raise TokenizerError(
            "its tokens take up {n:,} bytes in all; the limit is {most:,} bytes. Use a different tokenizer.",
            n=found["bytes"],
            most=self._limits.bytes,
        )

    def _send(self, content: bytes) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        rest = memoryview(len(content).to_bytes(8, "little") + content)
        try:
            while rest:
                rest = rest[self._process.stdin.write(rest) :]
        except OSError:
            pass  # it has ended

    def _answer(self, seconds: float, most: int) -> dict[str, Any] | None:
        """Its answer; None if it ends, times out, or exceeds `most` bytes."""
        end = time.monotonic() + seconds
        length = int.from_bytes(self._read(8, end), "little")
        content = self._read(length, end) if length <= most else b""
        return json.loads(content) if content else None

    def _read(self, n: int, end: float) -> bytes:
        """Read n bytes; empty after a timeout."""
        assert self._process is not None
        pipe, parts, left = self._process.stdout, [], n
        assert pipe is not None
        while left:
            # Windows cannot select on a pipe; it has no uploads.
            if sys.platform != "win32" and not select.select([pipe], [], [], max(end - time.monotonic(), 0))[0]:
                return b""
            part = pipe.read(min(left, CHUNK))
            if not part:
                return b""
            parts.append(part)
            left -= len(part)
        return b"".join(parts)

    def _end(self) -> None:
        self._process = None
        self._finalize()


class LibraryTokenizer(AnyTokenizer):
    """A tokenizer.json; `size` is the model's rows, if more than pieces. TokenizerErrors begin with its name."""

    def __init__(self, content: bytes, size: int | None = None) -> None:
        self._library, said = _opened(content)
        names = [unused(i) if name is None else name for i, name in enumerate(said["pieces"])]
        added: dict[int, bool] = {i: special for i, special in said["added"] if i < len(names)}
        self.continuation = said["continuation"]
        as_it_is = added if said["over_bytes"] else range(len(names))
        pieces = padded([name if i in as_it_is else for_people(as_bytes(name)) for i, name in enumerate(names)], size)
        self._count, self._unknown = len(names), said["unknown"]
        special = {i for i, is_special in added.items() if is_special} | {*range(len(names), len(pieces))}
        special |= {i for i, name in enumerate(names) if name == unused(i)}
        if self._unknown is not None:
            special.add(self._unknown)
        super().__init__(pieces, special)
        before, after = map(tuple, said["around"])
        self.wrapping = Wrapping(before, after)

    def encode(self, text: str) -> Encoding:
        """Split a text into pieces; the file's template is left out (see `wrapping`)."""
        with within(FILE):
            ids, unknown = self._library.encode(text, unknown=self._unknown)
        return Encoding(tuple(ids), tuple(unknown.get(place) or self.pieces[i] for place, i in enumerate(ids)))

    def decode(self, ids: Sequence[int]) -> str:
        """Join pieces to a text; special pieces leave no trace, an id outside the vocabulary is a TokenizerError."""
        kept = [i for i in ids if self.piece(i) and i < self._count]
        with within(FILE):
            return self._library.decode(kept)

    def languages(self) -> dict[str, int]:
        """The languages among its special pieces, with their ids."""
        named = {self.pieces[i]: i for i in sorted(self._special)}
        return {name: i for name, i in named.items() if _LANGUAGE.fullmatch(name)}

    def wrapped_in(self, wrapping: Wrapping) -> "LibraryTokenizer":
        """A copy with another wrapping."""
        other = copy.copy(self)
        other.wrapping = wrapping
        return other


def is_installed() -> bool:
    """Whether the library is installed."""
    return find_spec("tokenizers") is not None


def _opened(content: bytes) -> tuple[LibraryProcess, dict[str, Any]]:
    """The process of the file, and the file's description."""
    if not is_installed():
        raise TokenizerError(
            "{file}: reading it needs the tokenizers library, which is not installed; install it with pip install "
            "'glassformer[hf]'.",
            file=FILE,
        )
    with within(FILE):
        _verdicts.check(content, _try_out)
        process = LibraryProcess(content)
        return process, process.open()


def _try_out(content: bytes) -> None:
    framed = len(content).to_bytes(8, "little") + content
    sentencepiece_check.try_out(CHILD, framed, library="tokenizers", seconds=PROBE_SECONDS, arguments=["probe"])
