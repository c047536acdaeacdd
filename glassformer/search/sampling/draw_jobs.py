"""Many draws of a sentence that are being made, or were: jobs in the background.

Knows nothing of Streamlit.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from glassformer.server.jobs import ROWS, Job, Jobs
from glassformer.server.queue import cost_of
from glassformer.server.work import BusyError, Runner
from transformer.analysis.draws import draws
from transformer.runs.query import Query

if TYPE_CHECKING:
    from transformer.checkpoint.load import Checkpoint

MOST_KEPT = 64  # of 200 draws each about 100 kB
AT_ONCE = 4


@dataclass(frozen=True)
class Wanted:
    """What is drawn; whoever wants the same gets the same."""

    visitor: Hashable  # who asks: whoever cancels, cancels for nobody else
    query: Query  # A query that samples, with seed 0
    n: int  # how many draws
    first_seed: int  # of the first draw; the others count up from it


class Draws(Jobs[Wanted]):
    """The draws of a server; each job tells those that are there, a tuple of `Draw`."""

    def __init__(self, runner: Callable[[], Runner], *, most: int = MOST_KEPT, at_once: int = AT_ONCE) -> None:
        super().__init__(_too_many, most=most, at_once=at_once, keeps_stopped=True)
        self._runner = runner

    def start(self, wanted: Wanted, checkpoint: Checkpoint) -> Job:
        """Begin, unless the same is under way or done; raises `BusyError` where too many are under way."""
        return self.ask(wanted, partial(self._drawn, wanted, checkpoint))

    def _drawn(self, wanted: Wanted, checkpoint: Checkpoint, job: Job) -> None:
        seeds = range(wanted.first_seed, wanted.first_seed + wanted.n)
        for start in range(0, wanted.n, ROWS):
            some, runner = seeds[start : start + ROWS], self._runner()
            cost = cost_of(wanted.query) * len(some)
            job.gather(runner, partial(draws, checkpoint, wanted.query, some), cost=cost)


def _too_many(n: int) -> BusyError:
    return BusyError(
        "{n} sets of draws are already waiting or running on this server, which is the limit. Try again in a moment.",
        n=n,
    )
