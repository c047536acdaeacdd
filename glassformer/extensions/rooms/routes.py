"""HTTP routes of rooms: join, vote, server-sent events; the check of their origin, and their end at a signal.

A vote costs no script run, and a teacher's move reaches all students in milliseconds. No route moves a class or shows
votes: the teacher's session does that in this process. A POST must be short JSON from an own page. A page is own if
its `Origin` is the requested host, or a configured one: behind a proxy that changes `Host` only the latter holds.

Events are server-sent (HTML standard, 9.2). An event carries the room's whole state, not a change: a slow or
reconnecting client gets the latest state, and nothing is queued. An unreachable room store is reported as well; the
stream stays open and continues.

All streams must end when the server ends, which waits for open connections before it ends the app. So the app handles
the signal itself and passes it on. Source: `Server.shutdown` in uvicorn/server.py of 0.4x.
"""

import asyncio
import contextlib
import json
import signal
import threading
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import asdict
from functools import partial
from typing import Any, Final, TypeVar
from urllib.parse import urlencode, urlsplit

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from glassformer.extensions.rooms import registry
from glassformer.extensions.rooms.registry import ROOMS, Registry, client
from glassformer.extensions.rooms.room import LEAST_VOTES, Public, RoomRefusedError, Why
from glassformer.server.parts import ServerPart
from transformer.i18n import say

HEARTBEAT_SECONDS: Final = 15.0  # proxies close silent connections after 60
RETRY_MS: Final = 2000
LEAST_SECONDS: Final = 0.02  # between two looks
LATE_SECONDS: Final = 1.0  # between checks of timers, and retries of the store
TOGETHER_SECONDS: Final = 0.25  # votes and joins within this time are sent together
_Result = TypeVar("_Result")
SPREAD_EACH_MS, SPREAD_MOST_MS = 8, 800  # pages begin to redraw at random moments within


_WAITING = ThreadPoolExecutor(8, thread_name_prefix="rooms")  # threads that may wait for the store


async def in_thread(call: Callable[..., _Result], *of: Any) -> _Result:
    """What a call comes to that may wait for the store of the rooms."""
    return await asyncio.get_running_loop().run_in_executor(_WAITING, call, *of)


async def stream(rooms: Registry, code: str, token: str, *, counts: bool, last: str = "") -> AsyncIterator[bytes]:
    """The events of a room until it ends.

    `token` is a student's, or "" for a spectator; with `counts` events include how many are present and voted. `last`
    is the last event id that a reconnecting browser received.
    """
    loop, changed = asyncio.get_running_loop(), asyncio.Event()

    def wake() -> None:
        with contextlib.suppress(RuntimeError):  # the server has ended
            loop.call_soon_threadsafe(changed.set)

    await in_thread(rooms.store.look, code, token)
    try:
        with rooms.listening(code, token, wake, counts=counts):
            yield f"retry: {RETRY_MS}\n\n".encode()
            async for part in _told(rooms, code, changed, counts=counts, last=last):
                yield part
    except RoomRefusedError as refused:
        if refused.why == "no-room":
            yield event("ended", {"boot": rooms.store.boot})
        else:
            yield event("refused", {"why": refused.why} | ({"away": rooms.store.away} if rooms.store.away else {}))


async def _told(rooms: Registry, code: str, changed: asyncio.Event, *, counts: bool, last: str) -> AsyncIterator[bytes]:
    told, told_counts, told_away = last, None, None
    while True:
        changed.clear()
        public = rooms.public(code, go_on=False)
        if public is not None and public.phase and not rooms.left(public):
            public = await in_thread(rooms.public, code)
        if rooms.store.closed:  # the browser reconnects to the next server
            return
        if public is None:
            yield event("ended", {"boot": rooms.store.boot})
            return
        if rooms.store.away != told_away:
            told_away = rooms.store.away
            yield event("away", {"away": told_away}) if told_away else event("hello", {"boot": rooms.store.boot})
        counted = rooms.counted(code)
        name = f"{rooms.store.boot}.{public.version}"
        if name != told:
            told = name
            yield event("room", plain(public, counted.students, left=rooms.left(public)), name=name)
        if counts and counted != told_counts:
            told_counts = counted
            yield event("counts", asdict(counted))
        try:
            most = min(HEARTBEAT_SECONDS, rooms.left(public) or LATE_SECONDS) if public.phase else HEARTBEAT_SECONDS
            await asyncio.wait_for(changed.wait(), max(most, LEAST_SECONDS))
        except TimeoutError:
            yield b": still here\n\n"
        if counts:
            await asyncio.sleep(TOGETHER_SECONDS)


