"""Interventions (changes inside a model during a run): registry of kinds; checking, JSON and URL of a list.

Interventions are a part of a query: frozen and hashable, in JSON, and short in a URL, where places count from 1 as on
the pages.

    zero-cross.3.1                     head 1 of layer 3's cross-attention writes nothing
    zero-cross.3.1_zero-decoder.1.2    and neither does head 2 of layer 1's decoder self-attention

`transformer.runs.apply_interventions` applies them in decoding, recording and replay: the output changes, and the trace
shows why. The kinds come from extensions: field `changes` of `transformer.extensions` names a dict by word, in the
order of the menu. `KINDS` has them all, and `from transformer.runs.interventions import ZeroHead` gives one.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from transformer.errors import QueryError, shown
from transformer.extensions import provided
from transformer.model.config import ModelConfig
from transformer.runs.interventions.base import Intervention as Intervention
from transformer.runs.interventions.base import InterventionContext as InterventionContext
from transformer.runs.interventions.base import InterventionError as InterventionError

Ground, ChangeError = InterventionContext, InterventionError  # their names before
MAX_INTERVENTIONS: Final = 64
MAX_CHARACTERS: Final = 6_000  # of all of them in a URL
_SEPARATOR: Final = "_"
_EXAMPLE: Final = "zero-cross.3.1"

_LIKE: Final = re.compile(r"([a-z]{1,20})(?:-(.{1,5000}))?", re.ASCII)


def kinds() -> Mapping[str, type[Intervention]]:
    """All kinds of interventions by their word, in the order in which a menu offers them."""
    return {word: kind for some in provided("changes") for word, kind in some.items()}


def __getattr__(name: str) -> Any:
    """`KINDS`, or the class of a kind by its name."""
    found = {kind.__name__: kind for kind in kinds().values()} | {"KINDS": kinds()}
    if name.startswith("_") or name not in found:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return found[name]


def checked(interventions: object) -> tuple[Intervention, ...]:
    """A list or tuple of interventions as a tuple; a QueryError if it is another type, too long or contradictory."""
    if not isinstance(interventions, list | tuple) or not all(isinstance(one, Intervention) for one in interventions):
        raise QueryError("interventions: found {found}, expected a list of interventions.", found=shown(interventions))
    if len(interventions) > MAX_INTERVENTIONS:
        raise QueryError(
            "{n:,} intervention was requested; the limit is {most}.",
            "{n:,} interventions were requested; the limit is {most}.",
            len(interventions),
            most=MAX_INTERVENTIONS,
        )
    if (length := len(write(interventions))) > MAX_CHARACTERS:
        raise QueryError(
            "these changes take up {length:,} characters in an address; the limit is {most:,}. Make fewer changes.",
            length=length,
            most=MAX_CHARACTERS,
        )
    times = Counter(one.target for one in interventions)
    again = next((one for one in interventions if times[one.target] > 1), None)
    if again is not None:
        other = next(one for one in reversed(interventions) if one.target == again.target)
        if other == again:
            raise QueryError("{change} is already made; leave it out once.", change=str(again))
        raise QueryError(
            "{first} and {second} change the same thing; leave one of them out.", first=str(again), second=str(other)
        )
    return tuple(interventions)


def fitted(interventions: Iterable[Intervention], config: ModelConfig) -> Iterator[tuple[Intervention, ModelConfig]]:
    """Each intervention with the config that it sees, altered by others; an InterventionError if it does not fit."""
    interventions = tuple(interventions)
    for one in interventions:
        seen = config
        for other in interventions:
            seen = seen if other is one else other.seen_by_others(seen)
        one.check(seen)
        yield one, seen


def as_changed(interventions: Iterable[Intervention], config: ModelConfig) -> ModelConfig:
    """The config for looking at a changed run; it differs if a change splits the heads in another way."""
    for one in interventions:
        config = one.seen_by_others(config)
    return config


def from_record(record: Any) -> Intervention:
    """Read what `to_record` wrote; a QueryError if it is something else."""
    word = record.get("change") if isinstance(record, dict) else None
    if not isinstance(word, str) or word not in kinds():
        raise QueryError(
            "interventions: found {found}, expected the form that `Query.to_json` writes.", found=shown(record)
        )
    return kinds()[word].from_record(record)


def write(interventions: Iterable[Intervention]) -> str:
    """All of them as one query parameter; empty if there are none."""
    return _SEPARATOR.join(map(str, interventions))


def parse(text: str) -> tuple[Intervention, ...]:
    """Read what `write` wrote; a QueryError if it is something else, or names a part that no model has."""
    return checked([_parse_one(part) for part in text.split(_SEPARATOR)] if text else [])


def _parse_one(text: str) -> Intervention:
    match = _LIKE.fullmatch(text)
    kind = kinds().get(match[1]) if match else None
    if match is None or kind is None:
        raise QueryError(
            "the change {text} is not valid; expected a form like {example}.", text=shown(text), example=_EXAMPLE
        )
    return kind.from_text(match[2] or "")
