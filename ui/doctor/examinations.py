"""Examinations for many visitors: one at a time, in a thread of its own that lets everybody else go first.

Whoever asks for an examination that somebody has asked for shares it, and finds it done later, until newer ones have
taken its room. Before each test, and where a test pauses, it waits while somebody waits for the model, and it is the
last to get the processor. A test that raises what nobody expected is reported as not testable; the others go on.

Knows nothing of Streamlit.
"""

from __future__ import annotations

import atexit
import logging
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, Literal

import torch
from cachetools import LRUCache

from transformer.checkpoint.load import Checkpoint
from transformer.doctor.checklist import TESTS
from transformer.doctor.examination import run_test
from transformer.doctor.findings import Finding, not_applicable
from transformer.doctor.patient import Patient, Test
from transformer.doctor.whole import Report
from transformer.trying.samples import Samples
from ui.server.work import BusyError
from words import Sentence, say, say_n

MOST_WAITING: Final = 8  # of about half a minute each: whoever is last should not have to come back tomorrow
MOST_KEPT: Final = 64  # reports, of some kilobytes each
MOST_SECONDS: Final = 600.0  # then the next one has its turn; what was not tested by then says so
PATIENCE_SECONDS: Final = 2.0  # that one pause waits at most: a server that is never idle still ends an examination
LOOK_SECONDS: Final = 0.01
END_SECONDS: Final = 20.0  # that a server which ends waits for the test at hand
AWAY_SECONDS: Final = 10.0  # who has not looked for so long has closed the page, and keeps none from being stopped
NICE: Final = 15  # of 19: how far the thread stands back, where the system lets one thread do so

State = Literal["waiting", "running", "done", "failed"]
_LOG = logging.getLogger("glassformer.doctor")


@dataclass(frozen=True)
class Asked:
    """All that decides a report."""

    name: str  # of the checkpoint, which the report says
    content_hash: str  # of the checkpoint
    examples: tuple[str, ...]  # of its card, which has no part in the hash
    given: Samples | None = None  # pairs or texts; None for the examples
    seed: int = 0  # what is drawn
    reported: float | None = None  # the loss that the training reported

    @staticmethod
    def of(
        checkpoint: Checkpoint, given: Samples | None = None, seed: int = 0, reported: float | None = None
    ) -> Asked:
        """What decides the report on a checkpoint."""
        return Asked(checkpoint.name, checkpoint.content_hash, tuple(checkpoint.card.tried()), given, seed, reported)


@dataclass(frozen=True)
class Seen:
    """How far an examination is."""

    state: State  # whether it waits, runs, or is over
    ahead: int = 0  # examinations that come before it
    whole: int = 0  # how many tests there are
    testing: Sentence | Literal[""] = ""  # what is tested now
    findings: tuple[Finding, ...] = ()  # those made so far, in their order
    report: Report | None = None  # when it is done

    @property
    def is_under_way(self) -> bool:
        """Whether there is more to come."""
        return self.state in ("waiting", "running")


@dataclass(eq=False)
class _Examination:
    """One that waits or runs."""

    asked: Asked  # what for
    checkpoint: weakref.ReferenceType[Checkpoint]  # not held, so that one that waits keeps no model in memory
    watchers: dict[Hashable, float] = field(default_factory=dict)  # who wants it, and when they looked last
    seen: Seen = field(default_factory=lambda: Seen("waiting"))  # how far it is
    is_stopped: bool = False  # nobody wants it any more


class _StoppedError(BaseException):
    """Raised where a test pauses, past whatever a test catches."""


