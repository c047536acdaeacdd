"""What a training remembers: a row for each epoch, where its rate turned, and the place at which it stands.

Each is read back from a stored state with suspicion: whatever it holds is one of these records or a `ClauseError`.
"""

import csv
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TypeGuard

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
class Place:
    """Where a training stands, after a step."""

    epoch: int = 0  # epochs that were learned from as a whole
    steps: int = 0  # of the epoch after those
    loss: float = 0.0  # their losses, summed
    step: int = 0  # steps since the training began
    tokens: int = 0  # target tokens since then
    seconds: float = 0.0  # since then, those between one run and the next not counted
    rate: float = 0.0  # the learning rate of the last step
    recent: tuple[float, ...] = ()  # the losses of the last few steps


def better(rows: Sequence[Row], *, leak: bool) -> Row:
    """The best of some epochs: by BLEU, and where that is equal (one-word targets have none), by chrF, then by loss.

    What a leak writes is noise, and its loss is what whoever makes the mistake looks at.
    """
    if leak:
        return min(rows, key=lambda row: row.dev_loss)
    return max(rows, key=lambda row: (row.dev_bleu, row.dev_chrf, -row.dev_loss))


def since_best(rows: Sequence[Row], *, leak: bool) -> int:
    """How many epochs ago the best one was."""
    return len(rows) - 1 - rows.index(better(rows, leak=leak)) if rows else 0


def write_rows(rows: Sequence[Row], path: Path) -> None:
    """Write training.csv."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(Row.__dataclass_fields__))
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)


def read_rows(found: object) -> list[Row]:
    """The rows of a stored state: a list of dictionaries, one an epoch, in order and made of numbers."""
    if not isinstance(found, list):
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


def read_place(found: object) -> Place:
    """The place of a stored state."""
    if isinstance(found, dict) and found.keys() == {field.name for field in fields(Place)}:
        counts = [found[name] for name in ("epoch", "steps", "step", "tokens")]
        recent = found["recent"] if isinstance(found["recent"], tuple) else (None,)
        numbers = (found["loss"], found["seconds"], found["rate"], *recent)
        if all(map(_is_count, counts)) and all(type(number) is float for number in numbers):
            place = Place(**found)
            if 0 <= place.seconds < math.inf and place.steps <= place.step:
                return place
    raise ClauseError("its place in the training is invalid: {found}", found=shown(found))


def _is_count(value: object) -> TypeGuard[int]:
    return type(value) is int and 0 <= value < 2**63  # True is none
