"""All rooms of a server, in memory: bounded, and gone four hours after their last use, or with the server.

Nothing of it is stored on disk. A teacher's session calls it in this process, with the room's secret; what comes over
HTTP can join, listen and vote (`ui/server/routes.py`), and nothing else.

Knows nothing of Streamlit.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from ui.server import codes
from ui.server.public import Counted, Kept, Opened, Public, RefusedError
from ui.server.room import MOST_STREAMS, Bucket, Room

MOST_ROOMS: Final = 20
IDLE_SECONDS: Final = 4 * 3600.0
LEFT_SECONDS: Final = 900.0  # a room that nobody listens to may be dropped for another after so long
OPENED_AT_ONCE, OPENED_A_SECOND = 10, 0.05
MISSES_AT_ONCE, MISSES_A_SECOND = 200, 10.0  # of codes that are no room's


class Registry:
    """The rooms."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.boot = secrets.token_urlsafe(6)  # tells this start of the server from others
        self._clock = clock
        self._lock = threading.RLock()
        self._rooms: dict[str, Room] = {}
        self._opening = Bucket(OPENED_AT_ONCE, per_second=OPENED_A_SECOND, clock=clock)
        self._missing = Bucket(MISSES_AT_ONCE, per_second=MISSES_A_SECOND, clock=clock)
        self.closed = False

    # ---------------------------------------------------------------- the teacher

    def open(self) -> Opened:
        """Open a room. Raises `RefusedError`: there are too many, or too many were opened at once."""
        with self._lock:
            self.sweep()
            if len(self._rooms) >= MOST_ROOMS:
                self._drop_one()
            if not self._opening.take():
                raise RefusedError("too-often")
            code = next(code for code in iter(codes.new_code, "") if code not in self._rooms)
            room = self._rooms[code] = Room(code, codes.new_token(), self._clock)
            return Opened(code, room.secret)

    def _drop_one(self) -> None:
        """Let go of the room that nobody listens to, and that was not used for longest."""
        now = self._clock()
        left = [room for room in self._rooms.values() if not room.listeners and now - room.used > LEFT_SECONDS]
        if not left:
            raise RefusedError("full")
        del self._rooms[min(left, key=lambda room: room.used).code]

    def is_teacher(self, code: str, secret: str) -> bool:
        """Whether somebody knows the secret of a room that is open."""
        with self._lock:
            room = self._found(code)
            return room is not None and codes.alike(room.secret, secret)

    def do(self, taught: Opened, act: Callable[..., bool | None], *of: Any) -> None:
        """Have a room do what its teacher alone may have it do, such as `Room.ask`, and tell those who listen.

        `act`, given the room and `of`, returns False if it is no news. Raises `RefusedError`: the room is gone, or
        does not do it.
        """
        with self._taught(taught) as room:
            news = act(room, *of)
        if news is not False:
            self._tell(room)

    def record(self, taught: Opened) -> tuple[Kept, ...]:
        """The rounds of a room so far. Raises `RefusedError`: the room is gone."""
        with self._taught(taught) as room:
            return room.record

    def end(self, taught: Opened) -> None:
        """End a room, and everything that is known of it. Raises `RefusedError`: the room is gone."""
        with self._taught(taught) as room:
            self._end([room])

    # ---------------------------------------------------------------- everybody

    def public(self, code: str) -> Public | None:
        """What everybody may know of a room; None if there is none."""
        with self._lock:
            room = self._found(code)
            return None if room is None else room.public

    def counted(self, code: str) -> Counted:
        """How many are in a room and voted; none of a room that is not there."""
        with self._lock:
            room = self._found(code)
            return Counted(0, 0, 0) if room is None else room.counted()

    def left(self, public: Public) -> float:
        """How many seconds are left of what is timed; 0 where nothing is."""
        return max(0.0, public.until - self._clock()) if public.phase else 0.0

    def missed(self) -> bool:
        """Somebody asked for a room that is not there; whether that may be said, or it is asked too often."""
        with self._lock:
            return self._missing.take()

    def join(self, code: str) -> str:
        """Let a student in; returns the student's token.

        Raises `RefusedError`: there is no such room, it is full, or too many come at once.
        """
        with self._asked(code) as room:
            token = codes.new_token()
            room.join(token)
            return token

    def vote(self, code: str, token: str, *, round_: int, choice: int) -> None:
        """Take a student's vote for a choice, from 0, in a round. Raises `RefusedError`: it is not taken."""
        with self._asked(code) as room:
            room.vote(token, round_=round_, choice=choice)
        self._tell(room, counts=True)

    @contextmanager
    def listening(self, code: str, token: str, wake: Callable[[], None], *, counts: bool) -> Iterator[None]:
        """Be told of changes.

        The token is that of a student, who is there as long as this lasts; "" is nobody's. `wake` is called after
        each change, from any thread, with `counts` also when somebody comes, leaves or votes; it has to be quick, and
        what there is to know it asks itself. Raises `RefusedError`: there is no such room, or too many listen.
        """
        with self._asked(code) as room:
            if len(room.listeners) >= MOST_STREAMS:
                raise RefusedError("full")
            if token and not room.knows(token):
                raise RefusedError("no-token")
            room.listeners[wake] = counts
            if token:
                room.come(token)
        self._tell(room, counts=True)
        try:
            yield
        finally:
            with self._lock:
                room.listeners.pop(wake, None)
                if token:
                    room.leave(token)
            self._tell(room, counts=True)

    def sweep(self) -> None:
        """Let go of rooms that nobody used for long."""
        with self._lock:
            now = self._clock()
            self._end([room for room in self._rooms.values() if now - room.used > IDLE_SECONDS])

    def close(self) -> None:
        """Have all that listen leave, as the server ends."""
        with self._lock:
            self.closed = True
            self._end(list(self._rooms.values()))

    def _end(self, rooms: Sequence[Room]) -> None:
        for room in rooms:
            del self._rooms[room.code]
            self._tell(room)

    def __len__(self) -> int:
        return len(self._rooms)

    def _found(self, code: str) -> Room | None:
        self.sweep()
        room = self._rooms.get(code)
        if room is not None:
            room.tick()  # those who listen look by themselves when a time is up
        return room

    @contextmanager
    def _asked(self, code: str) -> Iterator[Room]:
        with self._lock:
            room = self._found(code)
            if room is None:
                raise RefusedError("no-room")
            yield room

    @contextmanager
    def _taught(self, taught: Opened) -> Iterator[Room]:
        with self._asked(taught.code) as room:
            if not codes.alike(room.secret, taught.secret):
                raise RefusedError("not-yours")
            yield room

    def _tell(self, room: Room, *, counts: bool = False) -> None:
        """Wake those who listen."""
        with self._lock:
            woken = [wake for wake, wants in room.listeners.items() if wants or not counts]
        for wake in woken:
            wake()


ROOMS = Registry()
