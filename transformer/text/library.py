"""A tokenizer.json of any family, read by the library `tokenizers`: Qwen, LLaMA, SmolLM, Pythia and many others.

The file says how texts are normalised, cut, split and wrapped; one call reads all of that. Here its pieces are
written for people, what it puts around a text is told apart from the text, and the file is not trusted: it is read by
rules first, then tried and used in a process of its own alone (`transformer.text.library_child`).

The library comes with the optional extra `hf`; nothing else here needs it.

Source: Hugging Face's tokenizers 0.23, "The tokenization pipeline".
"""

import copy
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from transformer.errors import ClauseError, TokenizerError
from transformer.files import strictjson
from transformer.text import probing
from transformer.text.byte_pairs import as_bytes, for_people
from transformer.text.library_process import CHILD, LibraryProcess
from transformer.text.rows import Rows, Table, Token, padded, unused
from transformer.text.sentencepiece_check import MAX_PIECES
from transformer.text.tokenizer import Encoding, Wrapping

FILE = "tokenizer.json"
PROBE_SECONDS = 120.0
MAX_DEPTH = 32
_LANGUAGE = re.compile(r"__[a-z]{2,3}__|[a-z]{2,3}_[A-Z][A-Za-z]{1,3}")  # of M2M100; of mBART and NLLB

_verdicts = probing.Verdicts()


class LibraryTokenizer(Rows):
    """A tokenizer.json.

    Args:
        content: The bytes of the file.
        size: Rows of the model, where it has more than pieces.

    Raises:
        TokenizerError: The library is missing, or cannot use the file; begins with its name.
    """

    def __init__(self, content: bytes, size: int | None = None) -> None:
        self._library, described, record = _opened(content)
        names = _names(described["pieces"])
        added = {i: special for i, special in described["added"] if i < len(names)}
        kinds = list(_kinds(record.get("decoder"))) or list(_kinds(record.get("pre_tokenizer")))
        over_bytes = any(part.get("type") == "ByteLevel" for part in kinds)
        self.continuation = next((str(part.get("prefix")) for part in kinds if part.get("type") == "WordPiece"), "")
        pieces = padded(
            [for_people(as_bytes(name)) if over_bytes and i not in added else name for i, name in enumerate(names)],
            size,
        )
        self._count, self._unknown = len(names), _unknown(record, names)
        special = {i for i, is_special in added.items() if is_special} | {*range(len(names), len(pieces))}
        special |= {i for i, name in enumerate(names) if name == unused(i)}
        if self._unknown is not None:
            special.add(self._unknown)
        before, after = map(tuple, described["around"])
        super().__init__(Table(pieces, special, {}, wrapping=Wrapping(before, after)))

    def encode(self, text: str) -> Encoding:
        """Split a text into pieces; the file's template is left out (see `wrapping`)."""
        with _named():
            ids, unknown = self._library.encode(text, unknown=self._unknown)
        return Encoding(tuple(ids), tuple(unknown.get(place) or self.pieces[i] for place, i in enumerate(ids)))

    def decode(self, ids: Sequence[int]) -> str:
        """Join pieces to a text; special pieces leave no trace.

        Raises:
            TokenizerError: An id is outside the vocabulary.
        """
        kept = [i for i in ids if self.piece(i) and i < self._count]
        with _named():
            return self._library.decode(kept)

    def languages(self) -> dict[str, int]:
        """The languages among its special pieces, with their ids."""
        named = {self.pieces[i]: i for i in sorted(self._table.special)}
        return {name: i for name, i in named.items() if _LANGUAGE.fullmatch(name)}

    def wrapped_in(self, wrapping: Wrapping) -> "LibraryTokenizer":
        """The same with something else around a text."""
        other = copy.copy(self)
        other.wrapping = wrapping
        return other

    def _split(self, text: str) -> Iterable[Token]:
        found = self.encode(text)
        return zip(found.ids, found.pieces, strict=True)

    def _join(self, ids: Sequence[int]) -> str:
        return self.decode(ids)


def is_installed() -> bool:
    """Whether there is the library."""
    return find_spec("tokenizers") is not None


def _opened(content: bytes) -> tuple[LibraryProcess, dict[str, Any], dict[str, Any]]:
    """The process that has the file, what it says of it, and the parsed file."""
    if not is_installed():
        raise TokenizerError(
            "{file}: is read by the library tokenizers, which is not installed; pip install 'glassformer[hf]' "
            "installs it.",
            file=FILE,
        )
    with _named():
        try:
            record = strictjson.parse(content, max_depth=MAX_DEPTH)
            if not isinstance(record, dict) or not isinstance(record.get("model"), dict):
                raise ClauseError("it is no tokenizer: it has no object model")
        except ClauseError as error:
            raise TokenizerError("{problem}.", problem=error.sentence) from None
        _verdicts.check(content, _try_out)
        process = LibraryProcess(content)
        return process, process.open(), record


def _try_out(content: bytes) -> None:
    framed = len(content).to_bytes(8, "little") + content
    probing.try_out(CHILD, framed, library="tokenizers", seconds=PROBE_SECONDS, arguments=["probe"])


@contextmanager
def _named() -> Iterator[None]:
    """Say of what is refused which file it is in."""
    try:
        yield
    except TokenizerError as error:
        raise TokenizerError("{file}: {problem}", file=FILE, problem=error.sentence) from None


def _names(vocabulary: dict[str, int]) -> list[str]:
    """The pieces by their ids; a row that no piece has gets a name of its own."""
    last = max(vocabulary.values(), default=-1)
    if not vocabulary or last >= MAX_PIECES:
        raise TokenizerError(
            "{file}: ids go up to {last:,}; at most {most:,} pieces are read.", file=FILE, last=last, most=MAX_PIECES
        )
    names = [unused(i) for i in range(last + 1)]
    for piece, i in vocabulary.items():
        names[i] = piece
    return names


def _kinds(part: object) -> Iterator[dict[str, Any]]:
    """A step of the file, and those that it is a sequence of."""
    if not isinstance(part, dict):
        return
    yield part
    for key in ("decoders", "pretokenizers"):
        inner = part.get(key)
        for step in inner if isinstance(inner, list) else ():
            yield from _kinds(step)


def _unknown(record: dict[str, Any], names: Sequence[str]) -> int | None:
    """The row of what the vocabulary does not know, if it has one."""
    model = record["model"]
    name, i = model.get("unk_token"), model.get("unk_id")
    if type(i) is int and 0 <= i < len(names):
        return i
    return names.index(name) if isinstance(name, str) and name in names else None
