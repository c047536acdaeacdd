"""Server parts of extensions: checks, routes, middleware, lifespans; and timings told to their listeners.

An extension's `server` names a `ServerPart`; `app.py` asks each, in the order of the list of extensions.
"""

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from typing import Final, Literal

from starlette.middleware import Middleware
from starlette.routing import BaseRoute

from transformer.extensions import provided


class ServerPart:
    """What one extension adds; by itself nothing. `base` is the path that the app is served under."""

    def check(self) -> None:
        """Called before all else. Raises `GlassformerError`: a setting is wrong, and the server does not start."""

    def routes(self, base: str, origins: Callable[[], Collection[str]]) -> Sequence[BaseRoute]:
        """Routes; `origins` are what pages of ours are called beside the host that is asked for."""
        return ()

    def outer(self, base: str) -> Sequence[Middleware]:
        """Middlewares around all others: what they refuse is seen, too."""
        return ()

    def inner(self, base: str) -> Sequence[Middleware]:
        """Middlewares for what gets past those of the app."""
        return ()

    def start(self) -> None:
        """Called when the server starts, before the default checkpoint is opened."""

    def running(self) -> AbstractAsyncContextManager[None]:
        """Entered before the first visitor, with the default checkpoint open, and left when the server ends."""
        return nullcontext()


def parts() -> tuple[ServerPart, ...]:
    """Those of all extensions."""
    return provided("server")


# ------------------------------------------------------------------------------------------------ measurements

Quantity = Literal["page", "queue", "model"]  # a run of a page, a request's wait for the model, a turn of the model

LISTENERS: Final[list[Callable[[Quantity, float, str], None]]] = []


def took(quantity: Quantity, seconds: float, page: str = "") -> None:
    """Tell how long something took."""
    for listener in LISTENERS:
        listener(quantity, seconds, page)


@contextmanager
def drawn(page: str) -> Iterator[None]:
    """Tell how long a run of a page takes."""
    began = time.monotonic()
    try:
        yield
    finally:
        took("page", time.monotonic() - began, page)
