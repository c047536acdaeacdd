"""Model runner: one worker thread, a bounded queue, batching, and a result cache.

One thread runs the model; in which order, `glassformer.server.fair_queue` says. Runs that wait when it becomes free are
decoded together, and between two rounds of decoding it does what comes before the run it is at. Nobody is made to
wait for company. The same request of several visitors is run once.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import torch
from cachetools import LRUCache

from glassformer.server import measures
from glassformer.server.fair_queue import OTHER_COST, FairQueue, Request, cost_of
from glassformer.server.render_lock import RENDER_LOCK
from transformer.errors import SentenceError
from transformer.i18n import say_n
from transformer.runs.query import Query
from transformer.runs.trace import Trace

if TYPE_CHECKING:
    from transformer.checkpoint.load import Checkpoint

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


@dataclass(frozen=True)
class _Kept:
    """A finished result and how much memory it takes, in bytes."""

    result: Any
    nbytes: int


class Runs(Protocol):
    """What makes traces."""

    def __call__(
        self, checkpoint: Checkpoint, queries: Sequence[Query], *, pause: Callable[[], None]
    ) -> Iterator[Trace | Exception]:
        """The trace or the error of each query, in order."""


def _together(
    checkpoint: Checkpoint, queries: Sequence[Query], *, pause: Callable[[], None]
) -> Iterator[Trace | Exception]:
    """The checkpoint's own way."""
    return checkpoint.run_together(queries, most_map_bytes=MAP_BYTES, pause=pause)


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
        runs: Runs | None = None,
        visitor: Callable[[], Hashable] = lambda: None,
    ) -> None:
        self._runs, self._visitor = runs or _together, visitor
        self._max_waiting, self._max_places, self._max_seconds = max_waiting, max_places, max_seconds
        # The matrices of one sentence are too small to share: a second thread costs more than it brings.
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="model", initializer=torch.set_num_threads, initargs=(1,))
        self._lock = threading.Lock()
        self._queue = FairQueue()
        self._under_way: dict[Hashable, Request] = {}
        self._cache: LRUCache[Hashable, _Kept] = LRUCache(cache_bytes, getsizeof=lambda kept: kept.nbytes)
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
        result: _Result = self._answer(Request(key, self._visitor(), OTHER_COST, nbytes, work=work))
        return result

    def part(self, work: Callable[[Callable[[], None]], _Result], *, visitor: Hashable, cost: float) -> _Result:
        """Do one part of work that is too long for one request; the caller then requests the next part.

        `work` gets a function that runs shorter requests that wait. Its result is not cached. `visitor` says whose
        work it is, for the order of service, and `cost` how long it takes, as `cost_of`. Raises `BusyError`: the
        queue is full.
        """
        request = Request(object(), visitor, cost, lambda _: sys.maxsize, pausing=work)  # too large to be kept
        with self._lock:
            future = self._admitted(request)
        result: _Result = future.result()
        return result

    def kept(self, key: Hashable) -> Any:
        """A result that is still in memory, by the key of `compute`; None if there is none, and nothing is begun."""
        with self._lock:
            found = self._cache.get(key)
        return None if found is None else found.result

    def _answer(self, request: Request) -> Any:
        with self._lock:
            kept = self._cache.get(request.key)
            if kept is not None:
                return kept.result
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
                say_n(
                    "You already have {n} request waiting for the model, the most allowed. Try again in a moment.",
                    "You already have {n} requests waiting for the model, the most allowed. Try again in a moment.",
                    own,
                )
            )
        if len(self._under_way) >= self._max_waiting:
            raise BusyError(
                say_n(
                    "{n} request is already waiting for the model, the most this server allows. Try again in a moment.",
                    "{n} requests are already waiting for the model, the most this server allows. Try again in a "
                    "moment.",
                    len(self._under_way),
                )
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
                measures.took("queue", began - request.came)
            if aside is None:  # else within another's turn, whose time it is
                measures.took("model", time.monotonic() - began)

    def _results(self, taken: Sequence[Request], pause: Callable[[], None]) -> Iterator[Any]:
        first = taken[0]
        if first.pausing is not None:
            yield first.pausing(pause)
        elif first.work is not None:
            yield first.work()
        elif first.checkpoint is not None:
            queries = [request.query for request in taken if request.query is not None]
            for trace in self._runs(first.checkpoint, queries, pause=pause):
                if not isinstance(trace, Exception):
                    self._log(trace)
                yield trace

    def _settle(self, request: Request, result: Any) -> None:
        """Keep a result and give it to all who wait for it; an error is given and not kept."""
        kept = None
        if not isinstance(result, BaseException):
            try:
                kept = _Kept(result, request.nbytes(result) + 10_000)  # the labels, about
            except Exception as error:
                result = error
        with self._lock:
            self._under_way.pop(request.key, None)
            if kept is not None and kept.nbytes <= self._cache.maxsize:
                self._cache[request.key] = kept
        if isinstance(result, BaseException):
            request.future.set_exception(result)
        else:
            request.future.set_result(result)

    def _log(self, trace: Trace) -> None:
        self.n_runs += 1
        _LOG.info("model run %d: %s, %d steps, %.3f s", self.n_runs, trace.checkpoint, trace.n_steps, trace.seconds)
