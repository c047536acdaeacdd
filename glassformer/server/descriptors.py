"""Middleware that refuses connections when file descriptors run out, and middleware for security headers.

At startup the soft limit is raised to the hard one. Sessions open none (`streamlit_private.py`), so connections count:
the last ones are reserved for current users, and new pages are refused with a reason.

Source: getrlimit(2). Knows nothing of Streamlit.
"""

import errno
import math
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from transformer.i18n import Sentence, say

MOST: Final = 65_536  # where the hard limit is none or higher; some systems refuse more
USED: Final = 3 / 4  # of the limit; the rest is for who is here: rooms, uploads, files of models
_FILES: Final = re.compile(r"/(?:_stcore(?!/stream/)|app/static|static|media|component)/")  # Streamlit's, of a page
_HEADERS: Final = {"Connection": "close", "Retry-After": "60", "Cache-Control": "no-store"}


def limit(*, raised: bool = False) -> int:
    """How many may be open at a time, once that is as many as the system lets it be if `raised`; 0 for any number."""
    soft = 0
    with suppress(ImportError, OSError, ValueError):  # as on Windows, or where a system has a limit of its own
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = MOST if hard == resource.RLIM_INFINITY else min(hard, MOST)
        if raised and 0 <= soft < most:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
            soft = most
    return max(0, soft)  # none is -1, or larger than any number of files


def n_open() -> float:
    """How many are open; 0 where a system does not say."""
    try:
        return len(os.listdir("/dev/fd"))
    except OSError as error:
        return math.inf if error.errno in (errno.EMFILE, errno.ENFILE) else 0


def problem() -> Sentence | None:
    """Why no new visitor may come; None if one may."""
    most = limit()
    if not most or n_open() < most * USED:
        return None
    return say(
        "This server has nearly as many connections and files open as it may have ({most:,}). Try again in a minute. "
        "On the server, the limit can be raised with ulimit -n.",
        most=most,
    )


class DescriptorLimitMiddleware:
    """The middleware that refuses new visitors while descriptors are scarce."""

    def __init__(self, app: ASGIApp, routes: Sequence[BaseRoute] = ()) -> None:
        """`routes` are those of the app that no page is at; a new visitor comes by another."""
        self._app, self._routes = app, routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; the connection of a page that is refused is one that its browser tries again."""
        why = problem() if scope["type"] in ("http", "websocket") and self._is_new(scope) else None
        app = self._app if why is None else PlainTextResponse(str(why), status_code=503, headers=_HEADERS)
        await app(scope, receive, send)

    def _is_new(self, scope: Scope) -> bool:
        """Whether a request is for a page, or is the stream of one."""
        if _FILES.search(f"{scope['path']}/"):
            return False
        return all(route.matches(scope)[0] is Match.NONE for route in self._routes)


HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # addresses hold what visitors typed
}


class SecurityHeadersMiddleware:
    """Adds `HEADERS` to every response, and tells a browser with a page, in `link`, which script it will ask for.

    `frame_ancestors` are the sources of pages that may frame the app.
    """

    def __init__(self, app: ASGIApp, link: str, frame_ancestors: str = "'self'") -> None:
        self._app, self._link = app, link
        self._headers = HEADERS | {"Content-Security-Policy": f"frame-ancestors {frame_ancestors}"}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        # The URL is relative to a page at /step. At /step/ it would be wrong, so there the script is not prefetched.
        path = scope.get("path", "")
        is_page = path == "/" or not path.endswith("/")

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    headers.setdefault(name, value)
                if is_page and headers.get("content-type", "").startswith("text/html"):
                    headers.append("Link", self._link)
            await send(message)

        await self._app(scope, receive, send_with_headers if scope["type"] == "http" else send)
