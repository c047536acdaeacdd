"""Jobs: in the order of asking, so many at once, ended where they pause, bounded, and holding nothing when over."""

import gc
import random
import threading
import weakref

import pytest

from glassformer.server.jobs import JobRegistry
from glassformer.server.model_runner import BusyError
from tests.glassformer.waiting import WAIT, until


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
    some.ask("first", behind(gate))
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


def test_so_many_run_at_once(gate):
    some = jobs(at_once=3)
    for name in "abcde":
        some.ask(name, behind(gate))
    until(lambda: [some.look(name).state for name in "abcde"] == ["running"] * 3 + ["waiting"] * 2)
    gate.set()
    assert all(some.look(name, patience=WAIT).result == "done" for name in "abcde")


def test_one_that_was_stopped_can_be_found_where_it_is_kept_and_asked_for_again(gate):
    some = jobs(keeps_stopped=True)

    def work(job):
        job.tell("half")
        return behind(gate)(job)

    first = some.ask("key", work)
    until(lambda: some.look("key").so_far == "half")
    some.withdraw("key")
    assert (some.look("key").state, some.look("key").so_far) == ("cancelled", "half")
    again = some.ask("key", work)
    assert again is not first
    gate.set()
    assert some.look("key", patience=WAIT).state == "done"
    assert first.over.wait(WAIT)
    assert some.find("key") is again, "the end of the first one does not touch the second"


def test_what_it_worked_with_is_let_go_of_at_the_end():
    class Model:
        """Stands for a model."""

        def work(self, job):
            return "done"

    some, model = jobs(), Model()
    held = weakref.ref(model)
    some.ask("key", model.work)
    del model
    assert some.look("key", patience=WAIT).state == "done"
    gc.collect()
    assert held() is None


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
