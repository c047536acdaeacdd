"""Server parts of extensions: checks, routes, middleware, lifespans; what is done at signals; timings for listeners.

An extension's `server` names a `ServerPart`; `app.py` asks each, in the order of the list of extensions.
"""

import signal
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from functools import partial
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


@contextmanager
def at_signals(numbers: Sequence[int], act: Callable[[Callable[[], object]], object]) -> Iterator[None]:
    """Have `act` called at a signal, with what hands it on to its handler of before, while the context lasts.

    A signal without such a handler ends the process as ever. Only the main thread may listen; in others this is nothing.
    """
    listens = threading.current_thread() is threading.main_thread()
    before = {number: signal.getsignal(number) for number in numbers if listens}
    before = {number: handler for number, handler in before.items() if callable(handler)}
    for number, handler in before.items():
        signal.signal(number, lambda *got, handler=handler: act(partial(handler, *got)))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


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
