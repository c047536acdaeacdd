"""Middleware that serves scripts packed and to be kept: ours, Plotly's, and those of Streamlit's page.

Nothing is written, so a read-only installation works. Streamlit serves the scripts of an app anew at each request, and
has browsers revalidate at every visit; its own it sends unpacked, 3 MB for a first page, so they are packed here, once.
"""

import asyncio
import gzip
import re
from functools import cache

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from glassformer.components.custom_component import PLOTLY_FILE, script, script_file
from glassformer.components.embedding import packed, plotly_packed


def link() -> str:
    """A `Link` header with which a browser prefetches our script and Plotly's, after Streamlit's, while those start."""
    ours, low = f"<app/static/{script_file()}>; rel=modulepreload", "fetchpriority=low"
    return f"{ours}; {low}, <app/static/{PLOTLY_FILE}>; rel=preload; as=script; {low}"


@cache
def served() -> dict[str, bytes]:
    """What is served beside Streamlit's own scripts, packed, by the names under `app/static`: ours and Plotly's."""
    return {script_file(): packed(script()), PLOTLY_FILE: plotly_packed()}


_MOUNT = "/app/static/"
_STREAMLITS = re.compile(r"/static/(?:js|css)/[^/]+$")
_VARY = (b"vary", b"Accept-Encoding")
_HEADERS = [
    (b"content-type", b"text/javascript; charset=utf-8"),
    _VARY,
    (b"cache-control", b"public, max-age=31536000, immutable"),
]
_PACKED = (b"content-encoding", b"gzip")


class StaticScriptsMiddleware:
    """Answers for the two scripts, always with the whole, packs Streamlit's, and leaves all else to the app."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._names = (script_file(), PLOTLY_FILE)
        # Of Streamlit's scripts: headers, content.
        self._packed: dict[tuple[str, ...], tuple[list[tuple[bytes, bytes]], bytes]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http" or scope["method"] not in ("GET", "HEAD"):
            await self._app(scope, receive, send)
            return
        name = scope["path"].partition(_MOUNT)[2]
        unpacks = "gzip" in Headers(scope=scope).get("accept-encoding", "")
        if name not in self._names:
            packs = unpacks and scope["method"] == "GET" and _STREAMLITS.search(scope["path"])
            await (self._streamlits if packs else self._app)(scope, receive, send)
            return
        body, headers = (await asyncio.to_thread(served))[name], [*_HEADERS, _PACKED]
        if not unpacks:
            body, headers = await asyncio.to_thread(gzip.decompress, body), _HEADERS
        length = (b"content-length", str(len(body)).encode())
        await send({"type": "http.response.start", "status": 200, "headers": [*headers, length]})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})

    async def _streamlits(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a file of Streamlit's; one whose name changes with its content is packed once for everybody."""
        # By folder and name alone: nobody fills the memory with one file under many paths.
        path, answer = tuple(scope["path"].split("/")[-2:]), list[Message]()
        if path not in self._packed:
            await self._app(scope, receive, _kept(answer))
            headers = Headers(raw=answer[0]["headers"])
            if answer[0]["status"] != 200 or "immutable" not in headers.get("cache-control", ""):
                for message in answer:
                    await send(message)
                return
            body = b"".join(message.get("body", b"") for message in answer[1:])
            named = [(name, value) for name, value in headers.raw if name in (b"content-type", b"cache-control")]
            self._packed[path] = ([*named, _VARY, _PACKED], await asyncio.to_thread(packed, body))
        headers_sent, body = self._packed[path]
        length = (b"content-length", str(len(body)).encode())
        await send({"type": "http.response.start", "status": 200, "headers": [*headers_sent, length]})
        await send({"type": "http.response.body", "body": body})


def _kept(answer: list[Message]) -> Send:
    async def keep(message: Message) -> None:
        answer.append(message)

    return keep
