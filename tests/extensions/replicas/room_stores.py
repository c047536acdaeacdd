"""Fixtures: stores of rooms, in memory and in a real Redis."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from glassformer.extensions.replicas.store_shared import Shared
from glassformer.extensions.rooms.registry import Registry
from tests.extensions.replicas.redis_server import RedisServer
from tests.extensions.replicas.sharing import replicas


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """A real server, which keeps nothing on disk; who kills it starts it again."""
    with RedisServer(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[RedisServer]:
    """A server that a test may end."""
    with RedisServer(tmp_path) as server:
        yield server


@pytest.fixture
def two(redis_server: RedisServer) -> Iterator[list[Registry]]:
    """Two replicas whose store has nothing else in it."""
    redis_server.empty()
    with replicas(redis_server.url) as found:
        yield found


@pytest.fixture(params=["in memory", "in Redis"])
def each_store(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a module calls `Registry` has its rooms in memory, and then in a store with nothing else in it."""
    if request.param == "in memory":
        return
    server: RedisServer = request.getfixturevalue("redis_server")

    def made(clock: Callable[[], float] | None = None) -> Registry:
        server.empty()
        return Registry(store=Shared(server.url, clock=clock))

    monkeypatch.setattr(request.module, "Registry", made)
