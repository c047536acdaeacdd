"""Many draws of a sentence that are being made, or were: in the background, some at a time (`background_jobs`).

Knows nothing of Streamlit.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from functools import partial

from transformer.analysis.draws import Draw, draws
from transformer.checkpoint.load import Checkpoint
from transformer.runs.query import Query
from ui.runs.background_jobs import AT_ONCE, ROWS, Kept, Part, Standing
from ui.runs.background_jobs import Job as AnyJob
from ui.server.queue import cost_of
from ui.server.work import BusyError, Runner

MOST_KEPT = 64  # of 200 draws each about 100 kB


@dataclass(frozen=True)
class Wanted:
    """What is drawn; whoever wants the same gets the same."""

    visitor: Hashable  # who asks: whoever cancels, cancels for nobody else
    query: Query  # A query that samples, with seed 0
    n: int  # how many draws
    first_seed: int  # of the first draw; the others count up from it


@dataclass(frozen=True)
class Progress(Standing):
    """How far a job is, and the draws that are there."""

    found: tuple[Draw, ...]


class Job(AnyJob[Draw]):
    """Many draws of one sentence."""

    def __init__(self, wanted: Wanted, checkpoint: Checkpoint) -> None:
        super().__init__(wanted, checkpoint)
        self.wanted = wanted

    def progress(self) -> Progress:
        """How far it is."""
        standing, found = self.stands()
        return Progress(standing.state, standing.problem, found)

    def parts(self, checkpoint: Checkpoint) -> Iterator[Part[Draw]]:
        """The seeds, some together."""
        query, first, n = self.wanted.query, self.wanted.first_seed, self.wanted.n
        for start in range(first, first + n, ROWS):
            seeds = range(start, min(start + ROWS, first + n))
            yield Part(cost_of(query) * len(seeds), partial(_drawn, checkpoint, query, seeds))


def _drawn(checkpoint: Checkpoint, query: Query, seeds: range, pause: Callable[[], None]) -> Iterator[Draw]:
    return iter(draws(checkpoint, query, seeds, pause=pause))


class Jobs(Kept[Wanted, Job]):
    """The jobs of a server: of `most` that are kept the one looked at longest ago goes first."""

    def __init__(self, runner: Callable[[], Runner], *, most: int = MOST_KEPT, at_once: int = AT_ONCE) -> None:
        super().__init__(
            runner,
            lambda n: BusyError("{n} visitors are drawing many times. Try again in a moment.", n=n),
            most=most,
            at_once=at_once,
        )

    def start(self, wanted: Wanted, checkpoint: Checkpoint) -> Job:
        """Begin a job, unless the same is under way or done; a `BusyError`, if as many as are kept have not ended."""
        return self.begin(wanted, lambda: Job(wanted, checkpoint))
