"""The numbers of a checkpoint's parameters, computed in the model's thread, once for all visitors.

Each is computed a tensor at a time, so that whoever steps through a sentence meanwhile waits for one tensor, and not
for all of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, TypeVar

from transformer.analysis import differences
from transformer.analysis.differences import Difference, Paired
from transformer.analysis.parameters import Parameter
from transformer.analysis.parameters import parameters as parameters_of
from transformer.analysis.spectra import Spectrum
from transformer.checkpoint.load import Checkpoint
from ui.doctor.pictures import Known, spectrum_key, statistics, with_spectrum
from ui.runs import loading
from ui.shared.door import st

PATIENCE_SECONDS: Final = 0.3  # before a bar is drawn
DRAW_AGAIN_SECONDS: Final = 0.2
AT_ONCE: Final = 2e10
"""Work for singular values that nobody has to ask for, 4 s: that of all matrices of a small model."""
MOST: Final = 5e10
"""Work for one matrix, 10 s: everybody waits for the model meanwhile."""

_Result = TypeVar("_Result")


def known(checkpoint: Checkpoint, said: str) -> list[Known]:
    """What is known of each parameter; the singular values of a small model are computed now.

    Args:
        checkpoint: Whose.
        said: What a bar says while it takes long.

    Raises:
        BusyError: The model has too much to do.
    """
    tensors = parameters_of(checkpoint.model)
    numbers = one_by_one([partial(statistics, loading, checkpoint, one) for one in tensors], said)
    kept: list[Spectrum | None] = [loading.runner().kept(spectrum_key(checkpoint, one)) for one in tensors]
    found = [Known(one, of_it, spectrum) for one, of_it, spectrum in zip(tensors, numbers, kept, strict=True)]
    return with_spectra(checkpoint, found, said) if sum(one.work for one in found) <= AT_ONCE else found


def with_spectra(checkpoint: Checkpoint, found: Sequence[Known], said: str) -> list[Known]:
    """The same with the singular values of every matrix that is not too large for that.

    Raises:
        BusyError: The model has too much to do.
    """
    missing = sorted((one for one in found if 0 < one.work <= MOST), key=lambda one: one.work)
    costs = [float(one.work) for one in missing]
    patience = 0.0 if sum(costs) > AT_ONCE else PATIENCE_SECONDS
    work = [partial(with_spectrum, loading, checkpoint, one) for one in missing]
    made = one_by_one(work, said, costs=costs, patience=patience)
    new = {one.parameter.name: one for one in made}
    return [new.get(one.parameter.name, one) for one in found]


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
        return loading.compute(key, lambda: differences.difference(a.name, a.values, b.values), nbytes=lambda _: 1000)

    return one_by_one([partial(of_one, a, b) for a, b in both.pairs], said)


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
