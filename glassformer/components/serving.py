"""Serves our script and Plotly's from memory, packed once.

They are files in `static/` too, and Streamlit would serve them; but it opens and packs a file at every request, which
takes 140 ms of the server's time for Plotly's script (here 24 ms), and it has browsers ask again at every visit.
Addresses change with the text behind them, so browsers are told to keep it.

Knows nothing of Streamlit.
"""

import asyncio
import gzip
from pathlib import Path

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from glassformer.components.assets import PLOTLY_FILE, script_file
from glassformer.paths import STATIC

_MOUNT = "/app/static/"
_HEADERS = [
    (b"content-type", b"text/javascript; charset=utf-8"),
    (b"content-encoding", b"gzip"),
    (b"vary", b"Accept-Encoding"),
    (b"cache-control", b"public, max-age=31536000, immutable"),
]


class Scripts:
    """Answers for what is in memory, and leaves all else to the app: also who cannot unpack, or wants a part."""

    def __init__(self, app: ASGIApp, static: Path = STATIC) -> None:
        self._app = app
        self._files = {name: static / name for name in (script_file(), PLOTLY_FILE)}
        self._packed: dict[str, bytes] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        name = scope.get("path", "").partition(_MOUNT)[2]
        headers = Headers(scope=scope) if scope["type"] == "http" else Headers()
        plain = (
            scope.get("method") == "GET" and "gzip" in headers.get("accept-encoding", "") and "range" not in headers
        )
        body = await self._body(name) if plain and name in self._files else None
        if body is None:
            await self._app(scope, receive, send)
            return
        length = (b"content-length", str(len(body)).encode())
        await send({"type": "http.response.start", "status": 200, "headers": [*_HEADERS, length]})
        await send({"type": "http.response.body", "body": body})

    async def _body(self, name: str) -> bytes | None:
        """A file as it travels; None if it is not there."""
        if name not in self._packed:
            try:
                self._packed[name] = await asyncio.to_thread(_pack, self._files[name])
            except OSError:
                return None
        return self._packed[name]


def _pack(path: Path) -> bytes:
    return gzip.compress(path.read_bytes(), compresslevel=6)
