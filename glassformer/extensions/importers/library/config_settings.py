"""Values of a model's config with their evidence: a checked reader of config.json, a family's record.

    settings.whole("d_model")                  a Known with the value and the evidence
    settings.flag("scale_embedding", False)    the same, where the key may be missing
    settings.expect("pruned_heads", {})        refused if it says something else

Reads are recorded. At the end, a key that was never read is refused by name, unless it is known to have no effect.
"""

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, Final

from glassformer.extensions.importers.library.keys import KeyTable
from glassformer.extensions.importers.library.report import Field, How
from transformer.checkpoint.consistency import first
from transformer.errors import CheckpointError, ConfigError, shown
from transformer.i18n import Sentence, say
from transformer.model.config import MAX_LAYERS, MAX_LENGTH, ModelConfig

MAX_WHOLE = 2**31
MOST_CONFIG = 4_000_000  # bytes; label maps can be long
_DEFAULTS = {field.name: field.default for field in fields(ModelConfig) if field.default is not MISSING}

# Non-linearities: transformers' name -> the name in our config.
ACTIVATIONS: Mapping[str, str] = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_accurate": "gelu_tanh",
    "silu": "silu",
    "swish": "silu",
    "quick_gelu": "quick_gelu",
}


@dataclass(frozen=True)
class Known:
    """A value of our config, and how it is known."""

    value: Any
    evidence: Sentence
    how: How = "read"


Fields = dict[str, Known]  # by the names of our config


_REQUIRED: Any = object()  # no default


def fixed(value: Any) -> Known:
    """What all models of a family have, and no config says."""
    return Known(value, say("the same in all models of this family"))


def always(**values: Any) -> Fields:
    """The same of several fields, by their names."""
    return {name: fixed(value) for name, value in values.items()}


def inferred(value: Any, evidence: Sentence) -> Known:
    """What the tensors of the file show."""
    return Known(value, evidence, "inferred")


class Settings:
    """The keys of one config.json."""

    USUAL: Final = {  # sizes
        "d_model": "hidden_size", "n_heads": "num_attention_heads", "d_ff": "intermediate_size",
        "max_len": "max_position_embeddings",
    }  # fmt: skip

    def __init__(self, record: Mapping[str, Any], *, label: str) -> None:
        self.label = label
        self._record = record
        self._asked: set[str] = set()

    def has(self, key: str) -> bool:
        """Whether the file says something of it, be it null."""
        return key in self._record

    def keys(self) -> list[str]:
        """All that the file says something of."""
        return list(self._record)

    def raw(self, key: str, absent: Any = None) -> Any:
        """The value as it is."""
        self._asked.add(key)
        return self._record.get(key, absent)

    def whole(
        self, key: str, absent: Any = _REQUIRED, *, null: Any = _REQUIRED, least: int = 0, most: int = MAX_WHOLE
    ) -> Known:
        """A whole number; CheckpointError if it is missing, without `absent`, or not from `least` to `most`.

        `null` is what null means, if that is not an error.
        """
        found = self._found(key, absent)
        if found.value is None and null is not _REQUIRED and self.has(key):
            return null if isinstance(null, Known) else Known(null, self.where(key))
        if self.has(key) and (type(found.value) is not int or not least <= found.value <= most):  # True is a number
            raise self.refused(key, found.value, say("a whole number from {least} to {most:,}", least=least, most=most))
        return found

    def sizes(self, keys: Mapping[str, str]) -> Fields:
        """Whole numbers above 0, by fields of ours, of the keys that say them."""
        return {
            name: self.whole(key, least=1, most=MAX_LAYERS if name.endswith("_layers") else MAX_WHOLE)
            for name, key in keys.items()
        }

    def vocabulary(self) -> Fields:
        """The number of pieces, which is one for both sides."""
        return dict.fromkeys(("src_vocab_size", "tgt_vocab_size"), self.whole("vocab_size", least=1))

    def number(self, key: str, absent: Any = _REQUIRED, *, least: float = -math.inf, most: float = math.inf) -> Known:
        """A number; CheckpointError if it is missing or none, or not from `least` to `most`."""
        found = self._found(key, absent)
        if isinstance(found.value, bool) or not isinstance(found.value, int | float):
            raise self.refused(key, found.value, say("a number"))
        if not least <= found.value <= most:
            raise self.refused(key, found.value, say("a number from {least:g} to {most:g}", least=least, most=most))
        return Known(float(found.value), found.evidence)

    def flag(self, key: str, absent: Any = _REQUIRED) -> Known:
        """True or false; CheckpointError if it is missing or neither."""
        found = self._found(key, absent)
        if not isinstance(found.value, bool):
            raise self.refused(key, found.value, say("true or false"))
        return found

    def word(self, key: str, absent: Any = _REQUIRED, *, names: Mapping[str, str] = ACTIVATIONS) -> Known:
        """A word, such as that of a non-linearity, by its name here; CheckpointError if it is missing or unknown."""
        found = self._found(key, absent)
        if not isinstance(found.value, str) or found.value not in names:
            raise self.refused(key, found.value, say("one of {names}", names=", ".join(names)))
        return Known(names[found.value], found.evidence)

    def expect(self, key: str, *allowed: Any) -> None:
        """Refuse what another value of a key would compute; the key may be missing."""
        found = self.raw(key, allowed[0])
        if found not in allowed:
            raise self.refused(key, found, shown(allowed[0]))

    def same(self, key: str, other: str, absent: Any = _REQUIRED, *, read: Callable[..., Known] | None = None) -> Known:
        """A number, or what `read` reads, that the encoder and the decoder each have; refused where they differ."""
        found, second = ((read or self.whole)(one, absent) for one in (key, other))
        if found.value != second.value:
            expected = say("{value}, as in {other}", value=found.value, other=key)
            raise self.refused(other, second.value, expected)
        return Known(found.value, self.where(key, other))

    def refused(self, key: str, found: object, expected: Sentence | str) -> CheckpointError:
        """The error for a value that this program has no arithmetic for."""
        return CheckpointError(
            "{label}: {key}: found {found}, expected {expected}. Loaded like this, the model would give different "
            "results from the original.",
            label=self.label,
            key=key,
            found=shown(found),
            expected=expected,
        )

    def check_all_asked(self, without_effect: Collection[str]) -> None:
        """Refuse keys of unknown meaning."""
        unknown = [
            shown(key)
            for key in self._record
            if key not in self._asked and key not in without_effect and not key.startswith("_")
        ]
        if unknown:
            raise CheckpointError(
                "{label}: has keys of unknown meaning ({keys}), so results might differ from the original model's. "
                "Remove the keys if they have no effect.",
                label=self.label,
                keys=first(unknown),
            )

    def where(self, *keys: str) -> Sentence:
        """Where a value was found."""
        return say("{key} in config.json", key=", ".join(keys))

    def nowhere(self, key: str) -> Sentence:
        """That nothing was found, and what it is then."""
        return say("default value, because config.json has no {key}", key=key)

    def _found(self, key: str, absent: Any) -> Known:
        self._asked.add(key)
        if key in self._record:
            return Known(self._record[key], self.where(key))
        if absent is _REQUIRED:
            raise CheckpointError("{label}: {key}: is missing.", label=self.label, key=key)
        if isinstance(absent, Known):
            return absent
        return Known(absent, self.nowhere(key))


