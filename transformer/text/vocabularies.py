"""Which families of tokenizers there are, which files each needs, and how one is stored.

A checkpoint folder of this program holds the family's own files under their own names, and `vocabulary.json`, which
says which family it is and what the files do not say:

    {"family": "nllb", "options": {"source_language": "eng_Latn", "target_language": "fra_Latn"}}
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from transformer.errors import TokenizerError, shown
from transformer.text import family_tokenizers, library, listed
from transformer.text.family_tokenizers import Two
from transformer.text.options import Options, options_from
from transformer.text.vocabulary_files import Files, json_record, within

Make = Callable[[Files, Options], Two]
VOCABULARY = "vocabulary.json"
MAX_VOCABULARY = 4_000_000  # bytes: thousands of added pieces


@dataclass(frozen=True)
class Family:
    """What a family's tokenizer is made of."""

    make: Make  # its function
    files: tuple[str, ...] = ()  # what it needs
    may: tuple[str, ...] = ()  # what it also takes where it is there


_ONE_MODEL, _FAIRSEQ_MODEL = ("spiece.model",), ("sentencepiece.bpe.model",)
_PAIRS = ("vocab.json", "merges.txt")
FAMILIES: Mapping[str, Family] = MappingProxyType(
    {
        "marian": Family(
            family_tokenizers.marian, ("source.spm", "target.spm", "vocab.json"), ("target_vocab.json",)
        ),
        "t5": Family(family_tokenizers.t5, _ONE_MODEL),
        "pegasus": Family(family_tokenizers.pegasus, _ONE_MODEL),
        "mbart": Family(family_tokenizers.mbart, _FAIRSEQ_MODEL),
        "mbart50": Family(family_tokenizers.mbart50, _FAIRSEQ_MODEL),
        "nllb": Family(family_tokenizers.nllb, _FAIRSEQ_MODEL),
        "m2m100": Family(family_tokenizers.m2m100, (*_FAIRSEQ_MODEL, "vocab.json")),
        "gpt2": Family(family_tokenizers.gpt2, _PAIRS),
        "roberta": Family(family_tokenizers.roberta, _PAIRS),
        "llama": Family(family_tokenizers.llama, ("tokenizer.model",)),
        "bert": Family(family_tokenizers.bert, ("vocab.txt",)),
        "byt5": Family(family_tokenizers.byt5),
        "json": Family(family_tokenizers.any_json, (library.FILE,), (family_tokenizers.TARGET_JSON,)),
        "list": Family(
            family_tokenizers.plain_list,
            may=(listed.LINES, listed.IDS, family_tokenizers.TARGET_LINES, family_tokenizers.TARGET_IDS),
        ),
        "raw": Family(family_tokenizers.raw_ids),
    }
)
FILE_NAMES = frozenset(name for family in FAMILIES.values() for name in (*family.files, *family.may))


@dataclass(frozen=True)
class Vocabularies:
    """Tokenizers as they are stored: their family, what was chosen, and files."""

    family: str  # A key of `FAMILIES`
    options: Options = field(default_factory=Options)  # what the files do not say
    # Those that the family needs, and of those that it may have what is there.
    files: Files = field(default_factory=dict)

    def open(self) -> Two:
        """Make the tokenizers; a TokenizerError begins with the name of the file or option that cannot be used."""
        return FAMILIES[self.family].make(self.files, self.options)

    def stored(self) -> dict[str, bytes]:
        """The files to write, `vocabulary.json` among them."""
        record = {"family": self.family, "options": self.options.said()}
        family = FAMILIES[self.family]
        own = {name: self.files[name] for name in (*family.files, *family.may) if name in self.files}
        return {VOCABULARY: (json.dumps(record, indent=2, ensure_ascii=False) + "\n").encode(), **own}


def read_record(content: bytes) -> tuple[str, Options]:
    """What a vocabulary.json says: the family and its options.

    TokenizerError if it is damaged, or says what this program does not know.
    """
    record = json_record({VOCABULARY: content}, VOCABULARY)
    if not isinstance(record.get("options", {}), dict):
        raise TokenizerError("{file}: expected a JSON object, found {found}.", file=VOCABULARY, found=shown(record))
    family = record.get("family")
    if not isinstance(family, str) or family not in FAMILIES:
        raise TokenizerError(
            "{file}: family: found {found}, expected one of {families}.",
            file=VOCABULARY,
            found=shown(family),
            families=", ".join(FAMILIES),
        )
    with within(VOCABULARY):
        return family, options_from(record.get("options", {}))
