"""A checkpoint is opened once for all who ask, seen on its way, and let go when there is no room."""

import threading
from types import SimpleNamespace

import pytest

from glassformer.runs.loading import CheckpointCache
from glassformer.server import render_lock
from transformer.checkpoint import free_memory
from transformer.errors import CheckpointError


def opened(shelf, which, n_bytes=0):
    checkpoint = SimpleNamespace(name=which)
    assert shelf.open(which, lambda progress: checkpoint, n_bytes=n_bytes).result() is checkpoint
    while shelf.find(which) is None:  # it is put there right after whoever waits has it
        pass
    return checkpoint


def test_two_who_ask_at_once_see_one_opening_on_its_way():
    shelf, half, go_on, calls = CheckpointCache(), threading.Event(), threading.Event(), []

    def work(progress):
        calls.append(1)
        progress(30, 60)
        half.set()
        go_on.wait(10)
        return SimpleNamespace()

    first = shelf.open("a", work, n_bytes=0)
    assert half.wait(10)
    second = shelf.open("a", work, n_bytes=0)
    assert second is first
    assert (first.done, first.whole, first.wait(0.01), shelf.find("a")) == (30, 60, False, None)
    go_on.set()
    assert first.result() is second.result()
    assert calls == [1]


def test_what_fails_is_said_to_whoever_waits_and_is_tried_again():
    shelf = CheckpointCache()

    def fail(progress):
        raise CheckpointError("{label}: is missing.", label="x")

    for _ in range(2):
        opening = shelf.open("a", fail, n_bytes=0)
        assert opening.wait(10)
        with pytest.raises(CheckpointError, match="x: is missing"):
            opening.result()
        while shelf._under_way:
            pass
    assert opened(shelf, "a").name == "a"


def test_the_one_that_was_used_longest_ago_is_let_go():
    shelf = CheckpointCache(most=2)
    for which in ("a", "b"):
        opened(shelf, which)
    shelf.find("a")
    opened(shelf, "c")
    assert [which for which in "abc" if shelf.find(which)] == ["a", "c"]


def test_others_are_let_go_as_far_as_room_is_needed(monkeypatch):
    shelf = CheckpointCache()
    for which in "abc":
        opened(shelf, which)
    monkeypatch.setattr(free_memory, "available", lambda: 100 - 30 * len(shelf._open))
    monkeypatch.setattr(render_lock, "collect", lambda: 0.0)  # of all that these tests hold
    opened(shelf, "d", n_bytes=60)
    assert [which for which in "abcd" if shelf.find(which)] == ["c", "d"]
    opened(shelf, "e", n_bytes=1000)  # whether it fits by itself is for loading to say
    assert [which for which in "abcde" if shelf.find(which)] == ["e"]


def test_of_more_than_one_only_so_many_bytes_are_kept():
    shelf = CheckpointCache(most_bytes=100)
    for which in "abc":
        opened(shelf, which, n_bytes=40)
    assert [which for which in "abc" if shelf.find(which)] == ["b", "c"]
    opened(shelf, "d", n_bytes=1000)
    assert [which for which in "abcd" if shelf.find(which)] == ["d"]
