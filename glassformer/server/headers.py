"""Headers that Streamlit does not send.

Nobody may frame the app, browsers take files for what they say, and they fetch our script before they are asked to.
"""

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADERS = {
    "Content-Security-Policy": "frame-ancestors 'self'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # addresses hold what visitors typed
}


class MoreHeaders:
    """Adds `HEADERS` to every response, and tells a browser with a page, in `link`, which script it will ask for."""

    def __init__(self, app: ASGIApp, link: str) -> None:
        self._app, self._link = app, link

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        # The address is relative to a page at /step. At /step/ it would be wrong, so there the script is asked for
        # when its time has come.
        path = scope.get("path", "")
        is_page = path == "/" or not path.endswith("/")

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                if is_page and headers.get("content-type", "").startswith("text/html"):
                    headers.append("Link", self._link)
            await send(message)

        await self._app(scope, receive, send_with_headers if scope["type"] == "http" else send)
