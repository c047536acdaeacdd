"""Models that differ from the patient's in one setting, and how well they do with its sentences.

A neighbour shares every parameter with the patient's model, and all else that computes: the class of the model and
what gives its positions. So whatever is wrong there is wrong in both.

Knows nothing of Streamlit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from transformer.doctor.patient import Patient
from transformer.errors import ConfigError, DataError, QueryError
from transformer.model.anatomy import StackName
from transformer.model.positions import Moves
from transformer.runs.runnable import Scorable
from transformer.trying.losses import Loss, loss_of, text_ids
from transformer.trying.samples import Samples
from transformer.trying.variants import Variant
from words import say

WORK = 2e11  # multiply-adds of one loss: about five seconds on one core
WRITTEN = 4  # passes a token that is written costs more than one that is read, about
NO_LOSS = Loss((), ())


@dataclass(frozen=True)
class Neighbour:
    """One setting and another value."""

    name: str  # for people and programs, such as "n_heads = 8"
    changes: dict[str, Any] = field(default_factory=dict)  # fields of the config
    by: int = 0  # how many rows the positions of these stacks begin later
    stacks: tuple[StackName, ...] = ()


def with_setting(**changes: Any) -> Neighbour:
    """The neighbour with other values of the config; the first one is named."""
    name, value = next(iter(changes.items()))
    return Neighbour(f"{name} = {str(value).lower() if isinstance(value, bool) else value}", changes)


def shifts(patient: Patient) -> Iterator[Neighbour]:
    """Tables of positions that begin one or two rows earlier or later, of one stack or of both."""
    stacks = tuple(one.name for one in patient.anatomy.stacks if _table(patient, one.name) is not None)
    sets = [stacks, *((one,) for one in stacks)] if len(stacks) > 1 else [stacks] if stacks else []
    for several in sets:
        for by in (-2, -1, 1, 2):
            yield Neighbour(f"positions {by:+} ({', '.join(several)})", by=by, stacks=several)


def _table(patient: Patient, stack: StackName) -> Tensor | None:
    """The table that is added to the embeddings [position, D]; None where there is none."""
    return getattr(patient.model.stack(stack).embedding.positions, "table", None)


class _Shifted(nn.Module):
    """A table of positions that begins some rows later; what is beyond one end is taken from the other."""

    def __init__(self, table: Tensor, by: int) -> None:
        super().__init__()
        self._rows, self._by = table.detach(), by

    def forward(self, length: int, *, offset: int = 0, moves: Moves | None = None) -> Tensor:
        """Vectors of the positions from offset on, moved if they are [length, D]."""
        places = torch.arange(offset, offset + length)
        places = places if moves is None else moves(places)
        return self._rows[(places + self._by) % len(self._rows)]


def fitting(patient: Patient) -> Samples:
    """The patient's sentences that the model can read, as many as can be scored in a few seconds."""
    checkpoint, samples, config = patient.checkpoint, patient.scored, patient.config
    places, work = [], 0.0
    alone = not patient.anatomy.reads
    for i in range(len(samples)):
        try:
            source = len(text_ids(samples.sources[i], checkpoint.src_tokenizer, config.normalisation))
            target = len(text_ids(samples.targets[i], checkpoint.tgt_tokenizer)) if samples.targets else 0
        except DataError:
            continue
        n = source + len(config.source_start) + len(config.source_end) + (target if alone else 0)
        cost = n + target + (0 if samples.targets or alone else WRITTEN * n)
        work += cost * config.count_parameters()
        if source and max(n, target + len(config.forced_ids) + 1) < config.max_len and work <= WORK:
            places.append(i)
    return samples.only(places)


def as_it_is(patient: Patient) -> Loss:
    """The loss of the patient's own model; a `QueryError` where it gives no logits, or what is not finite."""
    found = patient.losses.get("")
    if found is None:
        patient.losses[""] = found = _scored(patient, patient.checkpoint)
    return found


def _scored(patient: Patient, model: Scorable) -> Loss:
    samples = fitting(patient)
    found = loss_of(model, samples) if len(samples) else NO_LOSS
    if not all(abs(one) < float("inf") for one in found.totals):
        raise QueryError(say("What this model computes of its sentences is not finite."))
    return found


def loss_of_neighbour(patient: Patient, neighbour: Neighbour) -> Loss | None:
    """The loss of a neighbour on the same texts; None if no model has this setting."""
    if neighbour.name not in patient.losses:
        patient.pause()
        try:
            model = neighbour_of(patient, neighbour)
            patient.losses[neighbour.name] = None if model is None else _scored(patient, model)
        except (ConfigError, QueryError):  # it contradicts the rest, or what it computes is not finite
            patient.losses[neighbour.name] = None
    return patient.losses[neighbour.name]


def neighbour_of(patient: Patient, neighbour: Neighbour) -> Variant | None:
    """The model with another setting; None if it would have other parameters. The next one may change it.

    A `ConfigError` where the setting contradicts others.
    """
    found = patient.variants.get(neighbour.changes)
    if found is None:
        return None
    found.model.__class__ = type(patient.model)
    for one in patient.anatomy.stacks:
        positions: nn.Module | None = patient.model.stack(one.name).embedding.positions
        table = _table(patient, one.name)
        if one.name in neighbour.stacks and table is not None:
            positions = _Shifted(table, neighbour.by)
        setattr(found.model.stack(one.name).embedding, "positions", positions)  # noqa: B010  of another class
    return found
