"""Who is served next: short work before long, every visitor alike, and nobody waits for ever.

Each request gets a mark when it comes: the clock, or its visitor's last mark if that is later, plus its cost. The
smallest mark is served next, and the clock moves on to it. So short work goes before long that came with it; whoever
asks for much, or again and again, has marks that run ahead of the others'; and as marks do not change while the clock
goes on, later requests soon have larger ones than a long run that waits.

A cost is a guess. What a visitor's requests really took is kept, and fades: who had the model for more than a second
of late comes behind who had not. So heavy requests of some, whatever makes them heavy, hold up a light one of another
for no longer than the run that goes on. Whoever has waited for `PATIENT_SECONDS` stands among all others again.

Source: Golestani, "A Self-Clocked Fair Queueing Scheme for Broadband Applications" (1994), section 3.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from transformer.runs.query import MOST_TOGETHER, Beam, Query

if TYPE_CHECKING:
    from transformer.checkpoint.load import Checkpoint

OTHER_COST = 20.0
"""Of work that is no run, in the unit of `cost_of`: about that of a sentence."""

MUCH_SECONDS = 1.0  # of the model's time, of late
LATE_SECONDS = 20.0  # after which a third of what was used still counts
PATIENT_SECONDS = 10.0

_ROOM = 1_000_000  # rows times characters squared: the maps of rows that are recorded one by one wait for each other


@dataclass(eq=False)
class Request:
    """Something that a visitor waits for."""

    key: Hashable  # says all that decides the result
    visitor: Hashable  # who asks; None for nobody in particular
    cost: float  # how long it takes, about; see `cost_of`
    nbytes: Callable[[Any], int]  # memory of a result, in bytes, about
    work: Callable[[], Any] | None = None  # makes the result; None for a run, which `checkpoint` and `query` describe
    # It makes the result instead, given what to call where shorter work may go first.
    pausing: Callable[[Callable[[], None]], Any] | None = None
    checkpoint: Checkpoint | None = None
    query: Query | None = None
    future: Future[Any] = field(default_factory=Future)  # where the result will be
    mark: float = 0.0  # its place in the order of service
    came: float = field(default_factory=time.monotonic)  # when it was asked for

    def joins(self, other: Request) -> bool:
        """Whether it can be decoded together with another: a run of like length on the same checkpoint."""
        if self.query is None or other.query is None or self.checkpoint is not other.checkpoint:
            return False
        return self.query.may_join and other.query.may_join and len(self.query.source) <= _longest(other.query)


def cost_of(query: Query) -> float:
    """How long a run takes, about, in steps of one row; a step of 16 rows takes as long as four of one."""
    n_rows = query.decoding.size if isinstance(query.decoding, Beam) else 1
    return min(query.max_new, len(query.source) + 5) * (4 + n_rows) / 5


class FairQueue:
    """Requests that wait, in no thread's hands: whoever shares one brings a lock."""

    def __init__(self, time_of: Callable[[], float] = time.monotonic) -> None:
        self._waiting: list[Request] = []
        self._clock, self._time_of = 0.0, time_of
        self._used: dict[Hashable, tuple[float, float]] = {}  # seconds of each visitor, and when they were counted
        self._last: dict[Hashable, float] = {}  # each visitor's last mark, while it is ahead of the clock

    def put(self, request: Request) -> None:
        """Let a request wait."""
        request.mark = self._mark(request)
        if request.visitor is not None:
            self._last[request.visitor] = request.mark
        self._waiting.append(request)

    def hurry(self, waiting: Request, asked: Request) -> None:
        """Let what waits come no later than the same would that is asked for now."""
        waiting.mark = min(waiting.mark, self._mark(asked))

    def _mark(self, request: Request) -> float:
        return max(self._clock, self._last.get(request.visitor, 0.0)) + request.cost

    def rank(self, request: Request, *, waited: float = 0.0) -> tuple[bool, float]:
        """Its place among others: whether its visitor had much of late and has not waited long, and its mark."""
        return waited < PATIENT_SECONDS and self._recently(request.visitor) > MUCH_SECONDS, request.mark

    def _recently(self, visitor: Hashable) -> float:
        seconds, when = self._used.get(visitor, (0.0, 0.0))
        return seconds * math.exp((when - self._time_of()) / LATE_SECONDS)

    def take(self, *, before: tuple[bool, float] = (True, math.inf)) -> list[Request]:
        """The next request, if it comes before a rank, and those that are decoded together with it."""
        now = self._time_of()
        ranks = {one: self.rank(one, waited=now - one.came) for one in self._waiting}
        first = min(ranks, key=lambda one: ranks[one], default=None)  # of equal ones, who came first
        if first is None or ranks[first] >= before:
            return []
        taken = [first, *self._company(first)]
        self._waiting = [request for request in self._waiting if request not in taken]
        return taken

    def done(self, taken: Sequence[Request], seconds: float = 0.0) -> None:
        """Say that what was taken together is done, and how long it took."""
        self._clock, now = max(self._clock, taken[0].mark), self._time_of()
        for one in taken if seconds else ():
            self._used[one.visitor] = self._recently(one.visitor) + seconds / len(taken), now
        self._used = {
            who: used for who, used in self._used.items() if who is not None and now - used[1] < 10 * LATE_SECONDS
        }
        self._last = {visitor: mark for visitor, mark in self._last.items() if mark > self._clock}

    def _company(self, first: Request) -> list[Request]:
        others = [request for request in self._waiting if request is not first and request.joins(first)]
        if first.query is None or not others:
            return []
        length = len(first.query.source)
        others.sort(key=lambda request: abs(len(request.query.source) - length) if request.query else 0)
        most = min(MOST_TOGETHER, _ROOM // _longest(first.query) ** 2) - 1
        return sorted(others[: max(most, 0)], key=lambda request: request.mark)


def _longest(query: Query) -> int:
    """The most characters of a source that is still of like length."""
    return 2 * len(query.source) + 20
