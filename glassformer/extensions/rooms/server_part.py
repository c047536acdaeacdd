"""What rooms add to the server: their routes, their begin and their end."""

from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager

from starlette.routing import BaseRoute

from glassformer.extensions.rooms.server.events import closed_in_time
from glassformer.extensions.rooms.server.routes import routes
from glassformer.server.parts import ServerPart


class _RoomsServer(ServerPart):
    def routes(self, base: str, origins: Callable[[], Collection[str]]) -> Sequence[BaseRoute]:
        return routes(base, origins=origins)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Have rooms while the server runs."""
        with closed_in_time():
            yield


SERVER = _RoomsServer()
