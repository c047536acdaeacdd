"""What goes from a room to a browser, as server-sent events.

Source: the HTML standard, section 9.2. A stream says where the room stands, not what happened: whoever was away for a
while, or reads slowly, gets the latest state, and nothing has to be kept for anybody.

A store of the rooms that does not answer is told, too; the stream stays open, and goes on by itself.

All streams end when the server is told to end: it would wait for each of them for ever. It first waits until what it
serves has ended, and only then tells the app. So the app listens for the signal itself, and passes it on. Source:
uvicorn/server.py of 0.4x, `Server.shutdown`, which waits for open connections before the lifespan's end.

Knows nothing of Streamlit.
"""

import asyncio
import contextlib
import json
import signal
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from types import FrameType
from typing import Any, Final, TypeVar
from urllib.parse import urlencode

from glassformer.extensions.rooms.server.public import LEAST_VOTES, Public, RefusedError
from glassformer.extensions.rooms.server.registry import ROOMS, Registry

HEARTBEAT_SECONDS: Final = 15.0  # proxies close what is silent for 60
RETRY_MS: Final = 2000
LEAST_SECONDS: Final = 0.02  # between two looks
LATE_SECONDS: Final = 1.0  # between two looks at what is due, and waits for the store
TOGETHER_SECONDS: Final = 0.25  # votes and comings of so long are told at once
_Result = TypeVar("_Result")
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
SPREAD_EACH_MS, SPREAD_MOST_MS = 8, 800  # pages begin to redraw at random moments within


_WAITING = ThreadPoolExecutor(8, thread_name_prefix="rooms")  # for what may wait for the store: no more threads do


async def in_thread(call: Callable[..., _Result], *of: Any) -> _Result:
    """What a call comes to that may wait for the store of the rooms."""
    return await asyncio.get_running_loop().run_in_executor(_WAITING, call, *of)


async def stream(rooms: Registry, code: str, token: str, *, counts: bool, last: str = "") -> AsyncIterator[bytes]:
    """The events of a room until it ends.

    The token is a student's, "" that of whoever only looks on; with `counts` it is told how many there are and voted.
    `last` is what the browser heard last, as it says when it comes again.
    """
    loop, changed = asyncio.get_running_loop(), asyncio.Event()

    def wake() -> None:
        with contextlib.suppress(RuntimeError):  # the server has ended
            loop.call_soon_threadsafe(changed.set)

    await in_thread(rooms.look, code, token)
    try:
        with rooms.listening(code, token, wake, counts=counts):
            yield f"retry: {RETRY_MS}\n\n".encode()
            async for part in _told(rooms, code, changed, counts=counts, last=last):
                yield part
    except RefusedError as refused:
        if refused.why == "no-room":
            yield event("ended", {"boot": rooms.boot})
        else:
            yield event("refused", {"why": refused.why} | ({"away": rooms.away} if rooms.away else {}))


async def _told(
    rooms: Registry, code: str, changed: asyncio.Event, *, counts: bool, last: str
) -> AsyncIterator[bytes]:
    told, told_counts, told_away = last, None, None
    while True:
        changed.clear()
        public = rooms.public(code, go_on=False)
        if public is not None and public.phase and not rooms.left(public):
            public = await in_thread(rooms.public, code)
        if rooms.closed:  # the browser comes again, and is told by the next server
            return
        if public is None:
            yield event("ended", {"boot": rooms.boot})
            return
        if rooms.away != told_away:
            told_away = rooms.away
            yield event("away", {"away": told_away}) if told_away else event("hello", {"boot": rooms.boot})
        counted = rooms.counted(code)
        name = f"{rooms.boot}.{public.version}"
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
    """What everybody may know of a room, as JSON values.

    The more students there are, the longer their redrawing is spread. `left` are the seconds of what is timed, as a
    browser's clock may be another.
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
def closed_in_time(rooms: Registry = ROOMS) -> Iterator[None]:
    """Begin with the rooms, and close them when the process is told to end, while this lasts."""
    rooms.begin()
    if threading.current_thread() is not threading.main_thread():  # as in a test; only this thread may listen
        yield
        return
    before = {number: signal.getsignal(number) for number in _SIGNALS}

    def end(number: int, frame: FrameType | None) -> None:
        # Not here: what the signal interrupted may hold the lock.
        threading.Thread(target=rooms.close, daemon=True).start()
        passed_on = before[signal.Signals(number)]
        if callable(passed_on):
            passed_on(number, frame)

    for number in _SIGNALS:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