def plain(public: Public, students: int, *, left: float = 0.0) -> dict[str, Any]:
    """The public state of a room as JSON values.

    The more students, the longer their page updates are spread. `left` is the remaining seconds of the timer, because a
    browser's clock may differ.
    """
    question = public.question
    return {
        "moves": public.moves,
        "page": public.page,
        "query": urlencode(public.parameters),
        "spread": min(SPREAD_MOST_MS, SPREAD_EACH_MS * students),
        "question": question.name if question else "",
        "choices": len(question.choices) if question else 0,
        "aloud": question.aloud if question else False,
        "round": public.round,
        "taken": public.taken,
        "shown": [asdict(one) for one in public.shown],
        "answered": public.answered,
        "own": public.own,
        "few": public.least < LEAST_VOTES,
        "phase": public.phase,
        "left": left,
        "at": public.at,
    }


def event(kind: str, data: dict[str, Any], *, name: str = "") -> bytes:
    """An event as it travels; JSON holds no line breaks."""
    told = f"id: {name}\n" if name else ""
    return f"{told}event: {kind}\ndata: {json.dumps(data)}\n\n".encode()


@contextlib.contextmanager
def at_signals(numbers: Sequence[int], act: Callable[[Callable[[], object]], object]) -> Iterator[None]:
    """Have `act` called at a signal, with what hands it on to its handler of before, while the context lasts.

    A signal without such a handler ends the process as ever. Only the main thread may listen; in others, nothing.
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


@contextlib.contextmanager
def closed_in_time(rooms: Registry) -> Iterator[None]:
    """Open the rooms, and close them when the process gets a signal to end."""

    def end(hand_on: Callable[[], object]) -> None:
        # Not here: what the signal interrupted may hold the lock.
        threading.Thread(target=rooms.store.close, daemon=True).start()
        hand_on()

    rooms.store.begin()
    with at_signals((signal.SIGINT, signal.SIGTERM), end):
        yield


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
    """The routes; `base` is the app's path, `origins` are own origins besides the requested host."""

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
    """The client, as far as the server knows: a proxy that does not forward addresses is one client."""
    return client(request.client.host) if request.client else ""


def _events(rooms: Registry, request: Request) -> Response:
    code, token = registry.read_code(request.path_params["room"]), request.query_params.get("token", "")
    if rooms.public(code, go_on=False) is None and not rooms.missed(code, _client(request)):
        return JSONResponse({"why": "too-often"}, status_code=429, headers=_PLAIN)
    if token and not registry.is_token(token):
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
        code = registry.read_code(request.path_params["room"])
        if rooms.public(code, go_on=False) is None and not rooms.missed(code, _client(request)):
            raise RoomRefusedError("too-often")
        answer = await in_thread(do, code, said)
    except _BadRequestError as bad:
        return bad.response
    except RoomRefusedError as refused:
        told = {"why": refused.why, "boot": rooms.store.boot} | ({"away": rooms.store.away} if rooms.store.away else {})
        return JSONResponse(told, status_code=_STATUS[refused.why], headers=_PLAIN)
    return answer


def _vote(rooms: Registry, code: str, said: dict[str, Any], who: str) -> Response:
    token = said.get("token")
    if not registry.is_token(token):
        raise _BadRequestError(400, "malformed")
    rooms.vote(code, str(token), round_=_whole(said, "round"), choice=_whole(said, "choice"), client=who)
    return Response(status_code=204, headers=_PLAIN)


def _whole(said: dict[str, Any], name: str) -> int:
    found = said.get(name)
    if not isinstance(found, int) or isinstance(found, bool):
        raise _BadRequestError(400, "malformed")
    return found


def _check_origin(request: Request, origins: Collection[str]) -> None:
    """Check that a POST comes from an own page. Raises `_BadRequestError`: it does not."""
    origin = request.headers.get("origin", "")
    host = urlsplit(origin).netloc
    if not host or (host != request.headers.get("host") and origin not in origins):
        raise _BadRequestError(403, "another-origin", _NOT_OURS)


async def _said(request: Request) -> dict[str, Any]:
    """The body of a POST. Raises `_BadRequestError`: an own page would not send it."""
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


class _RoomsServer(ServerPart):
    def routes(self, base: str, origins: Callable[[], Collection[str]]) -> Sequence[BaseRoute]:
        return routes(base, origins=origins)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        with closed_in_time(ROOMS):
            yield


SERVER = _RoomsServer()
