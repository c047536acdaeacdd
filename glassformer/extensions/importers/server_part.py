"""What importers add to the server: a gate for uploads, and the models that were handed in."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager

from starlette.middleware import Middleware

from glassformer.extensions.importers import foreign_models, handed_in
from glassformer.extensions.importers.gate import Gate
from glassformer.server.parts import ServerPart


class _ImportersServer(ServerPart):
    def inner(self, base: str) -> Sequence[Middleware]:
        return [Middleware(Gate, base=base)]

    def start(self) -> None:
        foreign_models.begin()

    def running(self) -> AbstractAsyncContextManager[None]:
        return handed_in.kept()


SERVER = _ImportersServer()
