"""Fixtures: stores of rooms, in memory and in a real Redis; and what tests of replicas in one process share."""

import contextlib

import pytest

from glassformer.extensions.replicas.store_shared import Shared
from glassformer.extensions.rooms.registry import Registry
from glassformer.extensions.rooms.room import Question, Room, RoomRefusedError
from tests.extensions.replicas.redis_server import RedisServer
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


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory):
    """A real server, which keeps nothing on disk; who kills it starts it again."""
    with RedisServer(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture
def own_server(tmp_path):
    """A server that a test may end."""
    with RedisServer(tmp_path) as server:
        yield server


@pytest.fixture
def two(redis_server):
    """Two replicas whose store has nothing else in it."""
    redis_server.empty()
    with replicas(redis_server.url) as found:
        yield found


@pytest.fixture(params=["in memory", "in Redis"])
def each_store(request, monkeypatch):
    """What a module calls `Registry` has its rooms in memory, and then in a store with nothing else in it."""
    if request.param == "in memory":
        return
    server = request.getfixturevalue("redis_server")

    def made(clock=None):
        server.empty()
        return Registry(store=Shared(server.url, clock=clock))

    monkeypatch.setattr(request.module, "Registry", made)