class Examinations:
    """Every examination of the server.

    Args:
        is_busy: Whether somebody waits for the model.
        tests: What an examination is made of.
        most_waiting: Most examinations under way.
        most_kept: Most reports that are kept.
    """

    def __init__(
        self,
        *,
        is_busy: Callable[[], bool],
        tests: Sequence[Test] = TESTS,
        most_waiting: int = MOST_WAITING,
        most_kept: int = MOST_KEPT,
    ) -> None:
        self._is_busy, self._tests, self._most_waiting = is_busy, tuple(tests), most_waiting
        self._lock = threading.Lock()
        self._under_way: dict[Asked, _Examination] = {}  # the one that runs first
        self._over: LRUCache[Asked, Seen] = LRUCache(most_kept)
        self._thread: threading.Thread | None = None
        atexit.register(_ended, weakref.ref(self))  # a thread that dies inside torch would take the process with it

    def ask(self, asked: Asked, checkpoint: Checkpoint, visitor: Hashable) -> Seen:
        """Have a checkpoint examined, unless it is already.

        Raises:
            BusyError: Too many are under way.
        """
        with self._lock:
            found = self._look(asked, visitor)
            if found is not None and found.state != "failed":
                return found
            if len(self._under_way) >= self._most_waiting:
                raise BusyError(
                    say_n(
                        "{n} examination is waiting. Try again in a minute.",
                        "{n} examinations are waiting. Try again in a minute.",
                        len(self._under_way),
                    )
                )
            one = _Examination(asked, weakref.ref(checkpoint), {visitor: time.monotonic()})
            one.seen = Seen("waiting", whole=len(self._tests))
            self._under_way[asked] = one
            self._over.pop(asked, None)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, daemon=True)
                self._thread.start()
            return self._look(asked, visitor) or one.seen

    def look(self, asked: Asked, visitor: Hashable) -> Seen | None:
        """How far an examination is; None if nobody asked for it, or it was forgotten."""
        with self._lock:
            return self._look(asked, visitor)

    def kept(self, asked: Asked) -> Seen | None:
        """An examination that is over; None if there is none. Whoever asks does not watch it."""
        with self._lock:
            found: Seen | None = self._over.get(asked)
            return found

    def withdraw(self, asked: Asked, visitor: Hashable) -> None:
        """Want an examination no more; it is stopped at its next pause, unless somebody else watches it."""
        with self._lock:
            one = self._under_way.get(asked)
            if one is None:
                return
            one.watchers.pop(visitor, None)
            recently = time.monotonic() - AWAY_SECONDS
            if any(looked > recently for looked in one.watchers.values()):
                return
            one.is_stopped = True
            if one.seen.state == "waiting":
                del self._under_way[asked]

    def end(self) -> None:
        """Stop all of them, as the process ends."""
        with self._lock:
            for one in self._under_way.values():
                one.is_stopped = True
            thread = self._thread
        if thread is not None:
            thread.join(END_SECONDS)

    def _look(self, asked: Asked, visitor: Hashable) -> Seen | None:
        one = self._under_way.get(asked)
        if one is None or one.is_stopped:
            found: Seen | None = self._over.get(asked)
            return found
        one.watchers[visitor] = time.monotonic()
        ahead = list(self._under_way).index(asked)
        return Seen("waiting", ahead, len(self._tests)) if one.seen.state == "waiting" else one.seen

    def _work(self) -> None:
        """Do what is asked for, one after the other, until nothing is."""
        _stand_back()
        while True:
            with self._lock:
                one = next(iter(self._under_way.values()), None)
                if one is None:
                    self._thread = None
                    return
                one.seen = Seen("running", whole=len(self._tests))
            over = self._examined(one)
            with self._lock:
                if self._under_way.get(one.asked) is one:  # else it was stopped, and asked for once more
                    del self._under_way[one.asked]
                if over is not None:
                    self._over[one.asked] = over

    def _examined(self, one: _Examination) -> Seen | None:
        """What becomes of an examination; None if it was stopped."""
        checkpoint, begun = one.checkpoint(), time.monotonic()
        if checkpoint is None:
            return Seen("failed")
        try:
            given, seed, reported = one.asked.given, one.asked.seed, one.asked.reported
            patient = Patient(checkpoint, given, seed, lambda: self._pause(one), reported)
            for test in self._tests:
                one.seen = Seen("running", 0, len(self._tests), test.title, one.seen.findings)
                self._pause(one)
                late = time.monotonic() - begun > MOST_SECONDS
                found = _not_in_time(test) if late else _run(test, patient)
                one.seen = Seen("running", 0, len(self._tests), test.title, (*one.seen.findings, found))
            self._pause(one)  # whoever stopped it during the last test wants no report
            report = Report.of(patient, one.seen.findings)
        except _StoppedError:
            return None
        except BaseException:  # nobody waits for a thread that is gone
            _LOG.exception("the examination of %s failed", one.asked.name)
            return Seen("failed")
        _LOG.info("examined %s in %.1f s: %s", one.asked.name, time.monotonic() - begun, report.summary())
        return Seen("done", 0, len(self._tests), findings=report.findings, report=report)

    def _pause(self, one: _Examination) -> None:
        """Let those who wait for the model go first.

        Raises:
            _StoppedError: Nobody wants the examination any more.
        """
        end = time.monotonic() + PATIENCE_SECONDS
        while not one.is_stopped and self._is_busy() and time.monotonic() < end:
            time.sleep(LOOK_SECONDS)
        if one.is_stopped:
            raise _StoppedError


def _ended(examinations: weakref.ReferenceType[Examinations]) -> None:
    found = examinations()
    if found is not None:
        found.end()


def _run(test: Test, patient: Patient) -> Finding:
    """What a test finds, even if the test itself is wrong."""
    try:
        return run_test(test, patient)
    except Exception:
        _LOG.exception("the test %s failed on %s", test.name, patient.checkpoint.name)
        said = say("This could not be tested: the test itself failed, and the server's log says why.")
        return Finding(test=test.name, area=test.area, title=test.title, measured=not_applicable(said))


def _not_in_time(test: Test) -> Finding:
    said = say("This was not tested: the examination had taken {minutes:g} minutes.", minutes=MOST_SECONDS / 60)
    return Finding(test=test.name, area=test.area, title=test.title, measured=not_applicable(said))


def _stand_back() -> None:
    """Take one processor at most, and that only when nobody else wants it."""
    torch.set_num_threads(1)
    if sys.platform == "linux":  # where a thread has a niceness of its own
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
