"""Doctor examinations as background jobs: shared by users, one at a time, low priority.

A request for an examination that runs already shares it; reports are cached until newer ones replace them. Before each
test, and at a test's pauses, it waits while anyone waits for the model, and its thread has the lowest priority. A test
with an unexpected exception is reported as not testable; the others go on.
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
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Literal

import torch

from glassformer.extensions.doctor.library.context import DoctorTest, ExaminationContext, ParameterContext
from glassformer.extensions.doctor.library.findings import Finding
from glassformer.extensions.doctor.library.report import TESTS, Report, examine_unopened, run_test, untested
from glassformer.extensions.importers.library.report import ImportReport, UnopenedTensors
from glassformer.runs import loading
from glassformer.runs.error_boundary import Examiner
from glassformer.server.jobs import Job, JobRegistry, JobStatus, StoppedError
from glassformer.server.model_runner import BusyError
from glassformer.shared.i18n import st
from transformer.analysis.losses import Samples
from transformer.checkpoint.load import Checkpoint
from transformer.i18n import Sentence, say

MOST_WAITING: Final = 8  # of about half a minute each, so the last in the queue waits minutes, not hours
MOST_KEPT: Final = 64  # reports, of some kilobytes each
MOST_SECONDS: Final = 600.0  # then the next one has its turn; what was not tested by then says so
PATIENCE_SECONDS: Final = 2.0  # that one pause waits at most: a server that is never idle still ends an examination
LOOK_SECONDS: Final = 0.01
WAIT_SECONDS: Final = 0.2  # between two looks of somebody else's job at an examination
END_SECONDS: Final = 20.0  # that a server which ends waits for the test at hand
NICE: Final = 15  # of 19: how far the thread stands back, where the system lets one thread do so

_LOG = logging.getLogger("glassformer.doctor")
_LATE: Final = say(
    "This was not tested because the examination reached its limit of {minutes:g} minutes.", minutes=MOST_SECONDS / 60
)


@dataclass(frozen=True)
class ExaminationRequest:
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
    ) -> ExaminationRequest:
        """What decides the report on a checkpoint."""
        return ExaminationRequest(
            checkpoint.name, checkpoint.content_hash, tuple(checkpoint.card.tried()), given, seed, reported
        )


@dataclass(frozen=True)
class ExaminationProgress:
    """How far an examination is."""

    testing: Sentence | Literal[""] = ""  # what is tested now
    findings: tuple[Finding, ...] = ()  # those made so far, in their order


class Examinations(JobRegistry[ExaminationRequest]):
    """Every examination of the server; each tells its `ExaminationProgress` and comes to a `Report`."""

    def __init__(
        self,
        *,
        is_busy: Callable[[], bool],
        tests: Sequence[DoctorTest] = TESTS,
        most_waiting: int = MOST_WAITING,
        most_kept: int = MOST_KEPT,
    ) -> None:
        """Begin with none; `is_busy` says whether somebody waits for the model."""
        super().__init__(_too_many, most=most_waiting, at_once=1, room=most_kept, begin=_stand_back)
        self._is_busy, self.tests = is_busy, tuple(tests)
        atexit.register(_ended, weakref.ref(self))  # a thread that dies inside torch would take the process with it

    def examine(self, asked: ExaminationRequest, checkpoint: Checkpoint, visitor: Hashable) -> JobStatus:
        """Have a checkpoint examined, unless it is already; raises `BusyError` where too many are under way."""
        # No reference to the checkpoint: a waiting job keeps no model in memory.
        return self.ask(asked, partial(self._examined, asked, weakref.ref(checkpoint)), visitor=visitor).seen

    def examine_unopened(
        self, asked: ExaminationRequest, report: ImportReport, tensors: UnopenedTensors, visitor: Hashable
    ) -> JobStatus:
        """Have the tensors of a model examined that has open questions; as `examine`."""

        def work(job: Job) -> Report:
            pause = partial(self._pause, job)
            return replace(examine_unopened(report, tensors, run=_run, pause=pause), checkpoint=asked.name)

        return self.ask(asked, work, visitor=visitor).seen

    def _examined(self, asked: ExaminationRequest, of: weakref.ReferenceType[Checkpoint], job: Job) -> Report:
        checkpoint, begun = of(), time.monotonic()
        if checkpoint is None:
            raise LookupError(f"{asked.name} was put away before its examination")
        patient = ExaminationContext(checkpoint, asked.given, asked.seed, lambda: self._pause(job), asked.reported)
        findings: tuple[Finding, ...] = ()
        for test in self.tests:
            job.tell(ExaminationProgress(test.title, findings))
            self._pause(job)
            late = time.monotonic() - begun > MOST_SECONDS
            findings = (*findings, untested(test, _LATE) if late else _run(test, patient))
            job.tell(ExaminationProgress(test.title, findings))
        self._pause(job)  # a user who stopped it during the last test wants no report
        report = Report.of(patient, findings)
        _LOG.info("examined %s in %.1f s: %s", asked.name, time.monotonic() - begun, report.summary())
        return report

    def _pause(self, job: Job) -> None:
        """Let those who wait for the model go first; ends an examination that was stopped, but none that is left."""
        end = time.monotonic() + PATIENCE_SECONDS
        while not job.stopped.is_set() and self._is_busy() and time.monotonic() < end:
            time.sleep(LOOK_SECONDS)
        if job.stopped.is_set():
            raise StoppedError


@st.cache_resource(show_spinner=False)
def examinations() -> Examinations:
    """The examinations of all visitors of this server."""
    return Examinations(is_busy=lambda: loading.runner().is_busy)


class Doctor(Examiner):
    """Examines as the page Doctor does; what was examined there is known."""

    def counts(self, checkpoint: Checkpoint, job: Job) -> tuple[int, int, int] | None:
        """How many tests say what."""
        asked, all_of_them = ExaminationRequest.of(checkpoint), examinations()
        try:
            while True:
                try:
                    all_of_them.examine(asked, checkpoint, job)
                    break
                except BusyError:
                    job.pause()
                    job.stopped.wait(1.0)
            while (seen := all_of_them.look(asked, job, patience=WAIT_SECONDS)) is not None and seen.is_under_way:
                job.pause()
        except StoppedError:
            all_of_them.withdraw(asked, job)
            raise
        report: Report | None = None if seen is None else seen.result
        if report is None:
            return None
        return len(report.only("broken")), len(report.only("look")), len(report.only("well"))


EXAMINER: Final = Doctor()


def _too_many(n: int) -> BusyError:
    return BusyError(
        "{n} examination is waiting. Try again in a minute.", "{n} examinations are waiting. Try again in a minute.", n
    )


def _ended(examinations: weakref.ReferenceType[Examinations]) -> None:
    found = examinations()
    if found is not None:
        found.end(END_SECONDS)


def _run(test: DoctorTest, patient: ExaminationContext | ParameterContext) -> Finding:
    """What a test finds, even if the test itself is wrong."""
    try:
        return run_test(test, patient)
    except Exception:
        _LOG.exception("the test %s failed", test.name)
        return untested(test, say("The test itself failed, so it has no result. The reason is in the server's log."))


def _stand_back() -> None:
    """Take one processor at most, and that only when nobody else wants it."""
    torch.set_num_threads(1)
    if sys.platform == "linux":  # where a thread has a niceness of its own
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
