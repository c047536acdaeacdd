"""Server part of replicas: health checks, metrics, the log as lines or JSON, and a delayed end after SIGTERM.

After SIGTERM a replica first reports that it is not ready and keeps serving for some seconds, while the proxy sends
users to another replica; then it ends. SIGINT, or a second SIGTERM, ends it at once.

The log is plain lines, or one JSON object per line with `GLASSFORMER_LOG=json`: time, level, module, message. An error
adds its type and where it was raised, but not its message, which may quote user input. Of a longer message only the
first line is kept. Requests are not logged: their lines hold IP addresses, tokens and sentences.
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
from typing import Any, Final

from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from glassformer.extensions.replicas import metrics
from glassformer.extensions.rooms.registry import ROOMS
from glassformer.extensions.rooms.routes import at_signals
from glassformer.runs.loading import runner
from glassformer.server import descriptors, parts
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
    """The status of this process; `store` says whether the room store is reachable."""

    def __init__(self, store: Callable[[], bool] = lambda: True) -> None:
        self.stopping, self._store = False, store

    def problem(self) -> Sentence | None:
        """Why no users may be routed here; None if they may."""
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
        """Delay the current SIGTERM handler by so many seconds, while the context lasts."""

        def end(hand_on: Callable[[], object]) -> None:
            if self.stopping or not seconds:
                hand_on()
                return
            self.stopping = True
            timer = threading.Timer(seconds, hand_on)
            timer.daemon = True
            timer.start()

        with at_signals((signal.SIGTERM,), end):
            yield


def drain_seconds() -> float:
    """How long SIGTERM waits, as the operator configured. Raises `DataError`: the value is not a valid time."""
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
REQUESTS: Final = ("uvicorn.error", "uvicorn.access")  # below warnings: a request, or the startup
_LINES: Final = "%(asctime)s %(name)s: %(message)s"


class AsJson(logging.Formatter):
    """One event, one line."""

    def format(self, record: logging.LogRecord) -> str:
        """The object as one line."""
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
        self._health, self._drain = Health(lambda: not ROOMS.store.away), 0.0

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
            parts.LISTENERS.append(meter.took)
            meter.watch("queue_length", "Requests in the queue for the model.", lambda: runner().n_waiting)
            meter.watch("rooms", "Rooms.", lambda: len(ROOMS))

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Delay SIGTERM until the proxy has noticed."""
        with self._health.drained(self._drain):
            yield


SERVER = _ReplicasServer()
