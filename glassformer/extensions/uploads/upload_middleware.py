"""ASGI middleware that limits uploads: bytes in memory, in total and per session, slow clients, untaken files.

The bytes in memory and in transit are limited, in total and per session; a request beyond the limit waits a while.
Memory is reserved for the announced size, from a request's first bytes on and while it keeps its pace: a client that
sends almost nothing blocks nobody. Files that no page takes for some minutes are dropped. If uploads are off, the
endpoint refuses all.

Source: streamlit/web/server/starlette/starlette_routes.py of 1.67, whose own limit is that of one file.
"""

import asyncio
import logging
import time
from dataclasses import dataclass, field

from starlette.requests import ClientDisconnect
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from glassformer.server import server_options
from glassformer.server.streamlit_private import forget_upload, runs, uploaded
from transformer.i18n import Sentence, say

PATH = "/_stcore/upload_file/"
MOST_BYTES = 512 * 2**20  # in memory, of all sessions
MOST_OF_SESSION = 256 * 2**20
MOST_FILES = 64  # of a session, in memory
MOST_WAITING = 200
WAIT_SECONDS, TAKE_SECONDS = 120.0, 300.0
STALE_SECONDS = 300.0
LOOK_SECONDS = 0.1
GRACE_SECONDS = 2.0  # from the first bytes on, in which none need come
LEAST_PACE = 64 * 2**10  # bytes a second, on the average after that

_OFF = say("This server does not accept uploads.")
_NO_LENGTH = say("The request must state its length.")
_TOO_MUCH = say("With this upload, the page would exceed its upload limit.")
_FULL = say("Too much is being uploaded at the moment; try again in a minute.")
_SLOW = say("The file took too long to arrive.")
_LOG = logging.getLogger("glassformer.uploads")


@dataclass(eq=False)
class _Coming:
    session: str
    announced: int
    arrived: int = 0
    since: float = field(default_factory=time.monotonic)  # its first bytes

    @property
    def counted(self) -> int:
        """The reserved bytes: the announced size, or the received bytes if it is too slow."""
        late = time.monotonic() - self.since - GRACE_SECONDS
        return self.announced if self.arrived >= late * LEAST_PACE else self.arrived


class UploadLimitMiddleware:
    """The middleware; `base` is the path that the app is served under."""

    def __init__(self, app: ASGIApp, base: str = "") -> None:
        self._app = app
        self._path = f"/{base.strip('/')}{PATH}" if base.strip("/") else PATH
        self._coming: set[_Coming] = set()
        self._waiting = 0
        self._since: dict[tuple[str, str], float] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        ours = scope["type"] == "http" and scope.get("path", "").startswith(self._path)
        if not ours or scope["method"] in ("GET", "HEAD", "OPTIONS", "DELETE"):
            await self._app(scope, receive, send)
            return
        refused = await self._taken(scope, receive, send)
        if refused is not None:
            status, why = refused
            await PlainTextResponse(str(why), status_code=status, headers={"Connection": "close"})(scope, receive, send)

    async def _taken(self, scope: Scope, receive: Receive, send: Send) -> tuple[int, Sentence] | None:
        """Accept a file; returns the status and the reason if it is refused."""
        if server_options.mode() == "off":
            return 403, _OFF
        session, n_bytes = scope["path"].removeprefix(self._path).partition("/")[0], _length(scope)
        if n_bytes is None:
            return 411, _NO_LENGTH
        if not runs(session):
            await self._app(scope, receive, send)  # which refuses it
            return None
        if not self._may_ever(session, n_bytes):
            return 413, _TOO_MUCH
        try:
            async with asyncio.timeout(TAKE_SECONDS):
                first = await receive()
        except TimeoutError:
            return 408, _SLOW
        if not await self._room_for(n_bytes):
            return 503, _FULL
        coming = _Coming(session, n_bytes)
        self._coming.add(coming)
        try:
            return await self._pass_on(scope, self._counting(coming, first, receive), send)
        except ClientDisconnect:
            _LOG.info("An upload ended after %d of %d bytes.", coming.arrived, n_bytes)
            return None
        finally:
            self._coming.remove(coming)

    def _counting(self, coming: _Coming, first: Message, receive: Receive) -> Receive:
        """A `receive` that repeats the first message and counts bytes; a slow upload must wait for memory again."""
        kept = [first]

        async def counted() -> Message:
            message = kept.pop() if kept else await receive()
            n_bytes = len(message.get("body", b""))
            if coming.counted < coming.announced and not await self._room_for(n_bytes):
                raise TimeoutError
            coming.arrived += n_bytes
            return message

        return counted

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> tuple[int, Sentence] | None:
        began = False

        async def noting(message: Message) -> None:
            nonlocal began
            began = True
            await send(message)

        try:
            async with asyncio.timeout(TAKE_SECONDS):
                await self._app(scope, receive, noting)
        except TimeoutError:
            return None if began else (408, _SLOW)
        return None

    def _may_ever(self, session: str, n_bytes: int) -> bool:
        there = [len(record.data) for owner, record in uploaded() if owner == session]
        there += [one.announced for one in self._coming if one.session == session]
        return len(there) < MOST_FILES and sum(there) + n_bytes <= MOST_OF_SESSION

    async def _room_for(self, n_bytes: int) -> bool:
        """Wait until so many bytes are free; returns whether they are."""
        if self._has_room(n_bytes):
            return True
        if self._waiting >= MOST_WAITING:
            return False
        self._waiting += 1
        try:
            end = time.monotonic() + WAIT_SECONDS
            while time.monotonic() < end:
                await asyncio.sleep(LOOK_SECONDS)
                if self._has_room(n_bytes):
                    return True
            return False
        finally:
            self._waiting -= 1

    def _has_room(self, n_bytes: int) -> bool:
        self._drop_stale()
        there = sum(len(record.data) for _, record in uploaded())
        return there + sum(one.counted for one in self._coming) + n_bytes <= MOST_BYTES

    def _drop_stale(self) -> None:
        """Drop files that no page has taken."""
        now, there = time.monotonic(), {(owner, record.file_id) for owner, record in uploaded()}
        self._since = {key: self._since.get(key, now) for key in there}
        for owner, name in [key for key, since in self._since.items() if now - since > STALE_SECONDS]:
            forget_upload(owner, name)


def _length(scope: Scope) -> int | None:
    """The Content-Length of a request; None if it is missing or invalid."""
    found = [value for name, value in scope["headers"] if name == b"content-length"]
    return int(found[0]) if len(found) == 1 and found[0].isdigit() and len(found[0]) < 16 else None
