"""Server hooks of a replica: health routes, Prometheus middleware, plain or JSON log, delayed end after SIGTERM.

After SIGTERM a replica first reports that it is not ready and keeps serving for some seconds, while the proxy sends
users to another replica; then it ends. SIGINT, or a second SIGTERM, ends it at once.

The log is plain lines, or one JSON object per line with `GLASSFORMER_LOG=json`: time, level, module, message. An error
adds its type and where it was raised, but not its message, which may quote user input. Of a longer message only the
first line is kept. Requests are not logged: their lines hold IP addresses, tokens and sentences.

Metrics are for Prometheus: counts of requests, and times of pages, queue and model. They are off by default, because
anyone who reaches the server could read them. Labels have few values and no user data: a route is one of eight, a page
one of the menu's.

    GLASSFORMER_METRICS=on      and      pip install "glassformer[hosting]"

Source: prometheus.io/docs/practices/naming.
"""

import contextlib
import json
import logging
import os
import re
import signal
import threading
import traceback
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final

from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from glassformer.extensions.rooms.registry import ROOMS
from glassformer.extensions.rooms.routes import at_signals
from glassformer.runs.loading import runner
from glassformer.server import descriptors, parts
from glassformer.server.parts import Quantity, ServerPart
from glassformer.server.replicas import STORE
from transformer.errors import DataError
from transformer.i18n import Sentence, say

# ------------------------------------------------------------------------------------------------ the log

LOG: Final = "GLASSFORMER_LOG"
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
    if os.environ.get(LOG) != "json":
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


# ------------------------------------------------------------------------------------------------ metrics

METRICS: Final = "GLASSFORMER_METRICS"
# Labels of paths; all others are pages.
_ROUTES: Final = re.compile(
    r"/(?:(?P<stream>_stcore/stream)|(?P<script>app/static)|(?P<streamlit>_stcore|static|media|component)"
    r"|(?P<events>class/[^/]+/events)|(?P<room>class)|(?P<frames>frames)|(?P<health>healthz|readyz|metrics))/"
)
PAGE: Final = "page"
_SECONDS: Final = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
_OFF: Final = say("Metrics are off on this server; {setting} turns them on.", setting=f"{METRICS}=on")
_NOT_INSTALLED: Final = say(
    "Metrics need the package prometheus-client: {command}", command='pip install "glassformer[hosting]"'
)


class Meter:
    """What is counted. Raises `ImportError` without prometheus-client."""

    def __init__(self) -> None:
        import prometheus_client as client

        self.registry = client.CollectorRegistry()
        for collector in (client.ProcessCollector, client.PlatformCollector, client.GCCollector):
            collector(registry=self.registry)
        kept: dict[str, Any] = {"registry": self.registry}
        timed = kept | {"buckets": _SECONDS}
        self.requests = client.Counter(
            "glassformer_requests", "HTTP requests, by route and status.", ("route", "status"), **kept
        )
        self.open = client.Gauge(
            "glassformer_open",
            "What is being answered, by route: a stream is an open page, events those of a room's member.",
            ("route",),
            **kept,
        )
        self.pages = client.Histogram(
            "glassformer_page_seconds", "Runs of a page, with their waiting for a turn.", ("page",), **timed
        )
        self.waiting = client.Histogram("glassformer_queue_seconds", "Waiting for the model, by request.", **timed)
        self.model = client.Histogram("glassformer_model_seconds", "Work of the model, by turn.", **timed)

    def took(self, quantity: Quantity, seconds: float, page: str) -> None:
        """Count a duration, measured by `glassformer.server.parts`."""
        timed = {"queue": self.waiting, "model": self.model}.get(quantity)
        (self.pages.labels(page) if timed is None else timed).observe(seconds)

    def watch(self, name: str, told: str, value: Callable[[], float]) -> None:
        """Register a value that is computed when Prometheus asks; `told` is its help line."""
        from prometheus_client import Gauge

        Gauge(f"glassformer_{name}", told, registry=self.registry).set_function(value)


def is_on() -> bool:
    """Whether the operator enabled metrics."""
    return os.environ.get(METRICS) == "on"


@cache
def meter() -> Meter | None:
    """This process's; None if counting is off, or not installed."""
    try:
        return Meter() if is_on() else None
    except ImportError:
        return None


async def _counted(_: Request) -> Response:
    """What Prometheus reads."""
    kept = meter()
    if kept is None:
        return _text(str(_NOT_INSTALLED if is_on() else _OFF), 404)
    from prometheus_client import generate_latest

    text = await run_in_threadpool(generate_latest, kept.registry)
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")


class MetricsMiddleware:
    """The middleware that counts requests."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        kept = meter()
        if kept is None or scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        found = _ROUTES.search(f"{scope['path']}/")
        route = (found and found.lastgroup) or PAGE

        async def counted(message: Message) -> None:
            if message["type"] in ("http.response.start", "websocket.accept"):
                kept.requests.labels(route, str(message.get("status", 101))).inc()
            await send(message)

        with kept.open.labels(route).track_inprogress():
            await self._app(scope, receive, counted)


# ------------------------------------------------------------------------------------------------ the server part

DRAIN: Final = "GLASSFORMER_DRAIN_SECONDS"
REPLICAS_DRAIN_SECONDS: Final = 5.0  # unless it is said, where there are replicas
MOST_DRAIN_SECONDS: Final = 300.0
HEALTH, READY, COUNTED = "healthz", "readyz", "metrics"
_STOPPING: Final = say("This replica is stopping.")
_NO_STORE: Final = say("The store of the rooms cannot be reached.")


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


def _text(said: str, status: int = 200) -> Response:
    return PlainTextResponse(said, status_code=status, headers={"Cache-Control": "no-store"})


class ReplicasServer(ServerPart):
    """Health checks, metrics and the delayed end of this process."""

    def __init__(self) -> None:
        self.stopping, self._drain = False, 0.0

    def check(self) -> None:
        """Begin to log, and read how long SIGTERM waits."""
        begin()
        self._drain = drain_seconds()

    def problem(self) -> Sentence | None:
        """Why no users may be routed here; None if they may."""
        if self.stopping:
            return _STOPPING
        return _NO_STORE if ROOMS.store.away else descriptors.problem()

    def routes(self, base: str, origins: Callable[[], Collection[str]] = tuple) -> Sequence[BaseRoute]:
        """The three routes."""

        async def health(_: Request) -> Response:
            return _text("ok")

        async def ready(_: Request) -> Response:
            problem = self.problem()
            return _text("ready") if problem is None else _text(str(problem), 503)

        start = f"/{base.strip('/')}/".replace("//", "/")
        return [Route(start + name, answer) for name, answer in ((HEALTH, health), (READY, ready), (COUNTED, _counted))]

    def outer(self, base: str) -> Sequence[Middleware]:
        """What counts requests."""
        return [Middleware(MetricsMiddleware)]

    def start(self) -> None:
        """Log as the server has configured meanwhile, and begin to count."""
        begin()
        kept = meter()
        if kept is not None:
            parts.LISTENERS.append(kept.took)
            kept.watch("queue_length", "Requests in the queue for the model.", lambda: runner().n_waiting)
            kept.watch("rooms", "Rooms.", lambda: len(ROOMS))

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Delay SIGTERM until the proxy has noticed."""
        with self.drained(self._drain):
            yield

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


SERVER = ReplicasServer()
