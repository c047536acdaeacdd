"""Headers that Streamlit does not send.

Nobody may frame the app, browsers take files for what they say, and they fetch our script before they are asked to.
"""

from __future__ import annotations

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADERS = {
    "Content-Security-Policy": "frame-ancestors 'self'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # addresses hold what visitors typed
}


class Preload:
    """Tells a browser with a page which script the page will ask for."""

    def __init__(self, app: ASGIApp, link: str) -> None:
        self._app = app
        self._link = link

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""

        async def send_with_link(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                if headers.get("content-type", "").startswith("text/html"):
                    headers.append("Link", self._link)
            await send(message)

        # The address is relative to a page at /step. At /step/ it would be wrong, so there the script is asked for
        # when its time has come.
        path = scope.get("path", "")
        is_page = scope["type"] == "http" and (path == "/" or not path.endswith("/"))
        await self._app(scope, receive, send_with_link if is_page else send)


class SecurityHeaders:
    """Adds `HEADERS` to every response."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, send_with_headers if scope["type"] == "http" else send)
