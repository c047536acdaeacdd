"""What the classroom adds to the server: the routes of rooms, and their begin and end."""

from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager

from starlette.routing import BaseRoute

from ui.server.events import closed_in_time
from ui.server.parts import ServerPart
from ui.server.routes import routes


class ClassroomServer(ServerPart):
    """See the module."""

    def routes(self, base: str, origins: Callable[[], Collection[str]]) -> Sequence[BaseRoute]:
        """What students' browsers ask a room for."""
        return routes(base, origins=origins)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Have rooms while the server runs."""
        with closed_in_time():
            yield


SERVER = ClassroomServer()
