"""The tokenizers of a checkpoint folder: their files, the size limits, and how they are opened.

source.model, target.model   SentencePiece models, or one `pieces.model` if the vocabulary is shared
    vocabulary.json              instead of them: the description of another family's tokenizer, whose own files are
                                 next to it; an extension with `tokenizers` reads it
"""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from transformer.errors import TokenizerError, within
from transformer.extensions import provided
from transformer.files.untrusted_folder import FolderFiles
from transformer.model.config import ModelConfig
from transformer.text import sentencepiece_check
from transformer.text.tokenizer import AnyTokenizer, Tokenizer

TOKENIZER_NAMES = {1: ("pieces.model",), 2: ("source.model", "target.model")}
MAX_TOKENIZER = 16_000_000
MAX_JSON = 40_000_000  # the tokenizer.json of Gemma has about 35 MB; twice as much keeps a server busy for 20 s
VOCABULARY = "vocabulary.json"
MAX_VOCABULARY = 4_000_000  # bytes: thousands of added pieces

Named = tuple[str, AnyTokenizer]  # a tokenizer and the file that messages name


class Stored(Protocol):
    """Tokenizers of another family, as they are stored."""

    def stored(self) -> Mapping[str, bytes]:
        """The files to write, `vocabulary.json` among them."""


class Families(Protocol):
    """What reads other tokenizers; the field `tokenizers` of an extension names it."""

    FILE_NAMES: frozenset[str]  # of all the files that one may have

    def limits(self, record: bytes, has: Callable[[str], bool]) -> dict[str, int]:
        """The files that a vocabulary.json needs or finds beside it, each with its largest size."""

    def opened(self, files: Mapping[str, bytes]) -> tuple[Named, Named]:
        """The tokenizers of source and target, one object if they are alike."""


def file_names() -> frozenset[str]:
    """All the files that tokenizers of other families may have, `vocabulary.json` among them."""
    return frozenset((VOCABULARY,)).union(*(one.FILE_NAMES for one in provided("tokenizers")))


def tokenizer_files(files: FolderFiles, config: ModelConfig) -> dict[str, int]:
    """The tokenizer files that a folder has or should have -> the largest size of each, or an error."""
    if not files.has(VOCABULARY):
        return dict.fromkeys(TOKENIZER_NAMES[1 if config.shared_vocab else 2], MAX_TOKENIZER)
    with within(files.name):
        record = files.read(VOCABULARY, limit=MAX_VOCABULARY)
        return {VOCABULARY: MAX_VOCABULARY, **_families().limits(record, files.has)}


def stored_tokenizers(tokenizers: tuple[bytes, ...] | Stored, config: ModelConfig) -> Mapping[str, bytes]:
    """The files of tokenizers: SentencePiece models, source and target or one; or a family's own files."""
    if not isinstance(tokenizers, tuple):
        return tokenizers.stored()
    return dict(zip(TOKENIZER_NAMES[1 if config.shared_vocab else 2], tokenizers, strict=True))


def open_tokenizers(files: Mapping[str, bytes], config: ModelConfig, *, label: str) -> list[Named]:
    """Make the tokenizers of the files that `tokenizer_files` names: source and target, or one if they are equal.

    They are equal if the vocabulary is shared and both split texts in the same way. An error names the damaged file.
    """
    if VOCABULARY not in files:
        names = TOKENIZER_NAMES[1 if config.shared_vocab else 2]
        with ThreadPoolExecutor(len(names)) as pool:  # each is tried in a process of its own
            return [*zip(names, pool.map(lambda name: _own(files[name], label=f"{label}/{name}"), names), strict=True)]
    with within(label):
        source, target = _families().opened(files)
    return [source] if config.shared_vocab and source[1] is target[1] else [source, target]


def _families() -> Families:
    for one in provided("tokenizers"):
        families: Families = one
        return families
    raise TokenizerError("{file}: no extension reads tokenizers of other programs.", file=VOCABULARY)


def _own(model: bytes, *, label: str) -> Tokenizer:
    with within(label):
        sentencepiece_check.check(model)
        return Tokenizer(model)
