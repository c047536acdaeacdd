"""What training adds to the server: the trainings that visitors began."""

from contextlib import AbstractAsyncContextManager

from ui.runs import own_trainings
from ui.server.parts import ServerPart


class TrainingServer(ServerPart):
    """See the module."""

    def running(self) -> AbstractAsyncContextManager[None]:
        """Keep the trainings."""
        return own_trainings.kept()


SERVER = TrainingServer()
