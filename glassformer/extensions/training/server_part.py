"""What training adds to the server: the trainings that visitors began."""

from contextlib import AbstractAsyncContextManager

from glassformer.extensions.training import own_trainings
from glassformer.server.parts import ServerPart


class _TrainingServer(ServerPart):
    def running(self) -> AbstractAsyncContextManager[None]:
        return own_trainings.kept()


SERVER = _TrainingServer()
