"""The numbers of a checkpoint's parameters, computed in the model's thread, once for all visitors.

Each is computed a tensor at a time, so that whoever steps through a sentence meanwhile waits for one tensor, and not
for all of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import numpy as np

from transformer.analysis import differences, neighbours, spectra
from transformer.analysis.differences import Difference, Paired
from transformer.analysis.parameters import Histogram, Parameter, Statistics, histogram, measured
from transformer.analysis.parameters import parameters as parameters_of
from transformer.analysis.spectra import Spectrum, work_of
from transformer.checkpoint.load import Checkpoint
from transformer.model.linear import widened
from ui.runs import loading
from ui.shared.door import st

PATIENCE_SECONDS: Final = 0.3  # before a bar is drawn
DRAW_AGAIN_SECONDS: Final = 0.2
SPEED: Final = 5e9  # multiplications a second, about
AT_ONCE: Final = 2e10
"""Work for singular values that nobody has to ask for, 4 s: that of all matrices of a small model."""
ONE_AT_ONCE: Final = 5e9
"""The same for the matrix that is looked at, 1 s."""
MOST: Final = 5e10
"""Work for one matrix, 10 s: everybody waits for the model meanwhile."""

ROWS_AT_ONCE: Final = 4096

_Result = TypeVar("_Result")


@dataclass(frozen=True, eq=False)
class Known:
    """What is known of a parameter."""

    parameter: Parameter  # the tensor
    numbers: Statistics  # what numbers it holds
    spectrum: Spectrum | None  # its singular values; None if it has none, or they have not been computed

    @property
    def work(self) -> int:
        """What its singular values would cost; 0 if it has none, or they are known."""
        there = self.numbers.is_finite and self.spectrum is None
        return work_of(self.numbers.shape) if there else 0

    @property
    def seconds(self) -> int:
        """About how long that takes, at least 1."""
        return max(1, round(self.work / SPEED))


def known(checkpoint: Checkpoint, said: str) -> list[Known]:
    """What is known of each parameter; the singular values of a small model are computed now.

    Args:
        checkpoint: Whose.
        said: What a bar says while it takes long.

    Raises:
        BusyError: The model has too much to do.
    """
    tensors = parameters_of(checkpoint.model)
    numbers = one_by_one([_work(_statistics, checkpoint, one) for one in tensors], said)
    found = [Known(one, of_it, _kept(checkpoint, one)) for one, of_it in zip(tensors, numbers, strict=True)]
    return with_spectra(checkpoint, found, said) if sum(one.work for one in found) <= AT_ONCE else found


def with_spectra(checkpoint: Checkpoint, found: Sequence[Known], said: str) -> list[Known]:
    """The same with the singular values of every matrix that is not too large for that.

    Raises:
        BusyError: The model has too much to do.
    """
    missing = sorted((one for one in found if 0 < one.work <= MOST), key=lambda one: one.work)
    costs = [float(one.work) for one in missing]
    patience = 0.0 if sum(costs) > AT_ONCE else PATIENCE_SECONDS
    work = [_work(_with_spectrum, checkpoint, one) for one in missing]
    made = one_by_one(work, said, costs=costs, patience=patience)
    new = {one.parameter.name: one for one in made}
    return [new.get(one.parameter.name, one) for one in found]


def with_spectrum(checkpoint: Checkpoint, one: Known) -> Known:
    """The same with its singular values, which it has.

    Raises:
        BusyError: The model has too much to do.
    """
    return _with_spectrum(checkpoint, one)


def spread(checkpoint: Checkpoint, parameter: Parameter) -> Histogram:
    """How the numbers of a parameter are spread.

    Raises:
        BusyError: The model has too much to do.
    """
    return _computed(("spread", checkpoint.content_hash, parameter.name), lambda: histogram(parameter.values))


def row_lengths(checkpoint: Checkpoint, parameter: Parameter) -> np.ndarray:
    """The length of each row of a table, float64 [row].

    Raises:
        BusyError: The model has too much to do.
    """

    def work() -> np.ndarray:
        some = parameter.values.split(ROWS_AT_ONCE)  # a table in 16 bits is not made 32 bits wide as a whole
        return np.concatenate([neighbours.row_norms(widened(rows).numpy()) for rows in some])

    found: np.ndarray = _computed(
        ("row_lengths", checkpoint.content_hash, parameter.name),
        work,
        nbytes=lambda lengths: lengths.nbytes,
    )
    return found


def pairs(checkpoint: Checkpoint, other: Checkpoint) -> Paired:
    """Which parameters of two checkpoints go together."""
    return differences.paired(parameters_of(checkpoint.model), parameters_of(other.model))


def all_differences(checkpoint: Checkpoint, other: Checkpoint, both: Paired, said: str) -> list[Difference]:
    """How far each parameter is from that of another checkpoint.

    Args:
        checkpoint, other: The two.
        both: What `pairs` returned.
        said: What a bar says while it takes long.

    Raises:
        BusyError: The model has too much to do.
    """

    def of_one(a: Parameter, b: Parameter) -> Difference:
        key = ("difference", checkpoint.content_hash, other.content_hash, a.name)
        found: Difference = _computed(key, lambda: differences.difference(a.name, a.values, b.values))
        return found

    return one_by_one([_work(of_one, a, b) for a, b in both.pairs], said)


def spread_of_difference(checkpoint: Checkpoint, other: Checkpoint, a: Parameter, b: Parameter) -> Histogram:
    """How the differences b - a are spread.

    Raises:
        BusyError: The model has too much to do.
    """
    key = ("spread_of_difference", checkpoint.content_hash, other.content_hash, a.name)
    return _computed(key, lambda: histogram(b.values, minus=a.values))


def one_by_one(
    work: Sequence[Callable[[], _Result]],
    said: str,
    *,
    costs: Sequence[float] = (),
    patience: float = PATIENCE_SECONDS,
) -> list[_Result]:
    """Do some work piece by piece, with a bar as soon as it takes long.

    Args:
        work: The pieces.
        said: What the bar says.
        costs: How long each takes, in any unit; alike if not given.
        patience: Seconds before the bar is drawn.
    """
    costs, done, results = costs or [1.0] * len(work), 0.0, []
    place, due = st.empty(), time.monotonic() + patience
    for one, cost in zip(work, costs, strict=True):
        if time.monotonic() >= due:
            due = time.monotonic() + DRAW_AGAIN_SECONDS
            place.progress(min(1.0, done / sum(costs)), said)
        results.append(one())
        done += cost
    place.empty()
    return results


def _work(function: Callable[..., _Result], *given: Any) -> Callable[[], _Result]:
    return lambda: function(*given)


def _statistics(checkpoint: Checkpoint, parameter: Parameter) -> Statistics:
    found: Statistics = _computed(
        ("statistics", checkpoint.content_hash, parameter.name), lambda: measured(parameter)
    )
    return found


def _with_spectrum(checkpoint: Checkpoint, one: Known) -> Known:
    found: Spectrum | None = _computed(
        _spectrum_key(checkpoint, one.parameter),
        lambda: spectra.spectrum(one.parameter.values),
        nbytes=lambda made: 0 if made is None else made.values.nbytes,
    )
    return Known(one.parameter, one.numbers, found)


def _kept(checkpoint: Checkpoint, parameter: Parameter) -> Spectrum | None:
    found: Spectrum | None = loading.runner().kept(_spectrum_key(checkpoint, parameter))
    return found


def _spectrum_key(checkpoint: Checkpoint, parameter: Parameter) -> Hashable:
    return "spectrum", checkpoint.content_hash, parameter.name


def _computed(key: Hashable, work: Callable[[], Any], *, nbytes: Callable[[Any], int] = lambda _: 1000) -> Any:
    return loading.runner().compute(key, work, nbytes=nbytes)
