"""Whose page is drawn now, one after the other; and garbage, looked for while nobody's is.

A run of a page is work of Python alone, of which a process does one thing at a time. A hundred runs that share it all
end when the last one does; one after the other they end as late, but half of the class has its page in half the time,
and what is drawn reaches browsers sooner, as the thread that sends it has fewer rivals.

A turn that takes long holds up nobody: after `lease` seconds the next one begins beside it. Whoever waits for the
model, which has a thread of its own, steps aside meanwhile.

What a run of a page leaves behind is nearly all gone at once; only what holds itself in a circle is garbage that has
to be looked for. Python would look by itself, in the middle of what a class waits for. Here what was found to be
alive is not looked at again until the next time that nothing is drawn, so Python's own looks stay short.
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

    def __init__(self, *, at_once: int = 1, lease: float = 0.1) -> None:
        """Begin with nobody: so many have a turn at a time, each of which keeps others out for `lease` seconds."""
        self._at_once, self._lease = at_once, lease
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
        # Whoever is next looks whether a turn is over its time; a hundred who all looked would themselves take time.
        while not mine.wait(self._lease * (ahead + 1)):
            with self._lock:
                self._grant()
                ahead = max(0, ahead - 1)

    def _give(self) -> None:
        with self._lock:
            self._since.pop(threading.get_ident(), None)
            self._grant()

    def _grant(self) -> None:
        """Give the turns that are free to whoever waits longest."""
        now = time.monotonic()
        self._since = {thread: since for thread, since in self._since.items() if now - since < self._lease}
        while self._waiting and len(self._since) < self._at_once:
            thread, event = self._waiting.popleft()
            self._since[thread] = now
            event.set()


RENDER_LOCK: Final = FairSemaphore()  # of this process


# New objects more than gone ones, then younger collections. A run of a page makes many objects of which few are
# garbage in circles: with Python's own thresholds a tenth of a class's time is spent looking for those.
THRESHOLDS: Final = (1_000, 20, 20)
SHARE: Final = 0.05  # of the time that may go into looking
REST_SECONDS: Final = 0.25  # for which nothing was drawn
LOOK_SECONDS: Final = 0.1
LONGEST_SECONDS: Final = 120.0  # between two looks where something is always drawn
FIRST_COST: Final = 0.2  # seconds that a look is taken to need before there was one

_ONCE = threading.Lock()


def collect() -> float:
    """Look for all garbage, also in what `begin` leaves out of Python's own looks; tell the seconds that it took."""
    began, is_left_out = time.monotonic(), gc.get_freeze_count() > 0
    gc.unfreeze()
    gc.collect()
    if is_left_out:
        gc.freeze()
    return time.monotonic() - began


def begin() -> None:
    """Look whenever nobody's page is drawn, from now on, and leave what is then alive out of Python's own looks."""
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
    gc.enable()
    if _ONCE.acquire(blocking=False):
        threading.Thread(target=_keep_looking, daemon=True).start()


def is_time(*, since: float, rested: float, cost: float) -> bool:
    """Whether there may be something to find and nobody waits for a page, or somebody always has.

    In seconds: since the last look, for which nothing was drawn, and what the last look took.
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
