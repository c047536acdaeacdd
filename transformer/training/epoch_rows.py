"""What a training remembers of its epochs: a row for each, where its rate turned, and where the time cut it.

Each is read back from a stored state with suspicion: whatever it holds is one of these records or a `ClauseError`.
"""

import csv
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TypeGuard

import torch
from torch import Tensor

from transformer.errors import ClauseError, shown

Turn = tuple[int, float]  # step and seconds at which the rate was highest


@dataclass(frozen=True)
class Row:
    """One line of training.csv: the state after an epoch. Losses in nats a target token, without smoothing on dev."""

    epoch: int
    step: int
    loss: float
    dev_loss: float
    dev_bleu: float
    dev_chrf: float
    learning_rate: float
    tokens: int
    seconds: float
    dev_exact: float = 0.0


@dataclass(frozen=True)
class Cut:
    """Where in an epoch the time was up: what is needed to go on there."""

    steps: int  # batches of the epoch that were learned from
    loss: float  # their losses, summed
    # The states of torch's generators, for the CPU and, where the model is on one, for the GPU.
    chance: tuple[Tensor, ...]


def write_rows(rows: Sequence[Row], path: Path) -> None:
    """Write training.csv."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(Row.__dataclass_fields__))
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)


def read_rows(found: object) -> list[Row]:
    """The rows of a stored state: a list of dictionaries, one an epoch, in order and made of numbers."""
    if not isinstance(found, list) or not found:
        raise ClauseError("its rows are {found}; expected one row per epoch", found=shown(found))
    return [_row(values, number) for number, values in enumerate(found, start=1)]


def _row(values: object, number: int) -> Row:
    names = {field.name: field.type for field in fields(Row)}
    if not isinstance(values, dict) or values.keys() != names.keys():
        raise ClauseError("row {n} is {found}; expected a row of training.csv", n=number, found=shown(values))
    for name, value in values.items():
        if not (_is_count(value) if names[name] is int else type(value) in (int, float)):
            raise ClauseError("row {n} has an invalid {name}: {found}", n=number, name=name, found=shown(value))
    row = Row(**values)
    # A loss may be NaN, where a training went wrong; time and place may not.
    if row.epoch != number or not 0 <= row.seconds < math.inf:
        raise ClauseError("row {n} has an invalid epoch or time (epoch {epoch})", n=number, epoch=shown(row.epoch))
    return row


def read_turn(found: object) -> Turn | None:
    """The turn of a stored state: a step with its time, or None."""
    if found is None:
        return None
    if isinstance(found, tuple) and len(found) == 2:
        step, seconds = found
        if _is_count(step) and isinstance(seconds, float) and 0 <= seconds < math.inf:
            return step, seconds
    raise ClauseError("the turning point of its learning rate is invalid: {found}", found=shown(found))


def read_cut(found: object) -> Cut | None:
    """The cut of a stored state: a place in an epoch, or None."""
    if found is None:
        return None
    if isinstance(found, list) and len(found) == 3 and isinstance(found[2], list):
        steps, loss, chance = found
        states = [s for s in chance if isinstance(s, Tensor) and s.dtype == torch.uint8]
        if _is_count(steps) and steps and isinstance(loss, float) and states and len(states) == len(chance):
            return Cut(steps, loss, tuple(states))
    raise ClauseError("its position in the last epoch is invalid: {found}", found=shown(found))


def _is_count(value: object) -> TypeGuard[int]:
    return type(value) is int and 0 <= value < 2**63  # True is none
