"""What goes from a room to a browser, as server-sent events.

Source: the HTML standard, section 9.2. A stream says where the room stands, not what happened: whoever was away for a
while, or reads slowly, gets the latest state, and nothing has to be kept for anybody.

All streams end when the server is told to end: it would wait for each of them for ever. It first waits until what it
serves has ended, and only then tells the app. So the app listens for the signal itself, and passes it on. Source:
uvicorn/server.py of 0.4x, `Server.shutdown`, which waits for open connections before the lifespan's end.

Knows nothing of Streamlit.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import asdict
from types import FrameType
from typing import Any, Final
from urllib.parse import urlencode

from ui.server.public import LEAST_VOTES, Public, RefusedError
from ui.server.registry import ROOMS, Registry

HEARTBEAT_SECONDS: Final = 15.0  # proxies close what is silent for 60
RETRY_MS: Final = 2000
TOGETHER_SECONDS: Final = 0.25  # votes and comings of so long are told at once
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
SPREAD_EACH_MS, SPREAD_MOST_MS = 8, 800  # pages begin to redraw at random moments within


async def stream(rooms: Registry, code: str, token: str, *, counts: bool, last: str = "") -> AsyncIterator[bytes]:
    """The events of a room until it ends.

    The token is a student's, "" that of whoever only looks on; with `counts` it is told how many there are and voted.
    `last` is what the browser heard last, as it says when it comes again.
    """
    loop, changed = asyncio.get_running_loop(), asyncio.Event()

    def wake() -> None:
        with contextlib.suppress(RuntimeError):  # the server has ended
            loop.call_soon_threadsafe(changed.set)

    try:
        with rooms.listening(code, token, wake, counts=counts):
            yield f"retry: {RETRY_MS}\n\n".encode() + event("hello", {"boot": rooms.boot})
            async for part in _told(rooms, code, changed, counts=counts, last=last):
                yield part
    except RefusedError as refused:
        if refused.why == "no-room":
            yield event("ended", {"boot": rooms.boot})
        else:
            yield event("refused", {"why": refused.why})


async def _told(
    rooms: Registry, code: str, changed: asyncio.Event, *, counts: bool, last: str
) -> AsyncIterator[bytes]:
    told, told_counts = last, None
    while True:
        changed.clear()
        public = rooms.public(code)
        if public is None:
            if not rooms.closed:  # the browser comes again, and is told by the next server
                yield event("ended", {"boot": rooms.boot})
            return
        counted = rooms.counted(code)
        name = f"{rooms.boot}.{public.version}"
        if name != told:
            told = name
            yield event("room", plain(public, counted.students, left=rooms.left(public)), name=name)
        if counts and counted != told_counts:
            told_counts = counted
            yield event("counts", asdict(counted))
        try:
            most = min(HEARTBEAT_SECONDS, rooms.left(public)) if public.phase else HEARTBEAT_SECONDS
            await asyncio.wait_for(changed.wait(), most)
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
    """Close the rooms when the process is told to end, while this lasts."""
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
