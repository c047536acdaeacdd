"""Whether this process serves, and whether visitors may be sent to it: what a proxy asks each of several replicas.

A replica that is told to end (SIGTERM) first says that it is not ready, and serves on for some seconds, in which the
proxy sends visitors to another; only then does it end. SIGINT, and a second SIGTERM, end it at once.

Knows nothing of Streamlit.
"""

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from glassformer.server import descriptors
from glassformer.server.replicas import STORE
from transformer.errors import DataError
from transformer.i18n import Sentence, say

DRAIN: Final = "GLASSFORMER_DRAIN_SECONDS"
REPLICAS_DRAIN_SECONDS: Final = 5.0  # unless it is said, where there are replicas
MOST_DRAIN_SECONDS: Final = 300.0
HEALTH, READY = "healthz", "readyz"
_STOPPING: Final = say("This replica is stopping.")
_NO_STORE: Final = say("The store of the rooms cannot be reached.")


class Health:
    """How this process is; `store` tells whether the rooms' store can be reached."""

    def __init__(self, store: Callable[[], bool] = lambda: True) -> None:
        self.stopping, self._store = False, store

    def problem(self) -> Sentence | None:
        """Why no visitors may be sent here; None if they may."""
        if self.stopping:
            return _STOPPING
        return descriptors.problem() if self._store() else _NO_STORE

    def routes(self, base: str = "") -> list[Route]:
        """The two routes; `base` is the path that the app is served under."""

        async def health(_: Request) -> Response:
            return PlainTextResponse("ok", headers={"Cache-Control": "no-store"})

        async def ready(_: Request) -> Response:
            problem = self.problem()
            status, said = (200, "ready") if problem is None else (503, str(problem))
            return PlainTextResponse(said, status_code=status, headers={"Cache-Control": "no-store"})

        start = f"/{base.strip('/')}/".replace("//", "/")
        return [Route(f"{start}{HEALTH}", health), Route(f"{start}{READY}", ready)]

    @contextlib.contextmanager
    def drained(self, seconds: float) -> Iterator[None]:
        """Have SIGTERM wait so long while this lasts; what is called then is what would have been called at once."""
        passed_on = signal.getsignal(signal.SIGTERM)
        may_listen = threading.current_thread() is threading.main_thread()
        if not (seconds and may_listen and callable(passed_on)):
            yield
            return

        def end(number: int, frame: FrameType | None) -> None:
            if self.stopping:
                passed_on(number, frame)
                return
            self.stopping = True
            timer = threading.Timer(seconds, passed_on, (number, frame))
            timer.daemon = True
            timer.start()

        signal.signal(signal.SIGTERM, end)
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, passed_on)


def drain_seconds() -> float:
    """For how long SIGTERM waits, as whoever runs the server said. Raises `DataError`: that is no such time."""
    said = os.environ.get(DRAIN, "").strip()
    if not said:
        return REPLICAS_DRAIN_SECONDS if os.environ.get(STORE) else 0.0
    try:
        seconds = float(said)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= MOST_DRAIN_SECONDS:
        raise DataError(
            "{setting} is “{found}”; it must be a number of seconds from 0 to {most:.0f}.",
            setting=DRAIN,
            found=said[:40],
            most=MOST_DRAIN_SECONDS,
        )
    return seconds
