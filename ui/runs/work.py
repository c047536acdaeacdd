"""Running the model for many visitors: one bounded queue in front of it, and a cache of what it gave.

One thread runs the model. A visitor's session waits for its answer, so a visitor holds at most one place in the
queue however fast they click, and requests are served in the order they came. The same request of several visitors
is run once.

Knows nothing of Streamlit.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from cachetools import LRUCache

from transformer.checkpoint.load import Checkpoint
from transformer.errors import SaidError
from transformer.runs.query import Query
from transformer.runs.running import run
from transformer.runs.trace import Trace
from words import say_n

MAX_WAITING = 256  # a class of 100 that translates at the same moment, twice over; a sentence takes about 30 ms
MAX_SECONDS = 60.0
CACHE_BYTES = 512 * 2**20
"""Room for three runs of 512 pieces with 6+6 layers of 8 heads, 150 MB each; thousands of ordinary ones."""

_LOG = logging.getLogger("glassformer.runs")
_Result = TypeVar("_Result")


class BusyError(SaidError, RuntimeError):
    """The model has too much to do; the message says what to do."""


@dataclass(frozen=True)
class _Kept:
    """A finished result and how much memory it takes, in bytes."""

    result: Any
    nbytes: int


class Runner:
    """Gives traces and whatever else needs the model: from the cache, from work under way, or by new work.

    Args:
        max_waiting: Most requests in the queue, the running one included.
        max_seconds: Longest time to wait for an answer.
        cache_bytes: Most memory for finished results.
        compute: What makes a trace; `transformer.run` unless a test says otherwise.
    """

    def __init__(
        self,
        *,
        max_waiting: int = MAX_WAITING,
        max_seconds: float = MAX_SECONDS,
        cache_bytes: int = CACHE_BYTES,
        compute: Callable[[Checkpoint, Query], Trace] = run,
    ) -> None:
        self._compute = compute
        self._max_waiting, self._max_seconds = max_waiting, max_seconds
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="model", initializer=_one_thread)
        self._lock = threading.Lock()
        self._under_way: dict[Hashable, Future[Any]] = {}
        self._cache: LRUCache[Hashable, _Kept] = LRUCache(cache_bytes, getsizeof=lambda kept: kept.nbytes)
        self.n_runs = 0

    def trace(self, checkpoint: Checkpoint, query: Query) -> Trace:
        """The trace of a query.

        Raises:
            QueryError: The query does not fit the checkpoint.
            BusyError: The queue is full, or the answer took too long.
        """
        return self.compute(query, lambda: self._run(checkpoint, query), nbytes=lambda trace: trace.nbytes)

    def compute(self, key: Hashable, work: Callable[[], _Result], *, nbytes: Callable[[_Result], int]) -> _Result:
        """The result of any work with the model.

        Args:
            key: Says all that decides the result, the checkpoint's content hash included.
            work: Makes the result; runs in the model's thread. Its errors are raised here and not kept.
            nbytes: Memory of a result, in bytes, about.

        Raises:
            BusyError: The queue is full, or the answer took too long.
        """
        with self._lock:
            kept = self._cache.get(key)
            if kept is not None:
                return kept.result
            future: Future[_Result] = self._under_way.get(key) or self._submit(key, work, nbytes)
        try:
            return future.result(timeout=self._max_seconds)
        except FutureTimeoutError:
            raise BusyError(
                "The model did not answer within {seconds:g} seconds. Try again.", seconds=self._max_seconds
            ) from None

    def _submit(
        self, key: Hashable, work: Callable[[], _Result], nbytes: Callable[[_Result], int]
    ) -> Future[_Result]:
        if len(self._under_way) >= self._max_waiting:
            raise BusyError(
                say_n(
                    "{n} request is waiting for the model. Try again in a moment.",
                    "{n} requests are waiting for the model. Try again in a moment.",
                    len(self._under_way),
                )
            )
        future = self._pool.submit(self._work, key, work, nbytes)
        self._under_way[key] = future
        return future

    def _work(self, key: Hashable, work: Callable[[], _Result], nbytes: Callable[[_Result], int]) -> _Result:
        try:
            result = work()
            kept = _Kept(result, nbytes(result) + 10_000)  # the labels, about
        except BaseException:
            with self._lock:
                self._under_way.pop(key, None)
            raise
        with self._lock:
            self._under_way.pop(key, None)
            if kept.nbytes <= self._cache.maxsize:
                self._cache[key] = kept
        return result

    def _run(self, checkpoint: Checkpoint, query: Query) -> Trace:
        trace = self._compute(checkpoint, query)
        self.n_runs += 1
        _LOG.info("model run %d: %s, %d steps, %.3f s", self.n_runs, checkpoint.name, trace.n_steps, trace.seconds)
        return trace


def _one_thread() -> None:
    """The matrices of one sentence are too small to share: a second thread costs more than it brings."""
    torch.set_num_threads(1)
