"""Glassformer, as `streamlit run app.py` starts it: what happens once, before any visitor.

The script that runs for every visitor is `main.py`. Here stands what has to be done once for the server: load torch
and the default checkpoint, so that nobody waits for them, and tell browsers not to let other sites frame the app.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import streamlit as st
from starlette.middleware import Middleware

from transformer.errors import GlassformerError
from ui.components.assets import ensure_static, link
from ui.components.serving import Scripts
from ui.runs import foreign_models, frames, handed_in, own_trainings
from ui.runs.loading import runner, warm_up
from ui.server import descriptors, logs, metrics, replicas, streamlit_private, switch
from ui.server.events import closed_in_time
from ui.server.gate import Gate
from ui.server.headers import MoreHeaders
from ui.server.health import Health, drain_seconds
from ui.server.registry import ROOMS
from ui.server.routes import routes
from ui.shared.entrance import Entrance
from ui.shared.first_sight import FirstSight

logs.begin()
descriptors.limit(raised=True)
streamlit_private.begin()
_HEALTH = Health(lambda: not ROOMS.away)
try:
    replicas.check()
    switch.device()
    _DRAIN = drain_seconds()
except GlassformerError as error:
    raise SystemExit(str(error)) from None  # the app does not start; the message says all


@asynccontextmanager
async def _lifespan(_: st.App) -> AsyncIterator[None]:
    logs.begin()
    await asyncio.to_thread(ensure_static)
    foreign_models.begin()
    await asyncio.to_thread(warm_up)
    _watch()
    with closed_in_time(), _HEALTH.drained(_DRAIN):
        async with handed_in.kept(), own_trainings.kept():
            yield


def _watch() -> None:
    """Have Prometheus told what it is to know, if it may ask."""
    meter = metrics.meter()
    if meter is not None:
        meter.watch("queue_length", "Requests in the queue for the model.", lambda: runner().n_waiting)
        meter.watch("rooms", "Rooms.", lambda: len(ROOMS))


def _origins() -> frozenset[str]:
    """What pages of the app are called, as the server was told."""
    return frozenset(one.strip() for one in st.get_option("server.corsAllowedOrigins"))


_BASE = st.get_option("server.baseUrlPath")
app = st.App(
    "main.py",
    lifespan=_lifespan,
    routes=[*routes(_BASE, origins=_origins), *frames.routes(_BASE), *_HEALTH.routes(_BASE), *metrics.routes(_BASE)],
    middleware=[
        Middleware(metrics.Counting),
        Middleware(descriptors.Enough),
        Middleware(MoreHeaders, link=link()),
        Middleware(Entrance, base=_BASE),
        Middleware(Gate, base=_BASE),
        Middleware(FirstSight, base=_BASE),
        Middleware(Scripts),
    ],
)
