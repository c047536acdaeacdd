"""Measurements that take longer than a page may: in the background, with progress, stopped when nobody wants them.

Each goes through the one queue in front of the model (`ui.runs.work`) as a long work does: at every pause whatever
waits and is shorter goes first. Whoever asks for the same shares it, and finds the result later, until newer ones
have taken its room.

Knows nothing of Streamlit.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from cachetools import LRUCache

from transformer.errors import GlassformerError
from ui.runs.work import BusyError, Runner
from words import Sentence, say, say_n

MOST_UNDER_WAY: Final = 8
KEPT_BYTES: Final = 64 * 2**20

State = Literal["running", "done", "failed"]
Pause = Callable[[int, int], None]
"""Called by a work between its parts with how much is done and how much there is."""
Work = Callable[[Pause], Any]
_LOG = logging.getLogger("glassformer.measuring")


@dataclass(frozen=True)
class Seen:
    """How far a measurement is.

    Attributes:
        state: What it does.
        done, whole: Parts of the work.
        result: When it is done.
        problem: Why it failed.
    """

    state: State
    done: int = 0
    whole: int = 0
    result: Any = None
    problem: Sentence | None = None


@dataclass(eq=False)
class _Measurement:
    """One that is under way.

    Attributes:
        work: Makes the result.
        nbytes: Memory of a result, in bytes, about.
        cost: How long it takes, about; see `ui.runs.queue.cost_of`.
        watchers: Who wants it.
        seen: How far it is.
        is_stopped: Nobody wants it any more.
    """

    work: Work
    nbytes: Callable[[Any], int]
    cost: float
    watchers: set[Hashable] = field(default_factory=set)
    seen: Seen = field(default_factory=lambda: Seen("running"))
    is_stopped: bool = False


class _StoppedError(BaseException):
    """Raised where a work pauses, past whatever it catches."""


class Measurements:
    """All measurements of a server.

    Args:
        runner: What runs the model.
        kept_bytes: Most memory for finished results.
    """

    def __init__(self, runner: Runner, *, kept_bytes: int = KEPT_BYTES) -> None:
        self._runner, self._lock = runner, threading.Lock()
        self._under_way: dict[Hashable, _Measurement] = {}
        self._over: LRUCache[Hashable, tuple[Seen, int]] = LRUCache(kept_bytes, getsizeof=lambda kept: kept[1])

    def ask(self, key: Hashable, work: Work, *, nbytes: Callable[[Any], int], cost: float, visitor: Hashable) -> Seen:
        """Have something measured, unless it is already.

        Args:
            key: Says all that decides the result, the checkpoint's content hash included.
            work: Makes the result, in the model's thread.
            nbytes: Memory of a result, in bytes, about.
            cost: How long it takes, about.
            visitor: Who asks.

        Raises:
            BusyError: Too many are under way.
        """
        with self._lock:
            found = self._look(key, visitor)
            if found is not None and found.state != "failed":
                return found
            if len(self._under_way) >= MOST_UNDER_WAY:
                raise BusyError(
                    say_n(
                        "{n} measurement is under way. Try again in a moment.",
                        "{n} measurements are under way. Try again in a moment.",
                        len(self._under_way),
                    )
                )
            one = _Measurement(work, nbytes, cost, {visitor})
            self._under_way[key] = one
            self._over.pop(key, None)
        threading.Thread(target=self._do, args=(key, one, visitor), daemon=True).start()
        return one.seen

    def look(self, key: Hashable, visitor: Hashable) -> Seen | None:
        """How far a measurement is; None if nobody asked for it, or it was forgotten."""
        with self._lock:
            return self._look(key, visitor)

    def withdraw(self, key: Hashable, visitor: Hashable) -> None:
        """Want a measurement no more; it is stopped at its next pause, unless somebody else wants it."""
        with self._lock:
            one = self._under_way.get(key)
            if one is not None:
                one.watchers.discard(visitor)
                one.is_stopped = not one.watchers

    def _look(self, key: Hashable, visitor: Hashable) -> Seen | None:
        one = self._under_way.get(key)
        if one is None or one.is_stopped:
            kept = self._over.get(key)
            return None if kept is None else kept[0]
        one.watchers.add(visitor)
        return one.seen

    def _do(self, key: Hashable, one: _Measurement, visitor: Hashable) -> None:
        """Measure, in a thread that only waits for the model's."""
        over, size = Seen("failed"), 0

        def work(let_others: Callable[[], None]) -> None:
            nonlocal over, size

            def pause(done: int, whole: int) -> None:
                if one.is_stopped:
                    raise _StoppedError
                one.seen = replace(one.seen, done=done, whole=whole)
                let_others()

            result = one.work(pause)
            over, size = Seen("done", result=result), one.nbytes(result) + 1000

        try:
            self._runner.part(work, visitor=visitor, cost=one.cost)
        except _StoppedError:
            pass
        except (GlassformerError, BusyError) as error:
            over = Seen("failed", problem=error.sentence)
        except BaseException:  # nobody waits for a thread that is gone
            _LOG.exception("a measurement failed")
            over = Seen("failed", problem=say("Something went wrong; the server's log says what."))
        with self._lock:
            if self._under_way.get(key) is one:
                del self._under_way[key]
            if over.state == "done" or not one.is_stopped:
                self._over[key] = (over, size)
