"""What students' browsers ask a room for, beside Streamlit: to join, its events, and that a vote is taken.

A vote costs no run of a script, and a move of the teacher reaches all in milliseconds. Nothing here moves a class or
shows votes: a teacher's session does that in this process. What is posted has to come from a page of ours, as JSON,
and is short. A page is ours whose `Origin` is the host that was asked for, or one that the server was told of: behind
a proxy that passes on another `Host` only the latter holds.

Knows nothing of Streamlit.
"""

import json
from collections.abc import Callable, Collection
from typing import Any, Final
from urllib.parse import urlsplit

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from glassformer.extensions.rooms.server import codes
from glassformer.extensions.rooms.server.clients import client
from glassformer.extensions.rooms.server.events import in_thread, stream
from glassformer.extensions.rooms.server.public import RefusedError, Why
from glassformer.extensions.rooms.server.registry import ROOMS, Registry
from transformer.i18n import say

MOST_BYTES: Final = 500
_STATUS: Final[dict[Why, int]] = {
    "no-room": 404, "full": 503, "too-often": 429, "no-token": 403, "no-question": 409, "over": 409, "voted": 409,
    "no-choice": 400, "not-yours": 403, "too-long": 413, "away": 503, "locked": 423, "crowded": 429,
}  # fmt: skip
_NOT_OURS: Final = say(
    "This page's Origin is neither the requested Host nor one of server.corsAllowedOrigins. If there is a proxy, "
    "it must pass on the Host header."
)
_PLAIN: Final = {"Cache-Control": "no-store"}
_UNBUFFERED: Final = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


class _BadRequestError(Exception):
    def __init__(self, status: int, why: str, remedy: str = "") -> None:
        super().__init__(why)
        told = {"why": why} | ({"remedy": remedy} if remedy else {})
        self.response = JSONResponse(told, status_code=status, headers=_PLAIN)


def routes(
    base: str = "", rooms: Registry = ROOMS, *, origins: Callable[[], Collection[str]] = frozenset
) -> list[Route]:
    """The routes; `base` is the path that the app is served under.

    `origins` are what pages of ours are called beside the host that is asked for, such as "https://glass.example".
    """

    async def posted(request: Request, do: Callable[[str, dict[str, Any]], Response]) -> Response:
        return await _posted(rooms, origins(), request, do)

    async def events(request: Request) -> Response:
        return _events(rooms, request)

    async def join(request: Request) -> Response:
        who = _client(request)
        return await posted(request, lambda code, _: JSONResponse({"token": rooms.join(code, who)}, headers=_PLAIN))

    async def vote(request: Request) -> Response:
        return await posted(request, lambda code, said: _vote(rooms, code, said, _client(request)))

    start = f"/{base.strip('/')}/class/{{room}}".replace("//", "/")
    return [
        Route(f"{start}/events", events, methods=["GET"]),
        Route(f"{start}/join", join, methods=["POST"]),
        Route(f"{start}/vote", vote, methods=["POST"]),
    ]


def _client(request: Request) -> str:
    """Who asks, as far as the server knows: a proxy that does not say for whom it asks is one client."""
    return client(request.client.host) if request.client else ""


def _events(rooms: Registry, request: Request) -> Response:
    code, token = codes.read_code(request.path_params["room"]), request.query_params.get("token", "")
    if rooms.public(code, go_on=False) is None and not rooms.missed(code, _client(request)):
        return JSONResponse({"why": "too-often"}, status_code=429, headers=_PLAIN)
    if token and not codes.is_token(token):
        return JSONResponse({"why": "no-token"}, status_code=400, headers=_PLAIN)
    told = stream(
        rooms, code, token, counts="counts" in request.query_params, last=request.headers.get("last-event-id", "")
    )
    return StreamingResponse(told, media_type="text/event-stream", headers=_UNBUFFERED)


async def _posted(
    rooms: Registry, origins: Collection[str], request: Request, do: Callable[[str, dict[str, Any]], Response]
) -> Response:
    try:
        _check_origin(request, origins)
        said = await _said(request)
        code = codes.read_code(request.path_params["room"])
        if rooms.public(code, go_on=False) is None and not rooms.missed(code, _client(request)):
            raise RefusedError("too-often")
        answer = await in_thread(do, code, said)
    except _BadRequestError as bad:
        return bad.response
    except RefusedError as refused:
        told = {"why": refused.why, "boot": rooms.boot} | ({"away": rooms.away} if rooms.away else {})
        return JSONResponse(told, status_code=_STATUS[refused.why], headers=_PLAIN)
    return answer


def _vote(rooms: Registry, code: str, said: dict[str, Any], who: str) -> Response:
    token = said.get("token")
    if not codes.is_token(token):
        raise _BadRequestError(400, "malformed")
    rooms.vote(code, str(token), round_=_whole(said, "round"), choice=_whole(said, "choice"), client=who)
    return Response(status_code=204, headers=_PLAIN)


def _whole(said: dict[str, Any], name: str) -> int:
    found = said.get(name)
    if not isinstance(found, int) or isinstance(found, bool):
        raise _BadRequestError(400, "malformed")
    return found


def _check_origin(request: Request, origins: Collection[str]) -> None:
    """Look whether something was posted by a page of ours. Raises `_BadRequestError`: it was not."""
    origin = request.headers.get("origin", "")
    host = urlsplit(origin).netloc
    if not host or (host != request.headers.get("host") and origin not in origins):
        raise _BadRequestError(403, "another-origin", _NOT_OURS)


async def _said(request: Request) -> dict[str, Any]:
    """What was posted. Raises `_BadRequestError`: it is nothing that a page of ours sends."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise _BadRequestError(415, "no-json")
    body = b""
    try:
        async for part in request.stream():
            body += part
            if len(body) > MOST_BYTES:
                raise _BadRequestError(413, "too-long")
        said = json.loads(body)
    except (ValueError, RecursionError, ClientDisconnect):
        raise _BadRequestError(400, "malformed") from None
    if not isinstance(said, dict):
        raise _BadRequestError(400, "malformed")
    return said
