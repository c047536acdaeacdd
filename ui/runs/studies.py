"""Measurements that take longer than a page may: begun by whoever asks first, shared by all who ask for the same.

A study goes through the one queue in front of the model (`ui.server.work`) and lets shorter work go first wherever it
says how far it is. It is stopped there once nobody wants it any more; what it found is kept while there is room.

Knows nothing of Streamlit.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Generator, Hashable
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol

from cachetools import LRUCache

from transformer.errors import GlassformerError
from ui.server.work import BusyError, Runner
from words import Sentence, say, say_n

SMALL: Final = 30_000_000
"""Parameters of a model whose heads are measured unasked: that takes a second; the shipped ones have 8 million."""

MOST_UNDER_WAY: Final = 16
CACHE_BYTES: Final = 64 * 2**20
AWAY_SECONDS: Final = 10.0  # who has not looked for so long has closed the page
_TRY_AGAIN_SECONDS: Final = 0.5

State = Literal["waiting", "running", "done", "failed"]
_LOG = logging.getLogger("glassformer.studies")


class Step(Protocol):
    """How far a measurement is."""

    @property
    def done(self) -> int:
        """Parts that are done."""

    @property
    def whole(self) -> int:
        """Of how many."""


Measuring = Callable[[], Generator[Step, None, Any]]
"""Begins a measurement, which says how far it is before each of its parts, and returns what it found."""


@dataclass(frozen=True)
class Seen:
    """How far a study is."""

    state: State  # what it does
    done: int = 0  # parts that are done, and of how many; 0 of 0 before it has begun
    whole: int = 0  # parts that are done, and of how many; 0 of 0 before it has begun
    result: Any = None  # what it found
    problem: Sentence | None = None  # why it failed

    @property
    def is_under_way(self) -> bool:
        """Whether there is more to come."""
        return self.state in ("waiting", "running")


@dataclass(eq=False)
class _Study:
    """One that waits or runs: who wants it and when they looked last, how far it is, and whether nobody wants it."""

    watchers: dict[Hashable, float] = field(default_factory=dict)
    seen: Seen = field(default_factory=lambda: Seen("waiting"))
    stopped: threading.Event = field(default_factory=threading.Event)
    over: threading.Event = field(default_factory=threading.Event)


class _StoppedError(BaseException):
    """Ends a study between two parts, past whatever it catches."""


class Studies:
    """The studies of a server: so many under way at most, and so much memory for what they found."""

    def __init__(self, runner: Runner, *, cache_bytes: int = CACHE_BYTES, most: int = MOST_UNDER_WAY) -> None:
        self._runner, self._most = runner, most
        self._lock = threading.Lock()
        self._under_way: dict[Hashable, _Study] = {}
        self._over: LRUCache[Hashable, tuple[Seen, int]] = LRUCache(cache_bytes, getsizeof=lambda kept: kept[1])

    def ask(self, key: Hashable, measuring: Measuring, *, visitor: Hashable, cost: float) -> Seen:
        """Have something measured, unless it was or is already; BusyError if too many studies are under way.

        The key says all that decides the result, the checkpoint's content hash included. What is returned has its
        memory in `nbytes`. `cost` is about how long it takes; see `ui.server.queue.cost_of`.
        """
        with self._lock:
            found = self._look(key, visitor)
            if found is not None and found.state != "failed":
                return found
            if len(self._under_way) >= self._most:
                raise BusyError(
                    say_n(
                        "{n} measurement is under way. Try again in a minute.",
                        "{n} measurements are under way. Try again in a minute.",
                        len(self._under_way),
                    )
                )
            one = self._under_way[key] = _Study({visitor: time.monotonic()})
        # A daemon: a server that is stopped does not wait for it.
        threading.Thread(target=self._run, args=(key, one, measuring, cost), daemon=True).start()
        return one.seen

    def look(self, key: Hashable, visitor: Hashable, *, patience: float = 0.0) -> Seen | None:
        """How far a study is, after so many seconds at most; None if there is none, or none any more."""
        with self._lock:
            one = self._under_way.get(key)
        if one is not None and patience > 0:
            one.over.wait(patience)
        with self._lock:
            return self._look(key, visitor)

    def withdraw(self, key: Hashable, visitor: Hashable) -> None:
        """Want a study no more; it ends within its part, unless somebody else watches it."""
        with self._lock:
            one = self._under_way.get(key)
            if one is None:
                return
            one.watchers.pop(visitor, None)
            recently = time.monotonic() - AWAY_SECONDS
            if not any(looked > recently for looked in one.watchers.values()):
                one.stopped.set()
                del self._under_way[key]

    def _look(self, key: Hashable, visitor: Hashable) -> Seen | None:
        one = self._under_way.get(key)
        if one is None:
            kept = self._over.get(key)
            return None if kept is None else kept[0]
        one.watchers[visitor] = time.monotonic()
        return one.seen

    def _run(self, key: Hashable, one: _Study, measuring: Measuring, cost: float) -> None:
        """Do it, in a thread of its own."""
        try:
            seen = Seen("done", result=self._measured(one, measuring, cost))
        except _StoppedError:
            one.over.set()
            return
        except (GlassformerError, BusyError) as error:
            seen = Seen("failed", problem=error.sentence)
        except BaseException:  # nobody waits for a thread that is gone
            _LOG.exception("a measurement failed")
            seen = Seen("failed", problem=say("Something went wrong; the server's log says what."))
        nbytes = 1_000 + (0 if seen.result is None else int(seen.result.nbytes))
        with self._lock:
            if self._under_way.get(key) is one:  # else it was stopped at its very end
                del self._under_way[key]
            if nbytes <= self._over.maxsize:
                self._over[key] = seen, nbytes
        one.over.set()

    def _measured(self, one: _Study, measuring: Measuring, cost: float) -> Any:
        results: list[Any] = []

        def work(let_others: Callable[[], None]) -> None:
            with closing(measuring()) as begun:
                while True:
                    self._go_on(one)
                    let_others()
                    self._go_on(one)
                    try:
                        step = next(begun)
                    except StopIteration as end:
                        results.append(end.value)
                        return
                    one.seen = Seen("running", step.done, step.whole)

        while True:
            self._go_on(one)
            try:
                self._runner.part(work, visitor=one, cost=cost)
                return results[0]
            except BusyError:  # nobody waits in front of it
                one.stopped.wait(_TRY_AGAIN_SECONDS)

    def _go_on(self, one: _Study) -> None:
        recently = time.monotonic() - AWAY_SECONDS
        if one.stopped.is_set():
            raise _StoppedError
        if one.watchers and all(looked < recently for looked in list(one.watchers.values())):
            with self._lock:
                for key, other in list(self._under_way.items()):
                    if other is one:
                        del self._under_way[key]
            raise _StoppedError
