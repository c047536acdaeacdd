"""Replicas in one process that share a real store, and what tests of them have in common."""

import contextlib

import pytest

from glassformer.extensions.replicas.store_shared import Shared
from glassformer.extensions.rooms.registry import Registry
from glassformer.extensions.rooms.room import Question, Room, RoomRefusedError
from tests.glassformer.waiting import until
from transformer.i18n import say

ASKED = Question("masks.1", say("How many of {n}?", n=3), ("one", "two", "three"))


@contextlib.contextmanager
def replicas(url, n=2, **named):
    """So many replicas in this process, with their threads."""
    found = [Registry(store=Shared(url, **named)) for _ in range(n)]
    for one in found:
        one.store.begin()
    try:
        yield found
    finally:
        for one in found:
            one.store.close()


def opened(here, there):
    """A room that both know, in which a question is asked."""
    taught = here.open()
    here.do(taught, Room.ask, ASKED)
    until(lambda: (known := there.public(taught.code)) and known.taken)
    return taught


def refused(why, call, *args, **named):
    with pytest.raises(RoomRefusedError) as caught:
        call(*args, **named)
    assert caught.value.why == why


def agree(one, other, code):
    until(lambda: one.public(code) == other.public(code) and one.counted(code) == other.counted(code))
