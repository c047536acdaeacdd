"""Server entry point (`streamlit run app.py`): one-time setup, routes and middleware.

`main.py` runs for every user. This script runs once per server: it loads torch and the default checkpoint in advance,
and forbids other sites to frame the app, unless its operator names them.
"""

# ruff: noqa: E402  # gc is off first: objects created during startup are long-lived and need no collection
import gc

gc.disable()  # until `render_lock.begin`

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from importlib import import_module

import streamlit as st
from starlette.middleware import Middleware

from glassformer.components.custom_component import StaticScriptsMiddleware, link
from glassformer.runs import step_frames
from glassformer.runs.loading import warm_up
from glassformer.server import descriptors, render_lock, replicas, server_options, streamlit_private
from glassformer.server.descriptors import SecurityHeadersMiddleware
from glassformer.server.parts import parts
from glassformer.shared.loading_placeholder import LoadingPlaceholderMiddleware, redirects
from transformer.errors import GlassformerError
from transformer.extensions import provided

try:
    for part in parts():
        part.check()
    descriptors.limit(raised=True)
    streamlit_private.begin()
    replicas.check()
    server_options.device()
    framed_by = server_options.frame_ancestors()
    streamlit_private.allow_hosts(server_options.allowed_hosts())
except GlassformerError as error:
    raise SystemExit(str(error)) from None  # the app does not start; the message says all


@asynccontextmanager
async def _lifespan(_: st.App) -> AsyncIterator[None]:
    for part in parts():
        part.start()
    await asyncio.gather(asyncio.to_thread(warm_up), asyncio.to_thread(_import_first_page))
    async with AsyncExitStack() as running:
        for part in parts():
            await running.enter_async_context(part.running())
        render_lock.begin()
        yield


def _import_first_page() -> None:
    """Import what the first visitor's page needs, while the checkpoint is opened."""
    for module in ("frame.run_page", "frame.source_box", "glossary.glossary_page", "step.step_panels"):
        import_module(f"glassformer.{module}")
    for kind in ("pages", "blocks", "sources"):
        provided(kind)


def _origins() -> frozenset[str]:
    """What pages of the app are called, as the server was told."""
    return frozenset(one.strip() for one in st.get_option("server.corsAllowedOrigins"))


_BASE = st.get_option("server.baseUrlPath")
_ROUTES = [route for part in parts() for route in part.routes(_BASE, _origins)] + step_frames.routes(_BASE)
app = st.App(
    "main.py",
    lifespan=_lifespan,
    routes=[*_ROUTES, *redirects(_BASE)],
    middleware=[
        *(one for part in parts() for one in part.outer(_BASE)),
        Middleware(descriptors.DescriptorLimitMiddleware, routes=_ROUTES),
        Middleware(SecurityHeadersMiddleware, link=link(), frame_ancestors=framed_by),
        *(one for part in parts() for one in part.inner(_BASE)),
        Middleware(LoadingPlaceholderMiddleware, base=_BASE),
        Middleware(StaticScriptsMiddleware),
    ],
)
