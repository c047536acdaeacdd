"""Model runner: one worker thread, bounded queue, fair by cost (`BusyError`), batching, and a result cache.

One thread runs the model. Runs that wait when it becomes free are decoded together, and between two rounds of decoding
it does what comes before the run it is at. Nobody is made to wait for company. The same request of several visitors is
run once.

The queue has short requests before long ones, and an equal share for each session. Each request gets a mark when it
arrives: the clock, or its session's last mark if that is later, plus its cost. The smallest mark is served next, and
the clock advances to it. So short requests go before long ones that arrived with them, and the marks of a session that
requests much run ahead of the others'. Marks do not change while the clock advances, so a long request that waits is
overtaken for a limited time only.

A cost is an estimate. The actual model time of each session is kept and decays: a session that recently used more
than a second goes after those that did not. So heavy requests delay another session's light one by at most the
current run. A request that has waited for `PATIENT_SECONDS` is ranked among all others again.

Source: Golestani, "A Self-Clocked Fair Queueing Scheme for Broadband Applications" (1994), section 3.
"""

from __future__ import annotations

import logging
import math
import sys
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass, field, replace
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from cachetools import LRUCache

from glassformer.server.parts import took
from glassformer.server.render_lock import RENDER_LOCK
from transformer.errors import SentenceError
from transformer.runs.query import MOST_TOGETHER, Beam, Query
from transformer.runs.trace import Trace

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
    # Makes the result, given what to call where shorter work may go first; None for a run of `query`.
    work: Callable[[Callable[[], None]], Any] | None = None
    checkpoint: Checkpoint | None = None
    query: Query | None = None
    future: Future[Any] = field(default_factory=Future)  # where the result will be
    mark: float = 0.0  # its place in the order of service
    came: float = field(default_factory=time.monotonic)  # when it was requested

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
    """Requests that wait; not thread-safe: to share it, use a lock."""

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


# ------------------------------------------------------------------------------------------------ the runner

MAX_WAITING = 256  # a class of 100 that translates at the same moment, twice over
AHEAD = 50  # times the cost has work that nobody waits for
MAX_PLACES = 8  # of one visitor; a page that is drawn asks for one thing at a time
MAX_SECONDS = 240.0  # 60 tokens of a model of half a billion numbers, with every map, on a busy machine
CACHE_BYTES = 512 * 2**20
"""Room for three runs of 512 pieces with 6+6 layers of 8 heads, 150 MB each; thousands of ordinary ones."""
MAP_BYTES = CACHE_BYTES // 3
"""Most memory for one run's maps: beyond it they are made again, a layer at a time, for whoever looks at one."""

_LOG = logging.getLogger("glassformer.runs")
_Result = TypeVar("_Result")


class BusyError(SentenceError, RuntimeError):
    """The model has too much to do; the message says what to do."""


