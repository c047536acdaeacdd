"""Base class of interventions, their error, and the context in which one is applied.

An intervention is a frozen record and a part of a query. Its fields are declared with the functions of `fields`, which
also give its JSON and its part of a URL. It overrides the methods below: `visitors` changes values and settings of the
model through a tap, `edited` the ids that the model reads. No weight is edited, and there is no second model.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self, dataclass_transform

from torch import Tensor

from transformer.errors import QueryError, shown
from transformer.i18n import Sentence
from transformer.model.anatomy import Kind
from transformer.model.config import ModelConfig
from transformer.model.taps import Hook
from transformer.runs.interventions.fields import spelled

Group = Literal["heads", "rows", "pieces", "positions", "masks", "attention", "layers"]
"""Under which heading a menu offers an intervention."""


class InterventionError(QueryError):
    """A change cannot be made in this model or this run; the run without it is possible."""


@dataclass(frozen=True)
class Other:
    """Another run, from which values are copied."""

    src_ids: tuple[int, ...]  # what was read
    tgt_ids: tuple[int, ...]  # what was written
    values: dict[str, Tensor]  # by site, as `transformer.runs.running.replay` has them, with a batch axis of 1


@dataclass(frozen=True)
class InterventionContext:
    """What an intervention may use when it is applied."""

    config: ModelConfig  # of the model
    # Returns a parameter by its name in the model; read-only.
    parameter: Callable[[str], Tensor]
    # Runs another source on the unchanged model, greedily, and records sites.
    other: Callable[[str, Sequence[str]], Other]


@dataclass_transform(frozen_default=True)
class Intervention:
    """One change, a frozen dataclass; a QueryError if a value has the wrong type or is out of range for every model."""

    word: ClassVar[str]  # its name in a URL and in JSON: small letters
    group: ClassVar[Group]  # where a menu offers it
    title: ClassVar[Sentence]  # what a menu calls it
    about: ClassVar[Sentence]  # one sentence on what it does, with its source if it has one
    swept: ClassVar[str] = ""  # the field that says how much is changed, over which its error can be drawn; "": none

    def __init_subclass__(cls, *, kw_only: bool = False) -> None:
        dataclass(frozen=True, kw_only=kw_only)(cls)

    def __post_init__(self) -> None:
        for field, (name, spelling) in spelled(self).items():
            object.__setattr__(self, field, spelling.check(name, getattr(self, field)))
        self.agree()

    def __str__(self) -> str:
        """Its spelling in a URL."""
        fields = spelled(self).items()
        return "-".join([self.word, *filter(None, [".".join(s.write(getattr(self, f)) for f, (_, s) in fields)])])

    def to_record(self) -> dict[str, object]:
        """Its record in JSON."""
        return {"change": self.word} | {name: getattr(self, field) for field, (name, _) in spelled(self).items()}

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Self:
        """Read what `to_record` wrote; a QueryError if it is something else."""
        names = {name: field for field, (name, _) in spelled(cls).items()}
        if record.keys() != {"change", *names}:
            raise QueryError(
                "interventions: found {found}, expected the form that `Query.to_json` writes.", found=shown(record)
            )
        return cls(**{field: record[name] for name, field in names.items()})

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Read what follows the word in a URL; a QueryError if it is something else, or in no model."""
        fields = spelled(cls)
        parts = text.split(".") if text else []
        if len(parts) != len(fields):
            expected = ".".join(str(spelling.label).lower() for _, spelling in fields.values())
            raise QueryError(
                "the change {text} is not valid; expected {word} with these fields: {fields}.",
                text=shown(f"{cls.word}-{text}"),
                word=cls.word,
                fields=expected or "-",
            )
        try:
            read = [spelling.read(part) for part, (_, spelling) in zip(parts, fields.values(), strict=True)]
            return cls(**dict(zip(fields, read, strict=True)))
        except QueryError as error:
            raise QueryError(
                "in the change {text}: {problem}", text=shown(f"{cls.word}-{text}"), problem=error.sentence
            ) from None

    @property
    def target(self) -> tuple[object, ...]:
        """What it changes. Two changes of one query with equal targets contradict each other."""
        return (self.word, *(getattr(self, field) for field, (_, s) in spelled(self).items() if s.target))

    def agree(self) -> None:
        """Check that the values fit together; a QueryError if they do not."""

    @classmethod
    def unfit(cls, config: ModelConfig) -> Sentence | None:
        """Why such a change makes no sense in a model, whatever its values; None if it makes sense."""
        return None

    def check(self, config: ModelConfig) -> None:
        """Check that it can be made in a model, or raise an InterventionError; overriding methods call this first."""
        if (why := self.unfit(config)) is not None:
            raise InterventionError(why)

    def seen_by_others(self, config: ModelConfig) -> ModelConfig:
        """The config that other changes of the run see; it differs if this one changes the number of heads."""
        return config

    def told(self) -> str:
        """What it changes, without a full stop, such as "Cross-attention, layer 3, head 1: writes nothing"."""
        raise NotImplementedError

    def visitors(self, ground: InterventionContext) -> tuple[Hook, ...]:
        """The visitors that change a model; new for every run, so they may remember what they saw."""
        return ()

    def edited(self, ids: tuple[int, ...], config: ModelConfig) -> tuple[int, ...]:
        """The ids that the model reads instead of these, special ones included; an InterventionError if impossible."""
        return ids

    def insisted(self, forced: tuple[int, ...], most: int) -> Mapping[int, int]:
        """Ids that must be written, by step from 0, in a run of at most so many; an InterventionError if impossible."""
        return {}

    def closed_score(self, kind: Kind, own: float | None) -> float | None:
        """What scores of closed keys become in an attention where they became `own`; None: minus infinity."""
        return own

    def fits(self, ids: tuple[int, ...], config: ModelConfig) -> None:
        """Check that it can be made where these ids, after all edits, are read, or raise an InterventionError."""
