"""Rotary positions as a config.json of transformers has them, in the spelling of versions 4 and 5.

    4    "rope_theta": 500000.0, "rope_scaling": {"rope_type": "llama3", "factor": 32.0, ...}
    5    "rope_parameters": {"rope_theta": 500000.0, "rope_type": "llama3", "factor": 32.0, ...}

Source: transformers 5.23, `modeling_rope_utils`.
"""

import math
from collections.abc import Mapping
from typing import Any

from glassformer.extensions.importers.library.config_settings import Known, Settings
from transformer.i18n import say
from transformer.model.attention_features import Rotary

SCALED, NEW = "rope_scaling", "rope_parameters"
# "dynamic" is as "default" up to the length of the training, and longer texts are not read here.
KINDS = {"default": "none", "dynamic": "none", "linear": "linear", "llama3": "llama3", "yarn": "yarn"}
# The keys that each kind reads; others would be arithmetic that is not done.
READ = {
    "default": frozenset[str](),
    "dynamic": frozenset({"factor", "original_max_position_embeddings"}),
    "linear": frozenset({"factor"}),
    "llama3": frozenset({"factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"}),
    "yarn": frozenset({
        "factor", "original_max_position_embeddings", "beta_fast", "beta_slow", "truncate", "attention_factor",
        "mscale", "mscale_all_dim",
    }),
}  # fmt: skip
ALWAYS = frozenset({"rope_type", "type", "rope_theta", "partial_rotary_factor"})


def rotary(
    settings: Settings,
    *,
    base: float = 10_000.0,
    share: float | None = None,
    share_key: str = "",
    base_key: str = "rope_theta",
) -> Known:
    """The numbers of rotary positions; refuses an unknown kind of scaling or number of it.

    `base` and `share`, how much of a head turns, are what they are where no key says it; without a share all turns,
    whatever the keys say. `share_key` and `base_key` are what version 4 calls them; a base among the numbers of the
    positions wins over it.
    """
    new, old = (record_of(settings, key, settings.raw(key)) for key in (NEW, SCALED))
    key, said = (SCALED, old) if old else (NEW, new)  # an empty one says nothing
    outside = settings.number(base_key, base).value
    numbers = of_record(settings, key, said, base=outside, whole=share is None)
    if share is None:
        settings.expect("partial_rotary_factor", 1.0, None)
    else:
        old_share = settings.number(share_key, share).value
        numbers["share"] = said.get("partial_rotary_factor", old_share)
    if numbers["scaling"] != "none":
        numbers.setdefault("original_len", settings.whole("max_position_embeddings").value)
    return Known(made(numbers, settings, key), say("{key} in config.json", key=key))


def of_record(
    settings: Settings, key: str, said: Mapping[str, Any], *, base: float, whole: bool = True
) -> dict[str, Any]:
    """The numbers of one record of them, as `Rotary` takes them; `base` if the record does not say it.

    Where a head turns as a whole, no record may say a share of it.
    """
    kind = said.get("rope_type", said.get("type", "default"))
    if not isinstance(kind, str) or kind not in KINDS:
        raise settings.refused(f"{key}.rope_type", kind, say("one of {names}", names=", ".join(KINDS)))
    for name in said:
        if name not in READ[kind] | ALWAYS and said[name] is not None:
            raise settings.refused(
                f"{key}.{name}", said[name], say("no value, because {kind} does not use it", kind=kind)
            )
    if whole and said.get("partial_rotary_factor") not in (None, 1.0):
        raise settings.refused(f"{key}.partial_rotary_factor", said["partial_rotary_factor"], "1.0")
    values = {name: value for name, value in said.items() if value is not None}
    numbers: dict[str, Any] = {"base": values.get("rope_theta", base), "scaling": KINDS[kind]}
    for name, ours in (
        ("factor", "factor"),
        ("original_max_position_embeddings", "original_len"),
        ("low_freq_factor", "slow"),
        ("high_freq_factor", "fast"),
        ("beta_slow", "slow"),
        ("beta_fast", "fast"),
        ("truncate", "rounded"),
        ("attention_factor", "magnitude"),
    ):
        if name in values and name in READ[kind] and kind != "dynamic":
            numbers[ours] = values[name]
    if kind == "yarn" and "mscale" in values and "mscale_all_dim" in values and "magnitude" not in numbers:
        numbers["magnitude"] = _ratio(settings, key, values)
    return numbers


def made(numbers: Mapping[str, Any], settings: Settings, key: str) -> Rotary:
    """The record of them; a number that makes no sense is refused."""
    try:
        return Rotary(**numbers)
    except ValueError as error:
        sentence = getattr(error, "sentence", str(error))
        raise settings.refused(key, dict(numbers), sentence) from error


def _ratio(settings: Settings, key: str, values: Mapping[str, Any]) -> float:
    found = [values["mscale"], values["mscale_all_dim"], values.get("factor", 1.0)]
    if not all(isinstance(one, int | float) and one > 0 for one in found):
        raise settings.refused(f"{key}.mscale", found[0], say("a number above 0"))
    first, second, factor = found
    return float((0.1 * first * math.log(factor) + 1) / (0.1 * second * math.log(factor) + 1))


def record_of(settings: Settings, key: str, found: Any) -> Mapping[str, Any]:
    """The record that was found at a key; empty where there is none. Something else is refused."""
    if found is not None and not isinstance(found, Mapping):
        raise settings.refused(key, found, say("an object"))
    return found or {}


def grows(record: Mapping[str, Any]) -> bool:
    """Whether a config.json asks for other angles in texts beyond the length of the training ("dynamic")."""
    said = record.get(SCALED) or record.get(NEW)
    return isinstance(said, Mapping) and "dynamic" in (said.get("rope_type"), said.get("type"))
