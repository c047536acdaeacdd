"""Turns: one at a time, in the order of coming, not for longer than a lease, and none while waiting for the model."""

import threading
import time

import pytest

from glassformer.server.render_lock import FairSemaphore

LONG = 60.0  # a lease that no test outlasts


def begun(work):
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def in_line(turns, n):
    """Wait until so many wait for a turn."""
    end = time.monotonic() + 10
    while len(turns._waiting) < n:
        assert time.monotonic() < end
        time.sleep(0.001)


def test_one_after_the_other_in_the_order_of_coming():
    turns, order, inside = FairSemaphore(lease=LONG), [], []

    def work(name):
        with turns.one():
            inside.append(name)
            assert inside == [name]
            order.append(name)
            time.sleep(0.002)
            inside.remove(name)

    threads = []
    with turns.one():
        for name in range(20):
            threads.append(begun(lambda name=name: work(name)))
            in_line(turns, name + 1)
        assert order == []
    for thread in threads:
        thread.join(10)
    assert order == list(range(20))


def test_as_many_at_once_as_there_are_turns():
    turns, both = FairSemaphore(at_once=2, lease=LONG), threading.Barrier(2)

    def work():
        with turns.one():
            both.wait(10)

    threads = [begun(work), begun(work)]
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()
    assert not both.broken


def test_a_turn_within_a_turn_is_the_same_and_an_error_ends_it():
    turns = FairSemaphore(lease=LONG)
    with pytest.raises(ValueError, match="wrong"), turns.one(), turns.one():
        raise ValueError("wrong")
    done = threading.Event()

    def work():
        with turns.one():
            done.set()

    begun(work)
    assert done.wait(10)


def test_whoever_takes_long_holds_up_nobody():
    turns, done = FairSemaphore(lease=0.05), threading.Event()

    def work():
        with turns.one():
            done.set()

    with turns.one():
        begun(work)
        assert done.wait(10)  # though the turn of this thread is not over
    with turns.one():
        pass


def test_whoever_waits_for_the_model_steps_aside_and_has_a_turn_again_afterwards():
    turns, done = FairSemaphore(lease=LONG), threading.Event()

    def work():
        with turns.one():
            done.set()

    with turns.one():
        begun(work)
        assert not done.wait(0.05)
        with turns.aside():
            assert done.wait(10)
        again = begun(work)
        in_line(turns, 1)
        assert again.is_alive()
    again.join(10)
    assert not again.is_alive()


def test_without_a_turn_there_is_nothing_to_step_aside_from():
    turns = FairSemaphore(lease=LONG)
    with turns.aside(), turns.one():
        pass
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
