"""Prometheus metrics: their route, and counts of requests and times of pages, queue and model.

    GLASSFORMER_METRICS=on      and      pip install "glassformer[hosting]"

Off by default, because anyone who reaches the server could read them. Labels have few values and no user data: a route
is one of eight, a page one of the menu's.

Source: prometheus.io/docs/practices/naming. Knows nothing of Streamlit.
"""

import os
import re
from collections.abc import Callable
from functools import cache
from typing import Any, Final

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from glassformer.server.parts import Quantity
from transformer.i18n import say

ENVIRONMENT: Final = "GLASSFORMER_METRICS"
PATH: Final = "metrics"
# Labels of paths; all others are pages.
_ROUTES: Final = re.compile(
    r"/(?:(?P<stream>_stcore/stream)|(?P<script>app/static)|(?P<streamlit>_stcore|static|media|component)"
    r"|(?P<events>class/[^/]+/events)|(?P<room>class)|(?P<frames>frames)|(?P<health>healthz|readyz|metrics))/"
)
PAGE: Final = "page"
_SECONDS: Final = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
_OFF: Final = say("Metrics are off on this server; {setting} turns them on.", setting=f"{ENVIRONMENT}=on")
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

    def text(self) -> bytes:
        """All of it, as Prometheus reads it."""
        from prometheus_client import generate_latest

        return generate_latest(self.registry)


def is_on() -> bool:
    """Whether the operator enabled metrics."""
    return os.environ.get(ENVIRONMENT) == "on"


@cache
def meter() -> Meter | None:
    """This process's; None if counting is off, or not installed."""
    try:
        return Meter() if is_on() else None
    except ImportError:
        return None


def routes(base: str = "") -> list[Route]:
    """The route; `base` is the path that the app is served under."""

    async def told(_: Request) -> Response:
        kept = meter()
        if kept is None:
            return PlainTextResponse(str(_NOT_INSTALLED if is_on() else _OFF), status_code=404)
        text = await run_in_threadpool(kept.text)
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    return [Route(f"/{base.strip('/')}/{PATH}".replace("//", "/"), told)]


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
