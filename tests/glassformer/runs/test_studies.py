"""Measurements in the background are shared, kept, stopped when nobody wants them, and behind shorter work."""

import threading
from functools import partial
from types import SimpleNamespace

import pytest

from glassformer.runs.measurement_jobs import new_studies, study
from glassformer.server.model_runner import ModelRunner
from tests.glassformer.waiting import WAIT, until
from transformer.errors import QueryError

RESULT = SimpleNamespace(nbytes=10)


class Work:
    """A made-up measurement: it can be held before each of its parts, and says which it did."""

    def __init__(self, *, held=False, error=None):
        self.parts, self.error, self.begun, self.did = 3, error, 0, []
        self.go, self.closed = threading.Semaphore(0 if held else 1_000), threading.Event()

    def __call__(self):
        self.begun += 1
        try:
            for part in range(self.parts):
                yield SimpleNamespace(done=part, whole=self.parts)
                assert self.go.acquire(timeout=WAIT)
                self.did.append(part)
                if self.error is not None:
                    raise self.error
            return RESULT
        finally:
            self.closed.set()


class Studies:
    """Measurements of a server of their own."""

    def __init__(self, runner=None):
        self.runner, self.jobs = runner or ModelRunner(), new_studies()
        self.look = self.jobs.look
        self.withdraw = self.jobs.withdraw

    def ask(self, key, measuring, *, visitor, cost):
        return self.jobs.ask(key, partial(study, self.runner, measuring, cost), visitor=visitor).seen


@pytest.fixture
def studies():
    return Studies()


def test_a_measurement_is_done_once_for_all_who_ask(studies):
    work = Work(held=True)
    for visitor in ("a", "b"):
        assert studies.ask("key", work, visitor=visitor, cost=1).is_under_way
    until(lambda: studies.look("key", "a").so_far)
    assert (studies.look("key", "a").so_far.done, studies.look("key", "a").so_far.whole) == (0, 3)
    work.go.release()
    until(lambda: studies.look("key", "b").so_far.done == 1)
    work.go.release(2)
    seen = studies.look("key", "a", patience=WAIT)
    assert (seen.state, seen.result, work.begun) == ("done", RESULT, 1)
    assert studies.ask("key", work, visitor="c", cost=1).result is RESULT
    assert work.begun == 1
    assert studies.look("other", "a") is None


def test_one_that_the_last_has_left_ends_within_its_part_and_an_error_is_said(studies):
    work = Work(held=True)
    studies.ask("key", work, visitor="a", cost=1)
    until(lambda: studies.look("key", "a").so_far)
    studies.withdraw("key", "a")
    work.go.release(3)
    assert work.closed.wait(WAIT)
    assert work.did == [0]
    for error, said in ((QueryError("no {what}.", what="such head"), "no such head."), (ZeroDivisionError(), "log.")):
        studies.ask("key", Work(error=error), visitor="a", cost=1)
        seen = studies.look("key", "a", patience=WAIT)
        assert (seen.state, str(seen.problem).endswith(said)) == ("failed", True)


def test_shorter_work_goes_first_between_two_parts():
    runner = ModelRunner()
    studies, work, done = Studies(runner), Work(held=True), []
    studies.ask("key", work, visitor="a", cost=100)
    until(lambda: studies.look("key", "a").so_far)

    def short():
        done.append(list(work.did))

    waiting = threading.Thread(target=lambda: runner.compute("short", short, nbytes=lambda _: 0))
    waiting.start()
    until(lambda: len(runner._under_way) == 2)
    work.go.release(3)
    waiting.join(WAIT)
    assert studies.look("key", "a", patience=WAIT).state == "done"
    assert done == [[0]]
