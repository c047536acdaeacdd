"""All rooms of a server, in memory: bounded, and gone four hours after their last use, or with the server.

Nothing of it is stored on disk. A teacher's session calls it in this process, with the room's secret; what comes over
HTTP can join, listen and vote (`ui/server/routes.py`), and nothing else.

Knows nothing of Streamlit.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from ui.server import codes
from ui.server.public import Counted, Opened, Public, Question, RefusedError
from ui.server.rates import Bucket
from ui.server.record import Kept
from ui.server.room import MOST_STREAMS, Room

MOST_ROOMS: Final = 20
IDLE_SECONDS: Final = 4 * 3600.0
LEFT_SECONDS: Final = 900.0  # a room that nobody listens to may be dropped for another after so long
OPENED_AT_ONCE, OPENED_A_SECOND = 10, 0.05
MISSES_AT_ONCE, MISSES_A_SECOND = 200, 10.0  # of codes that are no room's


class Registry:
    """The rooms.

    Args:
        clock: Says what time it is, in seconds.
    """

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
        """Open a room.

        Raises:
            RefusedError: There are too many, or too many were opened at once.
        """
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

    def move(self, taught: Opened, page: str, parameters: Mapping[str, str]) -> None:
        """Have the class go where its teacher is.

        Args:
            taught: The teacher's room.
            page: Path of the page.
            parameters: Of its address.

        Raises:
            RefusedError: The room is gone, or the address is too long to be sent.
        """
        self.do(taught, lambda room: room.move(page, parameters))

    def ask(self, taught: Opened, question: Question | None) -> None:
        """Put a question to the class, and take votes; None takes it back.

        Raises:
            RefusedError: The room is gone, or the question has too few or too many choices.
        """
        self.do(taught, lambda room: room.ask(question))

    def show(self, taught: Opened) -> None:
        """End the round and show its votes.

        Raises:
            RefusedError: The room is gone, or takes no votes.
        """
        self.do(taught, Room.show)

    def again(self, taught: Opened) -> None:
        """Take new votes on the same question.

        Raises:
            RefusedError: The room is gone, or no votes were shown.
        """
        self.do(taught, Room.again)

    def answer(self, taught: Opened, *, right: int | None = None, told: str = "") -> None:
        """Let everybody see the answer; of a question with choices, `right` is the right one.

        Raises:
            RefusedError: The room is gone, or has no question.
        """
        self.do(taught, lambda room: room.answer(right, told))

    def let_own(self, taught: Opened, own: bool) -> None:
        """Have students keep sentences of their own, or look at the teacher's.

        Raises:
            RefusedError: The room is gone.
        """
        self.do(taught, lambda room: room.let_own(own))

    def do(self, taught: Opened, act: Callable[[Room], bool | None]) -> None:
        """Have a room do what its teacher alone may have it do, and tell those who listen.

        Args:
            taught: The teacher's room.
            act: Does it; returns False if it is no news.

        Raises:
            RefusedError: The room is gone, or does not do it.
        """
        with self._taught(taught) as room:
            news = act(room)
        if news is not False:
            self._tell(room)

    def record(self, taught: Opened) -> tuple[Kept, ...]:
        """The rounds of a room so far.

        Raises:
            RefusedError: The room is gone.
        """
        with self._taught(taught) as room:
            return room.record

    def end(self, taught: Opened) -> None:
        """End a room, and everything that is known of it.

        Raises:
            RefusedError: The room is gone.
        """
        with self._taught(taught) as room:
            del self._rooms[room.code]
        self._tell(room)

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
            return Counted(0, 0, 0) if room is None else Counted(room.students, room.voted, room.expected)

    def left(self, public: Public) -> float:
        """How many seconds are left of what is timed; 0 where nothing is."""
        return max(0.0, public.until - self._clock()) if public.phase else 0.0

    def missed(self) -> bool:
        """Somebody asked for a room that is not there; whether that may be said, or it is asked too often."""
        with self._lock:
            return self._missing.take()

    def join(self, code: str) -> str:
        """Let a student in.

        Returns:
            The student's token.

        Raises:
            RefusedError: There is no such room, it is full, or too many come at once.
        """
        with self._asked(code) as room:
            token = codes.new_token()
            room.join(token)
            return token

    def vote(self, code: str, token: str, *, round_: int, choice: int) -> None:
        """Take a student's vote.

        Args:
            code: The room.
            token: The student's.
            round_: Which round it is meant for.
            choice: Place of what was chosen, from 0.

        Raises:
            RefusedError: It is not taken.
        """
        with self._asked(code) as room:
            room.vote(token, round_=round_, choice=choice)
        self._tell(room, counts=True)

    def knows(self, code: str, token: str) -> bool:
        """Whether a student was let in."""
        with self._lock:
            room = self._found(code)
            return room is not None and room.knows(token)

    @contextmanager
    def listening(self, code: str, token: str, wake: Callable[[], None], *, counts: bool) -> Iterator[None]:
        """Be told of changes.

        Args:
            code: The room.
            token: A student's, who is there as long as this lasts; "" for nobody.
            wake: Called after each change, from any thread; it has to be quick. What there is to know it asks itself.
            counts: Whether it is also told when somebody comes, leaves or votes.

        Raises:
            RefusedError: There is no such room, or too many listen.
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
            old = [room for room in self._rooms.values() if now - room.used > IDLE_SECONDS]
            for room in old:
                del self._rooms[room.code]
        for room in old:
            self._tell(room)

    def close(self) -> None:
        """Have all that listen leave, as the server ends."""
        with self._lock:
            self.closed = True
            rooms = list(self._rooms.values())
            self._rooms.clear()
        for room in rooms:
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
