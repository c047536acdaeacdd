"""Generation settings of a folder (`generation_config.json`): special ids and decoding rules.

They are in generation_config.json, or in older folders in config.json.

Source: transformers 5.23, `GenerationConfig` and how `generate` reads it: counts of new pieces win over counts of all
tokens, and of several forced ends the smallest id is the likeliest.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from glassformer.extensions.importers.library.config_settings import Fields, Known, Settings
from transformer.i18n import Sentence, say
from transformer.model.config_fields import MAX_COUNT

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
FILE = "generation_config.json"
# They choose among several outputs or sample; the likeliest piece stays the likeliest.
NOT_GREEDY = frozenset({
    "num_beams", "num_beam_groups", "num_return_sequences", "length_penalty", "early_stopping", "do_sample",
    "temperature", "top_k", "top_p", "min_p", "typical_p", "epsilon_cutoff", "eta_cutoff", "renormalize_logits",
    "remove_invalid_values", "diversity_penalty", "top_h",
})  # fmt: skip
# They change greedy output and are not supported; with the value that does nothing.
NOT_DONE: Mapping[str, Any] = {
    "encoder_no_repeat_ngram_size": 0,
    "encoder_repetition_penalty": 1.0,
    "sequence_bias": None,
    "exponential_decay_length_penalty": None,
    "guidance_scale": 1.0,
    "stop_strings": None,
    "force_words_ids": None,
    "constraints": None,
    "penalty_alpha": None,
    "max_time": None,
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
    file = FILE if own is not None else "config.json"
    of_config = {name: value for name, value in config.items() if own is None or name in IDS}
    none = [(key, -1) for key in IDS]  # as some of LLaMA's have it
    own_said = {name: value for name, value in (own or {}).items() if value is not None and (name, value) not in none}
    record = {**ids, **of_config, **own_said}  # null in config.json: there is no such piece
    record = {name: None if (name, value) in none else value for name, value in record.items()}
    if own is None and config.get(OLD_FORCED) is True:
        record.setdefault("forced_bos_token_id", record.get("bos_token_id"))
    read = Settings({name: value for name, value in record.items() if value is not None}, label=f"{label}/{file}")
    values = {**_special(read), **_rules(read)}
    keys = {**KEYS, **({} if record.get(BAD_WORDS) else {"banned_ids": SUPPRESSED})}
    known = {name: Known(values[name], _evidence(key, own or {}, of_config)) for name, key in keys.items()}
    return known, tuple(_notes(own if own is not None else config, file, whole=own is not None))


def _special(read: Settings) -> dict[str, Any]:
    """The special ids of a record."""
    ends = _ids(read, "eos_token_id")
    single = ("pad_id", "bos_id", "decoder_start_id")
    return {
        **{name: read.whole(KEYS[name], None, most=MAX_COUNT).value for name in single},
        "eos_id": ends[0] if ends else None,
        "further_eos_ids": ends[1:],
        "forced_ids": _ids(read, "forced_bos_token_id"),
    }


def _rules(read: Settings) -> dict[str, Any]:
    """The values of the fields in `KEYS`; an id that ends an output may be suppressed by rules of length alone."""
    words = read.raw(BAD_WORDS, [])
    if not isinstance(words, list) or not all(isinstance(word, list) and word for word in words):
        raise read.refused(BAD_WORDS, words, say("lists of ids"))
    words = list(dict.fromkeys(tuple(_checked(read, BAD_WORDS, word)) for word in words))
    single = {word[0] for word in words if len(word) == 1} | set(_ids(read, SUPPRESSED))

    def count(key: str, absent: int | None = None, *, least: int = 0) -> int | None:
        return read.whole(key, absent, least=least, most=MAX_COUNT).value

    min_new, max_new = count("min_new_tokens"), count("max_new_tokens", least=1)
    return {
        "banned_ids": tuple(sorted(single - set(_ids(read, "eos_token_id")))),
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
        return say("{key} in {file}", key=key, file=FILE)
    if key in config:
        return say("{key} in {file}", key=key, file="config.json")
    return say("the same in all models of this family")


def _notes(record: Mapping[str, Any], file: str, *, whole: bool) -> Iterator[Sentence]:
    """What is asked for and not carried out; of a file of its own, keys of unknown meaning as well."""
    asked = [name for name, idle in NOT_DONE.items() if record.get(name) not in (None, idle)]
    if whole:
        odd = {"_from_model_config", "transformers_version", "use_cache", "cache_implementation", "is_assistant"}
        asked += [name for name, value in record.items() if value not in (None, False) and name not in IN_CONFIG | odd]
    if asked:
        yield say(
            "{file} sets {names}, which this program does not support; outputs of the original program may differ.",
            file=file,
            names=", ".join(dict.fromkeys(asked)),
        )
