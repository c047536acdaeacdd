"""Render lock: a fair (FIFO) semaphore with a lease, and garbage collection while no page is rendered.

Rendering a page is pure Python, and the GIL lets one thread run at a time. A hundred concurrent page runs all end when
the last one does; run one after the other they end no later, but half of the class has its page in half the time, and
the sending threads have less competition.

A long turn blocks nobody: after `lease` seconds the next one begins in parallel. A thread that waits for the model
gives its turn up meanwhile.

Most objects of a page run are freed by reference counting; only reference cycles need the collector. Python would run
it in the middle of a page. Here it runs while nothing is drawn, and freezes (`gc.freeze`) what is alive, so Python's
own collections stay short.
"""

import gc
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final


class FairSemaphore:
    """Turns of threads, first come, first served."""

    def __init__(self, *, lease: float = 0.1) -> None:
        """Begin with nobody: one at a time has a turn, which keeps others out for `lease` seconds."""
        self._lease = lease
        self._lock, self._own = threading.Lock(), threading.local()
        self._since: dict[int, float] = {}  # of each thread that has a turn
        self._waiting: deque[tuple[int, threading.Event]] = deque()
        self._n_inside, self._ended = 0, time.monotonic()

    @contextmanager
    def one(self) -> Iterator[None]:
        """Wait for a turn and have it; within a turn of the same thread, go on with that."""
        if self._is_inside():
            yield
            return
        self._counts(1)
        self._take()
        self._own.inside = True
        try:
            yield
        finally:
            self._own.inside = False
            self._give()
            self._counts(-1)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Let others have the turn, if this thread has one, and wait for another at the end."""
        if not self._is_inside():
            yield
            return
        self._give()
        try:
            yield
        finally:
            self._take()

    def rest_seconds(self) -> float:
        """For how long nobody has wanted a turn; 0 while somebody has one, waits for one or is aside."""
        with self._lock:
            return 0.0 if self._n_inside else time.monotonic() - self._ended

    def _counts(self, more: int) -> None:
        with self._lock:
            self._n_inside, self._ended = self._n_inside + more, time.monotonic()

    def _is_inside(self) -> bool:
        return getattr(self._own, "inside", False)

    def _take(self) -> None:
        mine = threading.Event()
        with self._lock:
            ahead = len(self._waiting)
            self._waiting.append((threading.get_ident(), mine))
            self._grant()
        # Only the next thread in line checks for expired leases: a hundred that all poll would be slow.
        while not mine.wait(self._lease * (ahead + 1)):
            with self._lock:
                self._grant()
                ahead = max(0, ahead - 1)

    def _give(self) -> None:
        with self._lock:
            self._since.pop(threading.get_ident(), None)
            self._grant()

    def _grant(self) -> None:
        """Give a free turn to the thread that has waited longest."""
        now = time.monotonic()
        self._since = {thread: since for thread, since in self._since.items() if now - since < self._lease}
        if self._waiting and not self._since:
            thread, event = self._waiting.popleft()
            self._since[thread] = now
            event.set()


RENDER_LOCK: Final = FairSemaphore()  # of this process


# New objects minus freed ones, then younger collections. A page run creates many objects with few reference cycles:
# Python's own thresholds spend a tenth of a class's time on collections.
THRESHOLDS: Final = (1_000, 20, 20)
SHARE: Final = 0.05  # of the time that may go into looking
REST_SECONDS: Final = 0.25  # for which nothing was drawn
LOOK_SECONDS: Final = 0.1
LONGEST_SECONDS: Final = 120.0  # between two looks where something is always drawn
FIRST_COST: Final = 0.2  # seconds that a look is taken to need before there was one

_ONCE = threading.Lock()


def collect() -> float:
    """Collect all garbage, also in what `begin` has frozen; return the seconds it took."""
    began, is_left_out = time.monotonic(), gc.get_freeze_count() > 0
    gc.unfreeze()
    gc.collect()
    if is_left_out:
        gc.freeze()
    return time.monotonic() - began


def begin() -> None:
    """From now on collect while no page is drawn, and freeze what is then alive."""
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
    gc.enable()
    if _ONCE.acquire(blocking=False):
        threading.Thread(target=_keep_looking, daemon=True).start()


def is_time(*, since: float, rested: float, cost: float) -> bool:
    """Whether to collect now: there may be garbage, and no page is being drawn, or one always is.

    In seconds: `since` the last collection, `rested` without drawing, `cost` of the last collection.
    """
    if rested >= since or since * SHARE < cost:  # nothing was drawn since, or it is too soon
        return False
    return rested >= REST_SECONDS or since >= LONGEST_SECONDS


def _keep_looking() -> None:
    last, cost = time.monotonic(), FIRST_COST
    while True:
        time.sleep(LOOK_SECONDS)
        if is_time(since=time.monotonic() - last, rested=RENDER_LOCK.rest_seconds(), cost=cost):
            cost = collect()
            last = time.monotonic()
