"""Who is served next: short work before long, every visitor alike, and nobody waits for ever.

Each request gets a mark when it comes: the clock, or its visitor's last mark if that is later, plus its cost. The
smallest mark is served next, and the clock moves on to it. So short work goes before long that came with it; whoever
asks for much, or again and again, has marks that run ahead of the others'; and as marks do not change while the clock
goes on, later requests soon have larger ones than a long run that waits.

Source: Golestani, "A Self-Clocked Fair Queueing Scheme for Broadband Applications" (1994), section 3.

Knows nothing of Streamlit.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from transformer.checkpoint.load import Checkpoint
from transformer.runs.query import Beam, Query
from transformer.runs.together import MOST_ROWS, may_join

OTHER_COST = 20.0
"""Of work that is no run, in the unit of `cost_of`: about that of a sentence."""

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
        return may_join(self.query) and may_join(other.query) and len(self.query.source) <= _longest(other.query)


def cost_of(query: Query) -> float:
    """How long a run takes, about, in steps of one row; a step of 16 rows takes as long as four of one."""
    n_rows = query.decoding.size if isinstance(query.decoding, Beam) else 1
    return min(query.max_new, len(query.source) + 5) * (4 + n_rows) / 5


class FairQueue:
    """Requests that wait, in no thread's hands: whoever shares one brings a lock."""

    def __init__(self) -> None:
        self._waiting: list[Request] = []
        self._clock = 0.0
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

    def take(self, *, before: float = math.inf) -> list[Request]:
        """The next request, if its mark is smaller than `before`, and those that are decoded together with it."""
        first = min(self._waiting, key=lambda request: request.mark, default=None)  # of equal ones, who came first
        if first is None or first.mark >= before:
            return []
        taken = [first, *self._company(first)]
        self._waiting = [request for request in self._waiting if request not in taken]
        return taken

    def done(self, taken: Sequence[Request]) -> None:
        """Say that what was taken together is done."""
        self._clock = max(self._clock, taken[0].mark)
        self._last = {visitor: mark for visitor, mark in self._last.items() if mark > self._clock}

    def _company(self, first: Request) -> list[Request]:
        others = [request for request in self._waiting if request is not first and request.joins(first)]
        if first.query is None or not others:
            return []
        length = len(first.query.source)
        others.sort(key=lambda request: abs(len(request.query.source) - length) if request.query else 0)
        most = min(MOST_ROWS, _ROOM // _longest(first.query) ** 2) - 1
        return sorted(others[: max(most, 0)], key=lambda request: request.mark)


def _longest(query: Query) -> int:
    """The most characters of a source that is still of like length."""
    return 2 * len(query.source) + 20
