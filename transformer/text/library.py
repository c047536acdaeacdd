"""A tokenizer.json of any family, read by the library `tokenizers`: Qwen, LLaMA, SmolLM, Pythia and many others.

The file says how texts are normalised, cut, split and wrapped; one call reads all of that. Here its pieces are
written for people, and what it puts around a text is told apart from the text. The file is not trusted: it is parsed,
tried and used in a process of its own alone (`transformer.text.library_child`), which says what is in it.

The library comes with the optional extra `hf`; nothing else here needs it.

Source: Hugging Face's tokenizers 0.23, "The tokenization pipeline".
"""

import copy
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from transformer.errors import TokenizerError
from transformer.text import probing
from transformer.text.byte_pairs import as_bytes, for_people
from transformer.text.library_process import CHILD, LibraryProcess
from transformer.text.piece_rows import padded, unused
from transformer.text.tokenizer import AnyTokenizer, Encoding, Wrapping

FILE = "tokenizer.json"
PROBE_SECONDS = 120.0
_LANGUAGE = re.compile(r"__[a-z]{2,3}__|[a-z]{2,3}_[A-Z][A-Za-z]{1,3}")  # of M2M100; of mBART and NLLB

_verdicts = probing.Verdicts()


class LibraryTokenizer(AnyTokenizer):
    """A tokenizer.json; `size` is the rows of the model, where it has more than pieces.

    A TokenizerError begins with the file's name: the library is missing, or cannot use it.
    """

    def __init__(self, content: bytes, size: int | None = None) -> None:
        self._library, said = _opened(content)
        names = [unused(i) if name is None else name for i, name in enumerate(said["pieces"])]
        added: dict[int, bool] = {i: special for i, special in said["added"] if i < len(names)}
        self.continuation = said["continuation"]
        pieces = padded(
            [
                for_people(as_bytes(name)) if said["over_bytes"] and i not in added else name
                for i, name in enumerate(names)
            ],
            size,
        )
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
        with _named():
            ids, unknown = self._library.encode(text, unknown=self._unknown)
        return Encoding(tuple(ids), tuple(unknown.get(place) or self.pieces[i] for place, i in enumerate(ids)))

    def decode(self, ids: Sequence[int]) -> str:
        """Join pieces to a text; special pieces leave no trace, an id outside the vocabulary is a TokenizerError."""
        kept = [i for i in ids if self.piece(i) and i < self._count]
        with _named():
            return self._library.decode(kept)

    def languages(self) -> dict[str, int]:
        """The languages among its special pieces, with their ids."""
        named = {self.pieces[i]: i for i in sorted(self._special)}
        return {name: i for name, i in named.items() if _LANGUAGE.fullmatch(name)}

    def wrapped_in(self, wrapping: Wrapping) -> "LibraryTokenizer":
        """The same with something else around a text."""
        other = copy.copy(self)
        other.wrapping = wrapping
        return other


def is_installed() -> bool:
    """Whether there is the library."""
    return find_spec("tokenizers") is not None


def _opened(content: bytes) -> tuple[LibraryProcess, dict[str, Any]]:
    """The process that has the file, and what it says of it."""
    if not is_installed():
        raise TokenizerError(
            "{file}: is read by the library tokenizers, which is not installed; pip install 'glassformer[hf]' "
            "installs it.",
            file=FILE,
        )
    with _named():
        _verdicts.check(content, _try_out)
        process = LibraryProcess(content)
        return process, process.open()


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
