"""What a folder says of how its model writes: the ids that begin and end, the rules, and what is not done here.

It stands in generation_config.json, or in older folders among the keys of config.json.

Source: transformers 5.23, `GenerationConfig`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from transformer.importers.huggingface.config_settings import Known
from transformer.importers.huggingface.writing import BAD_WORDS, KEYS, SUPPRESSED, ids_of, rules_of
from words import Sentence, say

FILE = "generation_config.json"

# They choose among several outputs or draw by chance, and leave the likeliest piece the likeliest.
NOT_GREEDY = frozenset({
    "num_beams", "num_beam_groups", "num_return_sequences", "length_penalty", "early_stopping", "do_sample",
    "temperature", "top_k", "top_p", "min_p", "typical_p", "epsilon_cutoff", "eta_cutoff", "renormalize_logits",
    "remove_invalid_values", "diversity_penalty", "top_h",
})  # fmt: skip
# Greedy output is another with them, and this program has nothing like them; the value that does nothing.
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
# What stands for pad_id, bos_id, eos_id, further_eos_ids, decoder_start_id and forced_ids; `KEYS` has the rules.
THEIRS = (
    "pad_token_id", "bos_token_id", "eos_token_id", "eos_token_id", "decoder_start_token_id", "forced_bos_token_id",
)  # fmt: skip
READ = ("decoder_start_token_id", "bos_token_id", "eos_token_id", "pad_token_id", "forced_bos_token_id")
OLD_FORCED = "force_bos_token_to_be_generated"  # how the first configs of BART said forced_bos_token_id
IN_CONFIG = frozenset({*NOT_GREEDY, *NOT_DONE, *READ, *KEYS.values(), SUPPRESSED, OLD_FORCED, "sep_token_id"})


@dataclass(frozen=True)
class Generation:
    """How a model writes."""

    values: Mapping[str, Known]  # of the fields of our config that it decides
    notes: tuple[Sentence, ...]  # what is not carried out here


def read_generation(
    own: Mapping[str, Any] | None, config: Mapping[str, Any], ids: Mapping[str, int | None], *, label: str
) -> Generation:
    """What both files say: `own` is what generation_config.json holds, None if there is none.

    `ids` are what a family's models have where neither file says it, by transformers' names. Refuses what is no id.
    """
    file = FILE if own is not None else "config.json"
    of_config = {name: value for name, value in config.items() if own is None or name in READ[:4]}
    record = {**ids, **of_config, **_said(own or {})}  # null in config.json: there is no such piece
    at = f"{label}/{file}"
    ends = ids_of(record.get("eos_token_id"), "eos_token_id", at)
    if own is None and config.get(OLD_FORCED) is True:
        record.setdefault("forced_bos_token_id", record.get("bos_token_id"))
    for key in ("pad_token_id", "bos_token_id", "decoder_start_token_id"):
        ids_of([record.get(key)] if isinstance(record.get(key), list) else record.get(key), key, at)
    values = {
        "pad_id": record.get("pad_token_id"),
        "bos_id": record.get("bos_token_id"),
        "eos_id": ends[0] if ends else None,
        "further_eos_ids": tuple(ends[1:]),
        "decoder_start_id": record.get("decoder_start_token_id"),
        "forced_ids": ids_of(record.get("forced_bos_token_id"), "forced_bos_token_id", at),
        **rules_of(record, ends, label=at),
    }
    keys = dict(zip(values, (*THEIRS, *KEYS.values()), strict=True))
    if not record.get(BAD_WORDS):
        keys["banned_ids"] = SUPPRESSED
    known = {name: Known(value, _evidence(keys[name], own or {}, of_config)) for name, value in values.items()}
    return Generation(known, tuple(_notes(own if own is not None else config, file, whole=own is not None)))


def _evidence(key: str, own: Mapping[str, Any], config: Mapping[str, Any]) -> Sentence:
    if own.get(key) is not None:
        return say("{key} in {file}", key=key, file=FILE)
    if key in config:
        return say("{key} in {file}", key=key, file="config.json")
    return say("all models of this family have it")


def _said(record: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if value is not None}


def _notes(record: Mapping[str, Any], file: str, *, whole: bool) -> Iterator[Sentence]:
    """What is asked for and not carried out; of a file of its own, keys of unknown meaning as well."""
    asked = [name for name, idle in NOT_DONE.items() if record.get(name) not in (None, idle)]
    if whole:
        odd = {"_from_model_config", "transformers_version", "use_cache", "cache_implementation", "is_assistant"}
        asked += [
            name for name, value in record.items() if value not in (None, False) and name not in IN_CONFIG | odd
        ]
    if asked:
        yield say(
            "{file} asks for {names}, which is not carried out here: outputs of its own program may be others.",
            file=file,
            names=", ".join(dict.fromkeys(asked)),
        )
