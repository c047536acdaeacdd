"""Tokenizers of a transformers folder: which class its files mean, languages to ask for, special ids.

The class is named in tokenizer_config.json, or else follows from the model's family. A family's own files come first,
read as transformers reads them; then tokenizer.json; without any of these the model works on ids.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from glassformer.extensions.importers.library.config_settings import Fields, Known, inferred
from glassformer.extensions.importers.library.import_inputs import around_a_source
from glassformer.extensions.importers.library.report import Field, ask
from glassformer.extensions.tokenizers import tokenizers_library, vocabulary
from glassformer.extensions.tokenizers.options import CONFIG, FILES, LANGUAGE_CODES, Options, options_of_config
from glassformer.extensions.tokenizers.tokenizer_families import FAMILIES, Vocabularies
from glassformer.extensions.tokenizers.vocabulary import Files
from transformer.checkpoint.tokenizer_files import MAX_JSON, MAX_TOKENIZER
from transformer.errors import TokenizerError, shown, within
from transformer.files.untrusted_folder import FolderFiles
from transformer.i18n import Sentence, say
from transformer.text.tokenizer import AnyTokenizer

# Names of tokenizer_config.json -> families, the first choice first.
CLASSES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "MarianTokenizer": ("marian",),
        "T5Tokenizer": ("t5", "json"),
        "MT5Tokenizer": ("t5", "json"),
        "ByT5Tokenizer": ("byt5",),
        "PegasusTokenizer": ("pegasus", "json"),
        "MBartTokenizer": ("mbart", "json"),
        "MBart50Tokenizer": ("mbart50", "json"),
        "NllbTokenizer": ("nllb", "json"),
        "M2M100Tokenizer": ("m2m100",),
        "GPT2Tokenizer": ("gpt2", "json"),
        "RobertaTokenizer": ("roberta", "json"),
        "BartTokenizer": ("roberta", "json"),
        "BertTokenizer": ("bert", "json"),
        "DistilBertTokenizer": ("bert", "json"),
        "LlamaTokenizer": ("json", "llama"),
        "GemmaTokenizer": ("json", "llama"),
    }
)
ANY = ("PreTrainedTokenizer", "TokenizersBackend")  # which says nothing
LANGUAGES = ("source_language", "target_language")
CODES_KEY = "language_codes"  # of tokenizer_config.json: which list of languages a model of M2M100's has
UNKNOWN = ("<unk>", "[UNK]")


@dataclass(frozen=True)
class Chosen:
    """The tokenizers of a folder."""

    vocabularies: Vocabularies | None  # as they are stored; None while a language is asked
    source: AnyTokenizer | None  # the tokenizer of the source; None while a language is asked
    asked: tuple[Field, ...] = ()  # the languages, if they are asked
    languages: tuple[str, ...] = ()  # those to choose from; none where a model has but one pair
    notes: tuple[Sentence, ...] = ()  # sentences about the choice


def choose(
    files: FolderFiles, names: tuple[str, ...], sizes: tuple[int, int], answers: Mapping[str, Any], special: set[int]
) -> Chosen:
    """Find and open the tokenizers, of the model's possible families, first choice first.

    `sizes` are the rows of both tables of embeddings; `special` are the ids without a text, for a model without a
    tokenizer.
    """
    with within(files.name):
        content = {one: files.read(one, limit=MAX_TOKENIZER) for one in FILES if files.has(one)}
        said = _class(content)
        names = _families(said, names)
        name = _first(files, names)
        if name == "m2m100":
            _check_codes(content)
        family = FAMILIES[name]
        for one in (*family.files, *filter(files.has, family.may)):
            content[one] = files.read(one, limit=MAX_JSON if one == tokenizers_library.FILE else MAX_TOKENIZER)
        options = _options(name, names, content, sizes, special)
        source_language, target_language = (answers.get(key) for key in LANGUAGES)
        codes = _codes(name, names, options, content)
        if codes and not (source_language and target_language):
            why = say("the tokenizer supports many languages, and the language cannot be inferred from the text")
            return Chosen(None, None, tuple(ask(key, why, *codes) for key in LANGUAGES), codes)
        options = replace(options, source_language=source_language, target_language=target_language)
        made = Vocabularies(name, options, content)
        source, _ = made.open()
    return Chosen(made, source, languages=codes, notes=(_without(said),) if name == "raw" else ())


def _families(said: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """The families of tokenizers to try, first choice first."""
    name = said.removesuffix("Fast")
    if not name or name in ANY:
        return (*names, "json")
    # The files do not describe the others: BERT's for Japanese, for one, needs a separate word splitter.
    return CLASSES.get(name, ("json",))


def _class(content: Files) -> str:
    """What tokenizer_config.json calls the tokenizer; empty if it does not."""
    record = vocabulary.json_record(content, CONFIG) if CONFIG in content else {}
    said = record.get("tokenizer_class")
    return said if isinstance(said, str) else ""


def _without(said: str) -> Sentence:
    if not said or said.removesuffix("Fast") in {*CLASSES, *ANY}:
        return say("The folder has no tokenizer that this program can read, so texts must be typed as ids.")
    return say(
        "The folder's tokenizer is {name}. This program cannot read it without a tokenizer.json, so texts must be "
        "typed as ids.",
        name=shown(said),
    )


def _first(files: FolderFiles, names: tuple[str, ...]) -> str:
    """The first family of tokenizers whose files are there."""
    there = [one for one in names if all(map(files.has, FAMILIES[one].files))]
    if there[:1] == ["json"] and len(there) > 1 and not tokenizers_library.is_installed():
        return there[1]
    return there[0] if there else "raw"


def _options(name: str, names: tuple[str, ...], content: Files, sizes: tuple[int, int], special: set[int]) -> Options:
    """What the files say of a family of tokenizers, and what the model's tables do."""
    options = replace(options_of_config(content), size=sizes[0], target_size=None if sizes[0] == sizes[1] else sizes[1])
    if name in ("json", "raw", "byt5"):  # tokenizer.json lists them itself
        options = replace(options, added=(), begin=None, end=None)
    if name == "raw":
        options = replace(options, special_ids=tuple(sorted(special)))
    return replace(options, language_starts=name == "json" and "mbart" in names)


