"""Turns to draw: one at a time, in order, not beyond a lease, none while waiting; between them garbage goes."""

import subprocess
import sys
import threading
import time

import pytest

from glassformer.server.render_lock import LONGEST_SECONDS, REST_SECONDS, SHARE, FairSemaphore, is_time
from tests.glassformer.waiting import until

LONG = 60.0  # a lease that no test outlasts


def begun(work):
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def asked(turns):
    """A thread that wants a turn, and what is set once it has had one."""
    done, n = threading.Event(), len(turns._waiting)

    def work():
        with turns.one():
            done.set()

    thread = begun(work)
    until(lambda: done.is_set() or len(turns._waiting) > n)
    return thread, done


def test_one_after_the_other_in_the_order_of_coming():
    turns, order, inside, threads = FairSemaphore(lease=LONG), [], [], []

    def work(name):
        with turns.one():
            inside.append(name)
            time.sleep(0.002)
            order.append(inside.pop())
            assert not inside

    with turns.one():
        for name in range(20):
            threads.append(begun(lambda name=name: work(name)))
            until(lambda: len(turns._waiting) == len(threads))
        assert order == []
    for thread in threads:
        thread.join(10)
    assert order == list(range(20))


def test_a_turn_within_a_turn_is_the_same_an_error_ends_it_and_who_takes_long_holds_up_nobody():
    turns = FairSemaphore(lease=LONG)
    with pytest.raises(ValueError, match="wrong"), turns.one(), turns.one():
        raise ValueError("wrong")
    assert asked(turns)[1].wait(10)
    turns = FairSemaphore(lease=0.05)
    with turns.one():
        assert asked(turns)[1].wait(10)  # though the turn of this thread is not over
    with turns.one():
        pass


def test_whoever_waits_for_the_model_steps_aside_and_has_a_turn_again_afterwards():
    turns = FairSemaphore(lease=LONG)
    with turns.one():
        _, done = asked(turns)
        assert not done.wait(0.05)
        with turns.aside():
            assert done.wait(10)
        again, _ = asked(turns)
        assert again.is_alive()
    again.join(10)
    assert not again.is_alive()
    assert not turns._since


def test_a_fragment_takes_a_turn(monkeypatch):
    from streamlit.testing.v1 import AppTest

    from glassformer.shared import i18n

    turns = FairSemaphore(lease=LONG)
    monkeypatch.setattr(i18n, "RENDER_LOCK", turns)

    def page():
        from glassformer.shared import i18n
        from glassformer.shared.i18n import st

        @st.fragment
        def part():
            st.text(f"turns: {len(i18n.RENDER_LOCK._since)}")

        part()

    assert [text.value for text in AppTest.from_function(page).run().text] == ["turns: 1"]
    assert not turns._since


def test_a_rest_begins_when_the_last_turn_ends():
    turns = FairSemaphore(lease=LONG)
    with turns.one():
        assert turns.rest_seconds() == 0
        with turns.aside():
            time.sleep(0.02)
            assert turns.rest_seconds() == 0
        with turns.one():
            pass
        assert turns.rest_seconds() == 0
    before = time.monotonic()
    time.sleep(0.02)
    assert 0.02 <= turns.rest_seconds() <= time.monotonic() - before + 1


@pytest.mark.parametrize(
    ("since", "rested", "cost", "expected"),
    [
        (10.0, REST_SECONDS, 0.1, True),
        (10.0, 10.0, 0.1, False),
        (10.0, REST_SECONDS, 10 * SHARE + 0.1, False),
        (LONGEST_SECONDS - 1, 0.0, 0.1, False),
        (LONGEST_SECONDS, 0.0, 0.1, True),
    ],
    ids=["a rest", "nothing was drawn", "too soon", "somebody waits", "somebody always waits"],
)
def test_a_look_for_garbage_waits_for_a_rest_but_not_for_ever(since, rested, cost, expected):
    assert is_time(since=since, rested=rested, cost=cost) is expected


# In a process of its own, as a look goes through all of it, and the app's thread never ends.
PROGRAM = """
import gc, time, weakref
from glassformer.server import render_lock
class Circle: pass
def circle():
    one = Circle(); one.own = one
    return one, weakref.ref(one)
kept = gc.get_freeze_count()
render_lock.collect()
assert gc.get_freeze_count() == kept  # it has not begun
one, gone = circle()
gc.freeze()
render_lock.collect()
assert gc.get_freeze_count() > 0
del one
gc.collect()
assert gone() is not None  # Python's own looks leave it out
render_lock.collect()
assert gone() is None
one, gone = circle()
render_lock.FIRST_COST = 0.001  # so that it looks at once
render_lock.begin()
render_lock.begin()
with render_lock.RENDER_LOCK.one():
    render_lock.collect()
    del one
end = time.monotonic() + 60
while gone() is not None and time.monotonic() < end:
    time.sleep(0.05)
assert gone() is None
"""


def test_what_holds_itself_in_a_circle_is_found_also_what_was_alive_at_a_look_and_by_the_app_itself():
    subprocess.run([sys.executable, "-c", PROGRAM], check=True, timeout=120)