Present = Collection[str]  # names of the model, as the table gives them, for which the file has tensors


@dataclass(frozen=True)
class Family:
    """A family of models."""

    name: str  # what people call it
    table: KeyTable | Callable[[Settings], KeyTable]  # its key table; a few depend on the config
    fields: Callable[[Settings, Present], Fields]  # from its config and from what the file has to the fields of ours
    always: Mapping[str, Any] = field(default_factory=dict)  # further fields of ours, which no config says
    # Default ids by transformers' names, without the end id: by default the library ends no output.
    ids: Mapping[str, int | None] = field(default_factory=dict)
    # Possible families of tokenizers, the first choice first.
    vocabularies: tuple[str, ...] = ()
    tied: bool = True  # whether the output is the table of embeddings where config.json has no `tie_word_embeddings`
    known: Collection[str] = ()  # further keys of config.json that have no effect in this family

    def said(self, settings: Settings, present: Present) -> Fields:
        """The fields of ours, from a config and from what the file has."""
        return self.fields(settings, present) | always(**self.always)


def config_of(said: Fields, *, label: str) -> ModelConfig:
    """The config of these fields; a CheckpointError says where a value that is refused comes from."""
    try:
        return ModelConfig(**{name: one.value for name, one in said.items()})
    except ConfigError as error:
        known = said.get(error.field.split(".")[0])
        if known is None:
            raise CheckpointError("{label}: {problem}", label=label, problem=error.sentence) from error
        raise CheckpointError(
            "{label}: {problem} ({evidence})", label=label, problem=error.sentence, evidence=known.evidence
        ) from error


def reported(said: Fields) -> list[Field]:
    """The fields that a report lists: those that are not at their default."""
    return [
        Field(name, one.how, one.value, one.evidence)
        for name, one in said.items()
        if name not in _DEFAULTS or _DEFAULTS[name] != one.value
    ]


def at_most(length: Known) -> Known:
    """A length, cut at the most that this program reads."""
    if length.value <= MAX_LENGTH:
        return length
    return Known(MAX_LENGTH, say("the limit of this program; the model's own limit is {n:,}", n=length.value))
