"""The tokenizers of a checkpoint folder: their files, the size limits, and how they are opened.

source.model, target.model   SentencePiece models, or one `pieces.model` if the vocabulary is shared
    vocabulary.json              instead of them: the description of another family's tokenizer, whose own files are
                                 next to it (see `transformer.text.vocabularies`)
"""

from collections.abc import Mapping

from transformer.errors import within
from transformer.files.files import FolderFiles
from transformer.model.config import ModelConfig
from transformer.text import library, sentencepiece_check
from transformer.text.tokenizer import AnyTokenizer, Tokenizer
from transformer.text.vocabularies import FAMILIES, MAX_VOCABULARY, TARGET_JSON, VOCABULARY, Vocabularies, read_record

TOKENIZER_NAMES = {1: ("pieces.model",), 2: ("source.model", "target.model")}
MAX_TOKENIZER = 16_000_000
MAX_JSON = 40_000_000  # the tokenizer.json of Gemma has about 35 MB; twice as much keeps a server busy for 20 s
_MOST = {VOCABULARY: MAX_VOCABULARY, library.FILE: MAX_JSON, TARGET_JSON: MAX_JSON}

Named = tuple[str, AnyTokenizer]  # a tokenizer and the file that messages name


def tokenizer_files(files: FolderFiles, config: ModelConfig) -> dict[str, int]:
    """The tokenizer files that a folder has or should have -> the largest size of each, or an error."""
    names = TOKENIZER_NAMES[1 if config.shared_vocab else 2]
    if files.has(VOCABULARY):
        with within(files.name):
            family, _ = read_record(files.read(VOCABULARY, limit=MAX_VOCABULARY))
        needed = FAMILIES[family]
        names = (VOCABULARY, *needed.files, *filter(files.has, needed.may))
    return {name: _MOST.get(name, MAX_TOKENIZER) for name in names}


def stored_tokenizers(tokenizers: tuple[bytes, ...] | Vocabularies, config: ModelConfig) -> dict[str, bytes]:
    """The files of tokenizers: SentencePiece models, source and target or one; or a family's own files."""
    if isinstance(tokenizers, Vocabularies):
        return tokenizers.stored()
    return dict(zip(TOKENIZER_NAMES[1 if config.shared_vocab else 2], tokenizers, strict=True))


def open_tokenizers(files: Mapping[str, bytes], config: ModelConfig, *, label: str) -> list[Named]:
    """Make the tokenizers of the files that `tokenizer_files` names: source and target, or one if they are equal.

    They are equal if the vocabulary is shared and both split texts in the same way. An error names the damaged file.
    """
    if VOCABULARY not in files:
        return [
            (name, _own(files[name], label=f"{label}/{name}"))
            for name in TOKENIZER_NAMES[1 if config.shared_vocab else 2]
        ]
    with within(label):
        family, options = read_record(files[VOCABULARY])
        source, target = Vocabularies(family, options, files).open()
    names = [name for name in (*FAMILIES[family].files, *FAMILIES[family].may) if name in files] or [VOCABULARY]
    of_ids = [name for name in names if name.endswith("vocab.json")] or names  # where ids are listed, if they are
    if config.shared_vocab and source is target:
        return [(of_ids[0], source)]
    return [(of_ids[0], source), (of_ids[-1], target)]


def _own(model: bytes, *, label: str) -> Tokenizer:
    with within(label):
        sentencepiece_check.check(model)
        return Tokenizer(model)