class ModelRunner:
    """Gives traces and whatever else needs the model: from the cache, from work under way, or by new work.

    Of the requests in the queue, those under way included, one visitor may have `max_places`. `visitor` says who
    asks, in the thread that asks; None is nobody in particular.
    """

    def __init__(
        self,
        *,
        max_waiting: int = MAX_WAITING,
        max_places: int = MAX_PLACES,
        max_seconds: float = MAX_SECONDS,
        cache_bytes: int = CACHE_BYTES,
        visitor: Callable[[], Hashable] = lambda: None,
    ) -> None:
        self._visitor, self._max_seconds = visitor, max_seconds
        self._max_waiting, self._max_places = max_waiting, max_places
        # The matrices of one sentence are too small to share: a second thread costs more than it brings.
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="model", initializer=torch.set_num_threads, initargs=(1,))
        self._lock = threading.Lock()
        self._queue = FairQueue()
        self._under_way: dict[Hashable, Request] = {}
        # Each result with its memory, in bytes.
        self._cache: LRUCache[Hashable, tuple[Any, int]] = LRUCache(cache_bytes, getsizeof=itemgetter(1))
        self.n_runs, self._spent = 0, 0.0

    @property
    def is_busy(self) -> bool:
        """Whether somebody waits for the model."""
        return bool(self._under_way)

    @property
    def n_waiting(self) -> int:
        """How many requests are in the queue, those under way included."""
        return len(self._under_way)

    def trace(self, checkpoint: Checkpoint, query: Query, *, ahead: bool = False) -> Trace:
        """The trace of a query; `ahead` of need, it is made after the requests that somebody waits for.

        `QueryError`: the query does not fit the checkpoint. `BusyError`: the queue is full, or the answer is too late.
        """
        size = attrgetter("nbytes")
        cost = cost_of(query) * (AHEAD if ahead else 1)
        request = Request(query, self._visitor(), cost, size, checkpoint=checkpoint, query=query)
        trace: Trace = self._answer(request)
        # Checkpoints of the same content share results, whatever they are called.
        return trace if trace.checkpoint == checkpoint.name else replace(trace, checkpoint=checkpoint.name)

    def compute(self, key: Hashable, work: Callable[[], _Result], *, nbytes: Callable[[_Result], int]) -> _Result:
        """The result of any work with the model.

        The key says all that decides the result, the checkpoint's content hash included. `work` runs in the model's
        thread; its errors are raised here and not kept. `nbytes` is the memory of a result, about. Raises
        `BusyError`: the queue is full, or the answer took too long.
        """
        result: _Result = self._answer(Request(key, self._visitor(), OTHER_COST, nbytes, lambda _: work()))
        return result

    def part(self, work: Callable[[Callable[[], None]], _Result], *, visitor: Hashable, cost: float) -> _Result:
        """Do one part of work that is too long for one request; the caller then requests the next part.

        `work` gets a function that runs shorter requests that wait. Its result is not cached. `visitor` says whose
        work it is, for the order of service, and `cost` how long it takes, as `cost_of`. Raises `BusyError`: the
        queue is full.
        """
        request = Request(object(), visitor, cost, lambda _: sys.maxsize, work)  # too large to be kept
        with self._lock:
            future = self._admitted(request)
        result: _Result = future.result()
        return result

    def kept(self, key: Hashable) -> Any:
        """A result that is still in memory, by the key of `compute`; None if there is none, and nothing is begun."""
        with self._lock:
            found = self._cache.get(key)
        return None if found is None else found[0]

    def _answer(self, request: Request) -> Any:
        with self._lock:
            kept = self._cache.get(request.key)
            if kept is not None:
                return kept[0]
            future = self._admitted(request)
        try:
            with RENDER_LOCK.aside():
                return future.result(timeout=self._max_seconds)
        except FutureTimeoutError:
            raise BusyError(
                "The model did not answer within {seconds:g} seconds. Try again.", seconds=self._max_seconds
            ) from None

    def _admitted(self, request: Request) -> Future[Any]:
        """Where the result will be: that of the same request under way, or of this one, which waits from now on."""
        if request.key in self._under_way:
            self._queue.hurry(self._under_way[request.key], request)
            return self._under_way[request.key].future
        self._check_room(request.visitor)
        self._under_way[request.key] = request
        self._queue.put(request)
        self._pool.submit(self._turn)  # as many turns as requests: one that finds nothing left is over at once
        return request.future

    def _check_room(self, visitor: Hashable) -> None:
        own = sum(one.visitor == visitor for one in self._under_way.values()) if visitor is not None else 0
        if own >= self._max_places:
            raise BusyError(
                "You already have {n} request waiting for the model, the most allowed. Try again in a moment.",
                "You already have {n} requests waiting for the model, the most allowed. Try again in a moment.",
                own,
            )
        if len(self._under_way) >= self._max_waiting:
            raise BusyError(
                "{n} request is already waiting for the model, the most this server allows. Try again in a moment.",
                "{n} requests are already waiting for the model, the most this server allows. Try again in a moment.",
                len(self._under_way),
            )

    def _turn(self, aside: Request | None = None) -> None:
        """Do what is next, if it comes before the run that stands still meanwhile."""
        with self._lock:
            taken = self._queue.take() if aside is None else self._queue.take(before=self._queue.rank(aside))
        if not taken:
            return
        began, spent = time.monotonic(), self._spent
        try:
            results = self._results(taken, lambda: self._turn(taken[0]))
            for request, result in zip(taken, results, strict=True):
                self._settle(request, result)
        except BaseException as error:  # nobody waits for an answer that will not come
            for request in taken:
                if not request.future.done():
                    self._settle(request, error)
        finally:
            own = time.monotonic() - began - (self._spent - spent)  # without what was done within
            self._spent += own
            with self._lock:
                self._queue.done(taken, own)
            for request in taken:
                took("queue", began - request.came)
            if aside is None:  # else within another's turn, whose time it is
                took("model", time.monotonic() - began)

    def _results(self, taken: Sequence[Request], pause: Callable[[], None]) -> Iterator[Any]:
        first = taken[0]
        if first.work is not None:
            yield first.work(pause)
        elif first.checkpoint is not None:
            queries = [request.query for request in taken if request.query is not None]
            for trace in first.checkpoint.run_together(queries, most_map_bytes=MAP_BYTES, pause=pause):
                if not isinstance(trace, Exception):
                    self._log(trace)
                yield trace

    def _settle(self, request: Request, result: Any) -> None:
        """Keep a result and give it to all who wait for it; an error is given and not kept."""
        kept = None
        if not isinstance(result, BaseException):
            try:
                kept = result, request.nbytes(result) + 10_000  # the labels, about
            except Exception as error:
                result = error
        with self._lock:
            self._under_way.pop(request.key, None)
            if kept is not None and kept[1] <= self._cache.maxsize:
                self._cache[request.key] = kept
        if isinstance(result, BaseException):
            request.future.set_exception(result)
        else:
            request.future.set_result(result)

    def _log(self, trace: Trace) -> None:
        self.n_runs += 1
        _LOG.info("model run %d: %s, %d steps, %.3f s", self.n_runs, trace.checkpoint, trace.n_steps, trace.seconds)
