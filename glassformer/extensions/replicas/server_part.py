"""What replicas add to the server: health checks, metrics, the log, and an end that waits for the proxy.

A replica that is told to end (SIGTERM) first says that it is not ready, and serves on for some seconds, in which the
proxy sends visitors to another; only then does it end. SIGINT, and a second SIGTERM, end it at once.

The log is lines to read, or a JSON object a line with `GLASSFORMER_LOG=json`. An object says when, how grave, which
part, and what; of an error also its type and where it was raised, but not what it says: that may quote what a visitor
typed. Of a longer message only the first line, and no requests, whose lines hold addresses of machines, tokens and
sentences.
"""

import contextlib
import json
import logging
import os
import signal
import threading
import traceback
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from types import FrameType
from typing import Any, Final

from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from glassformer.extensions.replicas import metrics
from glassformer.extensions.rooms.server.registry import ROOMS
from glassformer.runs.loading import runner
from glassformer.server import descriptors, measures
from glassformer.server.parts import ServerPart
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


ENVIRONMENT: Final = "GLASSFORMER_LOG"
REQUESTS: Final = ("uvicorn.error", "uvicorn.access")  # what is no warning there is a request, or that it starts
_LINES: Final = "%(asctime)s %(name)s: %(message)s"


class AsJson(logging.Formatter):
    """One event, one line."""

    def format(self, record: logging.LogRecord) -> str:
        """The object as text, without a line break."""
        when = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        told: dict[str, Any] = {"time": when, "level": record.levelname.lower(), "logger": record.name}
        kind, _, where = record.exc_info or (None, None, None)
        told["message"] = (record.getMessage() if kind is None else str(record.msg)).partition("\n")[0]
        if kind is not None:
            frames = traceback.extract_tb(where)
            told |= {"error": kind.__name__, "where": [f"{one.filename}:{one.lineno} {one.name}" for one in frames]}
        return json.dumps(told, ensure_ascii=False)


def begin() -> None:
    """Have this process log; called before the server configures its log and after, which keeps the filters alone."""
    logging.getLogger("glassformer").setLevel(logging.INFO)
    logging.basicConfig(format=_LINES)
    if os.environ.get(ENVIRONMENT) != "json":
        return
    # Whatever formatter a handler has or gets: Streamlit gives its and uvicorn's loggers new ones at any time.
    logging.StreamHandler.format = lambda _, record: AsJson().format(record)  # type: ignore[method-assign,assignment]
    logging.captureWarnings(True)
    threading.excepthook = _thread_failed
    for name in REQUESTS:
        logging.getLogger(name).addFilter(_is_grave)


def _thread_failed(failed: threading.ExceptHookArgs) -> None:
    if failed.exc_type is not SystemExit and failed.exc_value is not None:
        raised = (failed.exc_type, failed.exc_value, failed.exc_traceback)
        logging.getLogger("glassformer").error("A thread ended by an error", exc_info=raised)


def _is_grave(record: logging.LogRecord) -> bool:
    return record.levelno >= logging.WARNING


class _ReplicasServer(ServerPart):
    def __init__(self) -> None:
        self._health, self._drain = Health(lambda: not ROOMS.away), 0.0

    def check(self) -> None:
        begin()
        self._drain = drain_seconds()

    def routes(self, base: str, origins: Callable[[], Collection[str]]) -> Sequence[BaseRoute]:
        return [*self._health.routes(base), *metrics.routes(base)]

    def outer(self, base: str) -> Sequence[Middleware]:
        return [Middleware(metrics.MetricsMiddleware)]

    def start(self) -> None:
        begin()
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


SERVER = _ReplicasServer()
