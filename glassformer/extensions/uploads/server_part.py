"""What uploads add to the server: a gate in front of them, and the folder that they are kept in."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager

from starlette.middleware import Middleware

from glassformer.extensions.uploads import handed_in
from glassformer.extensions.uploads.gate import Gate
from glassformer.server.parts import ServerPart


class _UploadsServer(ServerPart):
    def inner(self, base: str) -> Sequence[Middleware]:
        return [Middleware(Gate, base=base)]

    def running(self) -> AbstractAsyncContextManager[None]:
        return handed_in.kept()


SERVER = _UploadsServer()