def _check_codes(content: Files) -> None:
    """Refuse a list of languages that is not known here: all ids of languages would be wrong."""
    said = vocabulary.json_record(content, CONFIG).get(CODES_KEY) if CONFIG in content else None
    if said not in (None, "m2m100"):
        raise TokenizerError(
            "{file}: {key}: found {found}, expected m2m100. This program does not know the ids of other language "
            "lists; import a different model.",
            file=CONFIG,
            key=CODES_KEY,
            found=shown(said),
        )


def _codes(name: str, names: tuple[str, ...], options: Options, content: Files) -> tuple[str, ...]:
    """The languages of which two have to be chosen; none where a model has but one pair."""
    if name != "json" or not set(names) & set(LANGUAGE_CODES):
        return LANGUAGE_CODES.get(name, ())
    return tuple(tokenizers_library.LibraryTokenizer(content[tokenizers_library.FILE], options.size).languages())


def around(chosen: Chosen, ids: Fields) -> Fields:
    """What the tokenizers put around a text, as fields of a config; `ids` are what other files say."""
    source = chosen.source
    if source is None or chosen.vocabularies is None or chosen.vocabularies.family == "raw":
        return {}
    why, wrapping = say("the tokenizer of this family"), source.wrapping
    before, after = wrapping.before, wrapping.after
    bos, eos = ids["bos_id"].value, ids["eos_id"].value
    bos = before[0] if bos is None and before else bos
    eos = after[0] if eos is None and after else eos
    unknown = next((i for name in UNKNOWN if (i := source.id_of(name)) is not None), None)
    found: dict[str, Any] = {
        "unk_id": unknown,
        "bos_id": bos,
        "eos_id": eos,
        **around_a_source(before, after, bos, eos),
    }
    if wrapping.start is not None:
        found["decoder_start_id"] = wrapping.start
    if wrapping.forced is not None:
        found["forced_ids"] = (wrapping.forced,)
    return {name: inferred(value, why) for name, value in found.items() if name not in ids or ids[name].value != value}


def end_of(fields: Fields, *, writes: bool) -> Known | None:
    """The id that ends an output; in a model that writes none, any but padding. None if it must be asked."""
    if fields["eos_id"].value is not None:
        return fields["eos_id"]
    if writes:
        return None
    return inferred(int(fields["pad_id"].value == 0), say("not used: an encoder-only model generates no output"))
