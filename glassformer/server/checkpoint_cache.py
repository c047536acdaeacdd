"""LRU cache of loaded checkpoints; each is loaded once, in a thread of its own.

Waiting threads see the progress and may leave; the load goes on. The least recently used checkpoints are evicted when
there are many, or when the next one would not fit into memory with them.
"""

from __future__ import annotations

import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import TYPE_CHECKING, TypeAlias

from glassformer.server import render_lock, server_options
from transformer.checkpoint import free_memory
from transformer.checkpoint.free_memory import CPU
from transformer.checkpoint.progress import Progress

if TYPE_CHECKING:
    from transformer.checkpoint.load import Checkpoint

MOST = 8  # checkpoints that are kept
Open: TypeAlias = "Callable[[Progress], Checkpoint]"


class PendingCheckpoint:
    """A checkpoint on its way into memory: `done` of `whole` bytes of its values are there; 0 if not known."""

    def __init__(self) -> None:
        self.done, self.whole = 0, 0
        self._future: Future[Checkpoint] = Future()

    def wait(self, seconds: float) -> bool:
        """Wait until it is there, or for so long; whether it is."""
        try:
            self._future.exception(timeout=seconds)
        except FutureTimeoutError:
            return False
        return True

    def result(self) -> Checkpoint:
        """The checkpoint, when it is there; raises what opening it raised."""
        return self._future.result()

    def run(self, work: Open) -> Checkpoint | None:
        """Open it; None if that fails."""
        try:
            checkpoint = work(self._see)
        except BaseException as error:  # raised in the threads that wait
            self._future.set_exception(error)
            return None
        self._future.set_result(checkpoint)
        return checkpoint

    def _see(self, done: int, whole: int) -> None:
        self.done, self.whole = done, whole


class CheckpointCache:
    """What is in memory."""

    def __init__(self, most: int = MOST, *, most_bytes: int = sys.maxsize) -> None:
        """Begin with nothing; so many are kept, and of more than one so many bytes."""
        self._most, self._most_bytes, self._lock = most, most_bytes, threading.Lock()
        self._open: OrderedDict[Hashable, Checkpoint] = OrderedDict()  # the one used last at the end
        self._n_bytes: dict[Hashable, int] = {}  # of each, about
        self._under_way: dict[Hashable, PendingCheckpoint] = {}

    def find(self, which: Hashable) -> Checkpoint | None:
        """A checkpoint that is open."""
        with self._lock:
            if which in self._open:
                self._open.move_to_end(which)
            return self._open.get(which)

    def open(self, which: Hashable, work: Open, *, n_bytes: int) -> PendingCheckpoint:
        """Open a checkpoint, unless somebody does already; `which` identifies it, `n_bytes` estimates its memory."""
        with self._lock:
            if which in self._under_way:
                return self._under_way[which]
            opening = self._under_way[which] = PendingCheckpoint()
        threading.Thread(target=self._run, args=(which, opening, work, n_bytes), daemon=True).start()
        return opening

    def let_go(self, gone: Callable[[Hashable], bool]) -> None:
        """Let go of the checkpoints that are `gone`, by what says what each is; who runs one now still has it."""
        with self._lock:
            for which in [one for one in self._open if gone(one)]:
                del self._open[which]

    def _run(self, which: Hashable, opening: PendingCheckpoint, work: Open, n_bytes: int) -> None:
        self._make_room(n_bytes)
        checkpoint = opening.run(work)
        with self._lock:
            del self._under_way[which]
            if checkpoint is not None:
                self._open[which], self._n_bytes[which] = checkpoint, n_bytes
            while len(self._open) > self._most or (len(self._open) > 1 and self._takes() > self._most_bytes):
                self._open.popitem(last=False)
            self._n_bytes = {one: self._n_bytes[one] for one in self._open}

    def _takes(self) -> int:
        return sum(self._n_bytes[one] for one in self._open)

    def _make_room(self, n_bytes: int) -> None:
        """Let go of what was used longest ago, until the next one fits; a visitor may still hold it for a moment."""
        while not all(free_memory.fits(n_bytes, place) for place in {CPU, server_options.device()}):
            with self._lock:
                if not self._open:
                    return
                self._open.popitem(last=False)
            render_lock.collect()
