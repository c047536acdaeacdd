"""What importers do when the server starts."""

from glassformer.extensions.importers import foreign_models
from glassformer.server.parts import ServerPart


class _ImportersServer(ServerPart):
    def start(self) -> None:
        foreign_models.begin()


SERVER = _ImportersServer()
