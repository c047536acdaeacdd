"""How many connections and files this process may have open at a time, and what happens before it has too many.

At the start the soft limit is raised to the hard one. Streamlit gives each session, also if it is gone and kept for a
while, an event loop with three descriptors that our pages never run: here it opens them when it runs. So connections
are what counts; while the last ones are left for visitors who are here already, new pages are refused, and say why.

Source: getrlimit(2); streamlit 1.67, `runtime/app_session.py`.

Knows nothing of Streamlit.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import math
import os
import selectors
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, Final

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from ui.server.metrics import PAGE, route_of
from words import Sentence, say

MOST: Final = 65_536  # where the hard limit is none or higher; some systems refuse more
LEFT: Final = 1 / 4  # of the limit, for who is here: rooms, uploads, files of models
OPENS: Final = (PAGE, "stream")  # what a new visitor asks for


def begin() -> None:
    """Have the limit as high as it may be."""
    with suppress(ImportError, OSError, ValueError):  # as on Windows, and where a system has a limit of its own
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = MOST if hard == resource.RLIM_INFINITY else min(hard, MOST)
        if 0 <= soft < most:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def limit() -> int:
    """How many may be open at a time; 0 where nothing says so."""
    with suppress(ImportError, OSError):
        import resource

        soft: int = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        return 0 if soft == resource.RLIM_INFINITY else soft
    return 0


def problem() -> Sentence | None:
    """Why no new visitor may come; None if one may."""
    most = limit()
    if not most or n_open() < most * (1 - LEFT):
        return None
    return say(
        "This server has nearly as many connections and files open as it may have ({most:,}). Try again in a minute; "
        "whoever runs the server can raise this limit with ulimit -n.",
        most=most,
    )


def n_open() -> float:
    """How many are open; none where a system does not say."""
    try:
        return len(os.listdir("/dev/fd"))
    except OSError as error:
        return math.inf if error.errno in (errno.EMFILE, errno.ENFILE) else 0


class Enough:
    """The middleware that refuses new visitors while descriptors are scarce."""

    def __init__(self, app: ASGIApp) -> None:
        self._app, self._said = app, False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; a refused connection of a page is one that its browser tries again."""
        why = problem() if scope["type"] in ("http", "websocket") and route_of(scope["path"]) in OPENS else None
        if why is None:
            await self._app(scope, receive, send)
            return
        if not self._said:
            logging.getLogger("glassformer").warning("%s", why)
            self._said = True
        headers = {"Connection": "close", "Retry-After": "60", "Cache-Control": "no-store"}
        await PlainTextResponse(str(why), status_code=503, headers=headers)(scope, receive, send)


class LateLoop(asyncio.SelectorEventLoop):
    """An event loop that opens no descriptor before it runs."""

    def __init__(self) -> None:
        super().__init__(getattr(selectors, "PollSelector", selectors.SelectSelector)())

    def _make_self_pipe(self) -> None:
        self._csock = None

    def _close_self_pipe(self) -> None:
        if self._csock is not None:
            super()._close_self_pipe()  # type: ignore[misc]

    def run_forever(self) -> None:
        """Run, as ever, with what wakes the loop up."""
        if self._csock is None:
            super()._make_self_pipe()  # type: ignore[misc]
        super().run_forever()


def late(module: Any) -> Any:
    """Module asyncio, but with loops that open nothing before they run."""
    return SimpleNamespace(**{**vars(module), "new_event_loop": LateLoop})
