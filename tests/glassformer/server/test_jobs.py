"""Long work runs in order, is shared, bounded and behind shorter work, and ends where nobody wants it any more."""

import gc
import random
import threading
import weakref
from functools import partial
from types import SimpleNamespace

import pytest

from glassformer.runs import measurement_jobs
from glassformer.runs.measurement_jobs import study
from glassformer.server import jobs as module
from glassformer.server.jobs import JobRegistry
from glassformer.server.model_runner import BusyError, ModelRunner
from tests.glassformer.waiting import WAIT, until
from transformer.errors import QueryError


def busy(n):
    return BusyError("{n} are under way.", n=n)


def jobs(**options):
    return JobRegistry(busy, **{"most": 8, "at_once": 1, **options})


@pytest.fixture
def gate():
    opened = threading.Event()
    yield opened
    opened.set()


def behind(gate, name="done"):
    """Work that pauses until it is let through."""

    def work(job):
        while not gate.wait(0.001):
            job.pause()
        return name

    return work


def test_they_run_in_the_order_of_asking_and_say_how_many_come_before(gate):
    some, ran = jobs(), []
    work = behind(gate)
    held = weakref.ref(work)
    some.ask("first", work)
    del work
    for name in "abc":
        some.ask(name, lambda job, name=name: ran.append(name))
    until(lambda: some.look("first").state == "running")
    assert [some.before(name) for name in ("first", *"abc")] == [1, 1, 2, 3]
    some.withdraw("b")
    assert (some.before("c"), some.n_under_way()) == (2, 3)
    gate.set()
    assert some.look("c", patience=WAIT).state == "done"
    assert ran == ["a", "c"], "one that nobody wanted any more has not begun"
    assert some.look("b") is None
    gc.collect()
    assert held() is None, "what it worked with is let go of"


@pytest.mark.parametrize("kept", [True, False])
def test_one_that_was_stopped_can_be_found_where_it_is_kept_and_asked_for_again(gate, kept):
    some = jobs(keeps_stopped=kept, at_once=2)

    def slow(job):
        job.tell("half")
        job.stopped.wait(WAIT)
        gate.wait(WAIT)  # its thread reaches a pause when the second one has begun
        job.pause()

    first = some.ask("key", slow)
    until(lambda: some.look("key").so_far == "half")
    some.withdraw("key")
    found = some.look("key")
    assert (found and (found.state, found.so_far)) == (("cancelled", "half") if kept else None)
    again = some.ask("key", behind(gate))
    assert again is not first
    until(lambda: again.seen.state == "running")
    gate.set()
    assert first.over.wait(WAIT)
    assert some.find("key") is again, "the end of the first one does not touch the second"
    assert some.look("key", patience=WAIT).state == "done"


def test_many_visitors_at_once_break_nothing():
    some, refused, began, seen = jobs(most=6, at_once=2, room=10), [], [], []

    def work(job):
        for _ in range(5):
            job.stopped.wait(0.001)
            job.pause()
        began.append(job)

    def visit(number):
        chance = random.Random(number)
        for _ in range(60):
            try:
                some.ask(chance.randrange(12), work, visitor=number)
            except BusyError as error:
                refused.append(error)
            some.look(chance.randrange(12), number, patience=chance.choice([0, 0.001]))
            some.withdraw(chance.randrange(12), number)
            seen.append((some.n_under_way(), len(some._kept)))

    visitors = [threading.Thread(target=visit, args=(number,)) for number in range(12)]
    for visitor in visitors:
        visitor.start()
    for visitor in visitors:
        visitor.join(WAIT)
    until(lambda: not some.n_under_way() and not some._threads)
    assert began
    assert refused
    assert max(under_way for under_way, _ in seen) == 6
    assert max(kept for _, kept in seen) <= 10
    assert not some._waiting
    large = jobs(room=10, size=lambda job: 0 if job.seen.is_under_way else 11)
    large.ask("key", lambda job: "done")
    until(lambda: not large.n_under_way() and large.look("key") is None)  # what is too large is not kept


def test_what_everybody_has_left_ends_at_its_next_pause(gate, monkeypatch):
    some = jobs()
    job = some.ask("key", behind(gate), visitor="a")
    until(lambda: some.look("key", "a").state == "running")
    monkeypatch.setattr(module, "AWAY_SECONDS", 0.0)
    assert job.over.wait(WAIT)
    assert job.seen.state == "cancelled"


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


@pytest.fixture
def runner():
    return ModelRunner()


@pytest.fixture
def studies():
    measurement_jobs.studies.clear()
    return measurement_jobs.studies()


def ask(studies, runner, work, *visitors, cost=1):
    for visitor in visitors:
        seen = studies.ask("key", partial(study, runner, work, cost), visitor=visitor).seen
    return seen


def test_a_measurement_is_done_once_for_all_who_ask_and_shorter_work_goes_first_between_two_parts(studies, runner):
    work, done = Work(held=True), []
    assert ask(studies, runner, work, "a", "b", cost=100).is_under_way
    until(lambda: studies.look("key", "a").so_far)
    assert (studies.look("key", "a").so_far.done, studies.look("key", "a").so_far.whole) == (0, 3)
    short = threading.Thread(
        target=lambda: runner.compute("short", lambda: done.append(list(work.did)), nbytes=lambda _: 0)
    )
    short.start()
    until(lambda: runner.n_waiting == 2)
    work.go.release()
    until(lambda: studies.look("key", "b").so_far.done == 1)
    work.go.release(2)
    short.join(WAIT)
    assert done == [[0]]
    seen = studies.look("key", "a", patience=WAIT)
    assert (seen.state, seen.result) == ("done", RESULT)
    assert ask(studies, runner, work, "c").result is RESULT
    assert work.begun == 1
    assert studies.look("other", "a") is None


def test_one_that_the_last_has_left_ends_within_its_part_and_an_error_is_said(studies, runner):
    work = Work(held=True)
    ask(studies, runner, work, "a")
    until(lambda: studies.look("key", "a").so_far)
    studies.withdraw("key", "a")
    work.go.release(3)
    assert work.closed.wait(WAIT)
    assert work.did == [0]
    for error, said in ((QueryError("no {what}.", what="such head"), "no such head."), (ZeroDivisionError(), "log.")):
        ask(studies, runner, Work(error=error), "a")
        seen = studies.look("key", "a", patience=WAIT)
        assert (seen.state, str(seen.problem).endswith(said)) == ("failed", True)
