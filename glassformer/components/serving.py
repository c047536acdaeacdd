"""Serves our script and Plotly's from memory, packed once.

No file is written, so the app runs where it may write nothing. Streamlit would serve files; but it opens and packs a
file at every request, which takes 140 ms of the server's time for Plotly's script (here 24 ms), and it has browsers
ask again at every visit. Addresses change with the text behind them, so browsers are told to keep it.
"""

import asyncio
import gzip

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from glassformer.components.assets import PLOTLY_FILE, script_file, served

_MOUNT = "/app/static/"
_HEADERS = [
    (b"content-type", b"text/javascript; charset=utf-8"),
    (b"vary", b"Accept-Encoding"),
    (b"cache-control", b"public, max-age=31536000, immutable"),
]
_PACKED = (b"content-encoding", b"gzip")


class Scripts:
    """Answers for the two scripts, always with the whole, and leaves all else to the app."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._names = (script_file(), PLOTLY_FILE)
        self._packed: dict[str, bytes] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        name = scope.get("path", "").partition(_MOUNT)[2]
        if scope["type"] != "http" or scope["method"] not in ("GET", "HEAD") or name not in self._names:
            await self._app(scope, receive, send)
            return
        if name not in self._packed:
            self._packed[name] = await asyncio.to_thread(_pack, name)
        body, headers = self._packed[name], [*_HEADERS, _PACKED]
        if "gzip" not in Headers(scope=scope).get("accept-encoding", ""):
            body, headers = await asyncio.to_thread(gzip.decompress, body), _HEADERS
        length = (b"content-length", str(len(body)).encode())
        await send({"type": "http.response.start", "status": 200, "headers": [*headers, length]})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})


def _pack(name: str) -> bytes:
    return gzip.compress(served()[name], compresslevel=6)
