"""Running the model for many visitors: one bounded queue in front of it, and a cache of what it gave.

One thread runs the model. A visitor's session waits for its answer, so a visitor holds at most one place in the
queue however fast they click, and requests are served in the order they came. The same request of several visitors
is run once.

Knows nothing of Streamlit.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError

import torch
from cachetools import LRUCache

from transformer.checkpoint import Checkpoint
from transformer.query import Query
from transformer.running import run
from transformer.trace import Trace

MAX_WAITING = 64
MAX_SECONDS = 60.0
CACHE_BYTES = 256 * 2**20

log = logging.getLogger("glassformer.runs")


class BusyError(RuntimeError):
    """The model has too much to do; the message says what to do."""


class Runner:
    """Gives traces: from the cache, from a run that is under way, or by a new run.

    Args:
        max_waiting: Most requests in the queue, the running one included.
        max_seconds: Longest time to wait for an answer.
        cache_bytes: Most memory for finished traces.
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
        self._under_way: dict[Query, Future[Trace]] = {}
        self._cache: LRUCache[Query, Trace] = LRUCache(cache_bytes, getsizeof=_size)
        self.n_runs = 0

    def trace(self, checkpoint: Checkpoint, query: Query) -> Trace:
        """The trace of a query.

        Raises:
            QueryError: The query does not fit the checkpoint.
            BusyError: The queue is full, or the answer took too long.
        """
        with self._lock:
            cached = self._cache.get(query)
            if cached is not None:
                return cached
            future = self._under_way.get(query) or self._submit(checkpoint, query)
        try:
            return future.result(timeout=self._max_seconds)
        except FutureTimeoutError:
            raise BusyError(f"The model did not answer within {self._max_seconds:g} seconds. Try again.") from None

    def _submit(self, checkpoint: Checkpoint, query: Query) -> Future[Trace]:
        if len(self._under_way) >= self._max_waiting:
            raise BusyError(f"{len(self._under_way)} requests are waiting for the model. Try again in a moment.")
        future = self._pool.submit(self._run, checkpoint, query)
        self._under_way[query] = future
        return future

    def _run(self, checkpoint: Checkpoint, query: Query) -> Trace:
        try:
            trace = self._compute(checkpoint, query)
        except BaseException:
            with self._lock:
                self._under_way.pop(query, None)
            raise
        with self._lock:
            self.n_runs += 1
            self._under_way.pop(query, None)
            if _size(trace) <= self._cache.maxsize:
                self._cache[query] = trace
        log.info("model run %d: %s, %d steps, %.3f s", self.n_runs, checkpoint.name, trace.n_steps, trace.seconds)
        return trace


def _size(trace: Trace) -> int:
    """About how much memory a trace takes, in bytes."""
    return trace.nbytes + 10_000


def _one_thread() -> None:
    """The matrices of one sentence are too small to share: a second thread costs more than it brings."""
    torch.set_num_threads(1)
