"""What replicas add to the server: health checks, metrics, the log, and an end that waits for the proxy."""

from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager

from starlette.middleware import Middleware
from starlette.routing import BaseRoute

from ui.runs.loading import runner
from ui.server import logs, measures, metrics
from ui.server.health import Health, drain_seconds
from ui.server.parts import ServerPart
from ui.server.registry import ROOMS


class ReplicasServer(ServerPart):
    """See the module."""

    def __init__(self) -> None:
        self._health, self._drain = Health(lambda: not ROOMS.away), 0.0

    def check(self) -> None:
        """Begin the log; the seconds to wait in the end must be some."""
        logs.begin()
        self._drain = drain_seconds()

    def routes(self, base: str, origins: Callable[[], Collection[str]]) -> Sequence[BaseRoute]:
        """Health, readiness and metrics."""
        return [*self._health.routes(base), *metrics.routes(base)]

    def outer(self, base: str) -> Sequence[Middleware]:
        """What counts requests, those that are refused, too."""
        return [Middleware(metrics.Counting)]

    def start(self) -> None:
        """Begin the log again, which the server has configured, and have Prometheus told what it is to know."""
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


SERVER = ReplicasServer()
