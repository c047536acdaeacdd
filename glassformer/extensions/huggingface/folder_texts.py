"""Tokenizers, special ids and generation settings of a transformers folder.

The class of a tokenizer is named in tokenizer_config.json, or else follows from the model's family. A family's own
files come first, read as transformers reads them; then tokenizer.json; without any of these the model works on ids.
Special ids and rules of decoding are in generation_config.json, or in older folders in config.json.

Source: transformers 5.23, `GenerationConfig` and how `generate` reads it: counts of new pieces win over counts of all
tokens, and of several forced ends the smallest id is the likeliest.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from glassformer.extensions.importers.library.config_settings import Fields, Known, Settings, inferred
from glassformer.extensions.importers.library.import_inputs import Tokenizers, around_a_source
from glassformer.extensions.tokenizers import tokenizers_library, vocabulary
from glassformer.extensions.tokenizers.options import CONFIG, FILES, LANGUAGE_CODES, Options, options_of_config
from glassformer.extensions.tokenizers.tokenizer_families import FAMILIES, Vocabularies
from glassformer.extensions.tokenizers.vocabulary import Files
from transformer.checkpoint.tokenizer_files import MAX_JSON, MAX_TOKENIZER
from transformer.errors import TokenizerError, shown, within
from transformer.files.untrusted_folder import FolderFiles
from transformer.i18n import Sentence, say
from transformer.model.config_fields import MAX_COUNT

# Names of tokenizer_config.json -> families, the first choice first.
CLASSES: Mapping[str, tuple[str, ...]] = {
    "MarianTokenizer": ("marian",),
    **dict.fromkeys(("T5Tokenizer", "MT5Tokenizer"), ("t5", "json")),
    "ByT5Tokenizer": ("byt5",),
    "PegasusTokenizer": ("pegasus", "json"),
    "MBartTokenizer": ("mbart", "json"),
    "MBart50Tokenizer": ("mbart50", "json"),
    "NllbTokenizer": ("nllb", "json"),
    "M2M100Tokenizer": ("m2m100",),
    "GPT2Tokenizer": ("gpt2", "json"),
    **dict.fromkeys(("RobertaTokenizer", "BartTokenizer"), ("roberta", "json")),
    **dict.fromkeys(("BertTokenizer", "DistilBertTokenizer"), ("bert", "json")),
    **dict.fromkeys(("LlamaTokenizer", "GemmaTokenizer"), ("json", "llama")),
}
ANY = ("PreTrainedTokenizer", "TokenizersBackend")  # which says nothing
LANGUAGES = ("source_language", "target_language")
CODES_KEY = "language_codes"  # of tokenizer_config.json: which list of languages a model of M2M100's has
UNKNOWN = ("<unk>", "[UNK]")


def choose(
    files: FolderFiles, names: tuple[str, ...], sizes: tuple[int, int], answers: Mapping[str, Any], special: set[int]
) -> tuple[Tokenizers | None, tuple[str, ...]]:
    """Find and open the tokenizers, of the model's possible families; none while languages are asked.

    Also returns the languages to choose from, if any. `sizes` are the rows of both tables of embeddings; `special` are
    the ids without a text, for a model without a tokenizer.
    """
    with within(files.name):
        content = {one: files.read(one, limit=MAX_TOKENIZER) for one in FILES if files.has(one)}
        config = vocabulary.json_record(content, CONFIG) if CONFIG in content else {}
        said = config.get("tokenizer_class")
        said = said if isinstance(said, str) else ""
        names = _families(said, names)
        name = _first(files, names)
        if name == "m2m100" and config.get(CODES_KEY) not in (None, "m2m100"):
            raise TokenizerError(  # all ids of languages would be wrong
                "{file}: {key}: found {found}, expected m2m100. This program does not know the ids of other language "
                "lists; import a different model.",
                file=CONFIG,
                key=CODES_KEY,
                found=shown(config[CODES_KEY]),
            )
        family = FAMILIES[name]
        for one in (*family.files, *filter(files.has, family.may)):
            content[one] = files.read(one, limit=MAX_JSON if one == tokenizers_library.FILE else MAX_TOKENIZER)
        options = _options(name, names, content, sizes, special)
        source_language, target_language = (answers.get(key) for key in LANGUAGES)
        codes = _codes(name, names, options, content)
        if codes and not (source_language and target_language):
            return None, codes
        options = replace(options, source_language=source_language, target_language=target_language)
        made = Vocabularies(name, options, content)
        return Tokenizers(made, *made.open(), notes=(_without(said),) if name == "raw" else ()), codes


def _families(said: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """The families of tokenizers to try, first choice first."""
    name = said.removesuffix("Fast")
    if not name or name in ANY:
        return (*names, "json")
    # The files do not describe the others: BERT's for Japanese, for one, needs a separate word splitter.
    return CLASSES.get(name, ("json",))


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


def _codes(name: str, names: tuple[str, ...], options: Options, content: Files) -> tuple[str, ...]:
    """The languages of which two have to be chosen; none where a model has but one pair."""
    if name != "json" or not set(names) & set(LANGUAGE_CODES):
        return LANGUAGE_CODES.get(name, ())
    return tuple(tokenizers_library.LibraryTokenizer(content[tokenizers_library.FILE], options.size).languages())


def around(chosen: Tokenizers | None, ids: Fields) -> Fields:
    """What the tokenizers put around a text, as fields of a config; `ids` are what other files say."""
    if chosen is None or chosen.raw:
        return {}
    why, source, wrapping = say("the tokenizer of this family"), chosen.source, chosen.source.wrapping
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


SUPPRESSED, BAD_WORDS = "suppress_tokens", "bad_words_ids"
# The field of our config -> the key that says it.
KEYS: Mapping[str, str] = {
    "pad_id": "pad_token_id",
    "bos_id": "bos_token_id",
    "eos_id": "eos_token_id",
    "further_eos_ids": "eos_token_id",
    "decoder_start_id": "decoder_start_token_id",
    "forced_ids": "forced_bos_token_id",
    "banned_ids": BAD_WORDS,
    "banned_sequences": BAD_WORDS,
    "first_banned_ids": "begin_suppress_tokens",
    "no_repeat_ngram": "no_repeat_ngram_size",
    "repetition_penalty": "repetition_penalty",
    "min_length": "min_length",
    "min_new": "min_new_tokens",
    "max_length": "max_length",
    "max_new": "max_new_tokens",
    "forced_end_id": "forced_eos_token_id",
}
GENERATION = "generation_config.json"
# They choose among several outputs or sample; the likeliest piece stays the likeliest.
NOT_GREEDY = frozenset({
    "num_beams", "num_beam_groups", "num_return_sequences", "length_penalty", "early_stopping", "do_sample",
    "temperature", "top_k", "top_p", "min_p", "typical_p", "epsilon_cutoff", "eta_cutoff", "renormalize_logits",
    "remove_invalid_values", "diversity_penalty", "top_h",
})  # fmt: skip
# They change greedy output and are not supported; with the value that does nothing.
NOT_DONE: Mapping[str, Any] = {
    "encoder_no_repeat_ngram_size": 0,
    **dict.fromkeys(("encoder_repetition_penalty", "guidance_scale"), 1.0),
    **dict.fromkeys(("sequence_bias", "exponential_decay_length_penalty", "stop_strings", "force_words_ids")),
    **dict.fromkeys(("constraints", "penalty_alpha", "max_time")),
}
IDS = ("decoder_start_token_id", "bos_token_id", "eos_token_id", "pad_token_id")  # which config.json may have, too
OLD_FORCED = "force_bos_token_to_be_generated"  # how the first configs of BART said forced_bos_token_id
IN_CONFIG = frozenset({*NOT_GREEDY, *NOT_DONE, *KEYS.values(), SUPPRESSED, OLD_FORCED, "sep_token_id"})


def read_generation(
    own: Mapping[str, Any] | None, config: Mapping[str, Any], ids: Mapping[str, int | None], *, label: str
) -> tuple[Fields, tuple[Sentence, ...]]:
    """The fields that both files decide, and notes on what is not supported; invalid ids are refused.

    `own` is generation_config.json, None if missing; `ids` are the family's defaults, by transformers' names.
    """
    file = GENERATION if own is not None else "config.json"
    of_config = {name: value for name, value in config.items() if own is None or name in IDS}
    none = [(key, -1) for key in IDS]  # as some of LLaMA's have it
    own_said = {name: value for name, value in (own or {}).items() if value is not None and (name, value) not in none}
    record = {**ids, **of_config, **own_said}  # null in config.json: there is no such piece
    record = {name: None if (name, value) in none else value for name, value in record.items()}
    if own is None and config.get(OLD_FORCED) is True:
        record.setdefault("forced_bos_token_id", record.get("bos_token_id"))
    read = Settings({name: value for name, value in record.items() if value is not None}, label=f"{label}/{file}")
    values = _values(read)
    keys = {**KEYS, **({} if record.get(BAD_WORDS) else {"banned_ids": SUPPRESSED})}
    known = {name: Known(values[name], _evidence(key, own or {}, of_config)) for name, key in keys.items()}
    asked = [name for name, idle in NOT_DONE.items() if (config if own is None else own).get(name) not in (None, idle)]
    odd = {"_from_model_config", "transformers_version", "use_cache", "cache_implementation", "is_assistant"}
    asked += [name for name, one in (own or {}).items() if one not in (None, False) and name not in IN_CONFIG | odd]
    note = say(
        "{file} sets {names}, which this program does not support; outputs of the original program may differ.",
        file=file,
        names=", ".join(dict.fromkeys(asked)),
    )
    return known, (note,) if asked else ()


def _values(read: Settings) -> dict[str, Any]:
    """The values of the fields in `KEYS`; an id that ends an output may be suppressed by rules of length alone."""
    words = read.raw(BAD_WORDS, [])
    if not isinstance(words, list) or not all(isinstance(word, list) and word for word in words):
        raise read.refused(BAD_WORDS, words, say("lists of ids"))
    words = list(dict.fromkeys(tuple(_checked(read, BAD_WORDS, word)) for word in words))
    single = {word[0] for word in words if len(word) == 1} | set(_ids(read, SUPPRESSED))

    def count(key: str, absent: int | None = None, *, least: int = 0) -> int | None:
        return read.whole(key, absent, least=least, most=MAX_COUNT).value

    min_new, max_new, ends = count("min_new_tokens"), count("max_new_tokens", least=1), _ids(read, "eos_token_id")
    return {
        **{name: count(KEYS[name]) for name in ("pad_id", "bos_id", "decoder_start_id")},
        "eos_id": ends[0] if ends else None,
        "further_eos_ids": ends[1:],
        "forced_ids": _ids(read, "forced_bos_token_id"),
        "banned_ids": tuple(sorted(single - set(ends))),
        "banned_sequences": tuple(word for word in words if len(word) > 1),
        "first_banned_ids": _ids(read, "begin_suppress_tokens"),
        "no_repeat_ngram": count("no_repeat_ngram_size", 0),
        "repetition_penalty": read.number("repetition_penalty", 1.0, least=0.01, most=100).value,
        "min_length": count("min_length", 0) if min_new is None else 0,
        "min_new": min_new or 0,
        "max_length": count("max_length", least=1) if max_new is None else None,
        "max_new": max_new,
        "forced_end_id": min(_ids(read, "forced_eos_token_id"), default=None),
    }


def _ids(read: Settings, key: str) -> tuple[int, ...]:
    """One id or a list of them, each once."""
    found = read.raw(key, [])
    return tuple(dict.fromkeys(_checked(read, key, found if isinstance(found, list) else [found])))


def _checked(read: Settings, key: str, ids: list[Any]) -> list[int]:
    for i in ids:
        if type(i) is not int or not 0 <= i <= MAX_COUNT:
            raise read.refused(key, i, say("an id"))
    return ids


def _evidence(key: str, own: Mapping[str, Any], config: Mapping[str, Any]) -> Sentence:
    if own.get(key) is not None:
        return say("{key} in {file}", key=key, file=GENERATION)
    if key in config:
        return say("{key} in {file}", key=key, file="config.json")
    return say("the same in all models of this family")
