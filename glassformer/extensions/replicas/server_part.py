"""What replicas add to the server: health checks, metrics, the log, and an end that waits for the proxy."""

from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager

from starlette.middleware import Middleware
from starlette.routing import BaseRoute

from glassformer.extensions.replicas import logs, metrics
from glassformer.extensions.replicas.health import Health, drain_seconds
from glassformer.extensions.rooms.server.registry import ROOMS
from glassformer.runs.loading import runner
from glassformer.server import measures
from glassformer.server.parts import ServerPart


class _ReplicasServer(ServerPart):
    def __init__(self) -> None:
        self._health, self._drain = Health(lambda: not ROOMS.away), 0.0

    def check(self) -> None:
        logs.begin()
        self._drain = drain_seconds()

    def routes(self, base: str, origins: Callable[[], Collection[str]]) -> Sequence[BaseRoute]:
        return [*self._health.routes(base), *metrics.routes(base)]

    def outer(self, base: str) -> Sequence[Middleware]:
        return [Middleware(metrics.Counting)]

    def start(self) -> None:
        logs.begin()
        meter = metrics.meter()
        if meter is not None:
            measures.LISTENERS.append(meter.took)
            meter.watch("queue_length", "Requests in the queue for the model.", lambda: runner().n_waiting)
            meter.watch("rooms", "Rooms.", lambda: len(ROOMS))

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Have SIGTERM wait until the proxy has heard of it."""
        with self._health.drained(self._drain):
            yield


SERVER = _ReplicasServer()
