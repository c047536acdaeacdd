"""Ends all streams of events when the server is told to end: it would wait for each of them for ever.

A server that is told to end first waits until what it serves has ended, and only then tells the app. So the app
listens for the signal itself, and passes it on.

Source: uvicorn/server.py of 0.4x, `Server.shutdown`, which waits for open connections before the lifespan's end.

Knows nothing of Streamlit.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from ui.server.registry import ROOMS, Registry

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
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
