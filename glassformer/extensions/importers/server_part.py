"""What importers add to the server: a gate for uploads, and the models that were handed in."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager

from starlette.middleware import Middleware

from ui.runs import foreign_models, handed_in
from ui.server.gate import Gate
from ui.server.parts import ServerPart


class ImportersServer(ServerPart):
    """See the module."""

    def inner(self, base: str) -> Sequence[Middleware]:
        """What bounds uploads."""
        return [Middleware(Gate, base=base)]

    def start(self) -> None:
        """Keep processes ready that look into files."""
        foreign_models.begin()

    def running(self) -> AbstractAsyncContextManager[None]:
        """Keep what is handed in."""
        return handed_in.kept()


SERVER = ImportersServer()
