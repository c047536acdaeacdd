"""Registry of rooms (open, join, teach, vote, listen): room codes, tokens, secrets, rate limits, expiry.

Rooms are in this process's memory, or in a store that several processes share (`stores` of an extension). A teacher's
session calls the registry in this process, with the room's secret; HTTP requests can only join, listen and vote
(`extensions/rooms/routes.py`). A call that changes a room may wait for the store.

A client is a network address, which all students of a school may share. So a limit on a class's requests allows a
whole class at once, per client and room. An address is kept only as a number that has no meaning outside this process.
"""

import hashlib
import hmac
import re
import secrets
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from ipaddress import IPv6Address
from typing import Any, Final

from glassformer.extensions.rooms.room import (
    Counted,
    Kept,
    OpenedRoom,
    Public,
    Room,
    RoomRefusedError,
    TokenBucket,
    Why,
)
from glassformer.extensions.rooms.store import IDLE_SECONDS, MOST_ROOMS, RoomStore, StoreError
from transformer.extensions import provided

ALPHABET: Final = "ACDEFGHJKMNPRTUWXY3479"  # none that is read as another: 0 O Q, 1 I L, 2 Z, 5 S, 6 G, 8 B, U V
LENGTH: Final = 6
_CODE = re.compile(f"[{ALPHABET}]{{{LENGTH}}}")
_LONGEST_TYPED = 20
_TOKEN = re.compile(r"[A-Za-z0-9_-]{22}")


def new_code() -> str:
    """A code: one of 113 million."""
    return "".join(secrets.choice(ALPHABET) for _ in range(LENGTH))


def read_code(typed: str) -> str:
    """A typed code, normalised: any case, spaces and hyphens are allowed; "" if invalid."""
    found = re.sub(r"[\s-]", "", typed[:_LONGEST_TYPED]).upper()
    return found if _CODE.fullmatch(found) else ""


def new_token() -> str:
    """A token, or a secret: 128 random bits."""
    return secrets.token_urlsafe(16)


def is_token(found: object) -> bool:
    """Whether something has the form of a token."""
    return isinstance(found, str) and _TOKEN.fullmatch(found) is not None


def alike(secret: str, found: str) -> bool:
    """Whether two secrets are one; how long that takes does not tell how much of them is."""
    return hmac.compare_digest(secret.encode(), found.encode("utf-8", "replace"))


# Burst, and rate per second: rooms per client, unknown codes, and a whole class's requests to a room.
LIMITS: Final = {"open": (10, 0.05), "miss": (20, 0.5), "join": (100, 4.0), "vote": (100, 4.0)}
MOST_KNOWN: Final = 5000
_LOCAL: Final = "127.0.0.1"
_SALT: Final = secrets.token_bytes(16)


def client(address: object) -> str:
    """The client of an address; of IPv6 its /64 network, because one user has all of it."""
    name = str(address or _LOCAL).removeprefix("::ffff:").partition("%")[0]
    with suppress(ValueError):  # of IPv4, or whatever a proxy says
        name = _LOCAL if name == "::1" else IPv6Address(name).exploded[:19]
    return hashlib.blake2s(name.encode(), key=_SALT, digest_size=8).hexdigest()


class RateLimits:
    """One token bucket per client; not thread-safe, its owner locks."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock, self._buckets = clock, dict[tuple[str, ...], TokenBucket]()  # who asked last stands last

    def take(self, what: str, who: str, room: str = "") -> bool:
        """Take a token; returns whether there was one. Unknown clients are not limited."""
        if not who:
            return True
        most, per_second = LIMITS[what]
        bucket = self._buckets.pop((what, who, room), None) or TokenBucket(
            most, per_second=per_second, clock=self._clock
        )
        self._buckets[what, who, room] = bucket
        if len(self._buckets) > MOST_KNOWN:
            del self._buckets[next(iter(self._buckets))]
        return bucket.take()


LEFT_SECONDS: Final = 900.0  # a room without listeners may be dropped for another after this time
OPENED_AT_ONCE, OPENED_A_SECOND = LIMITS["open"]
MOST_OF_CLIENT: Final = 15  # rooms, which leaves some for other clients
MISSES_AT_ONCE, MISSES_A_SECOND = 200, 10.0  # of unknown codes, by all clients


class Registry:
    """The rooms; where they are kept is `store`."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, *, store: RoomStore | None = None) -> None:
        self.store = RoomStore(clock) if store is None else store
        self.store.tell = self._tell
        self._clock, self._lock, self._rooms = self.store.clock, self.store.lock, self.store.rooms
        self._adding = threading.Lock()
        self._opening = TokenBucket(OPENED_AT_ONCE, per_second=OPENED_A_SECOND, clock=self._clock)
        self._missing = TokenBucket(MISSES_AT_ONCE, per_second=MISSES_A_SECOND, clock=self._clock)
        self._told: list[tuple[str, str]] = []  # which clients asked for which rooms that are not there
        self._limits, self._openers = RateLimits(self._clock), dict[str, str]()  # the client that opened each room here

    # ---------------------------------------------------------------- the teacher

    def open(self, client: str = "", visitor: str = "") -> OpenedRoom:
        """Open a room. Raises `RoomRefusedError`: there are too many, too many at once, or the store is away."""
        with self._adding:
            self.sweep()
            self._take("open", visitor)
            self._openers = {code: who for code, who in self._openers.items() if code in self._rooms}
            own = [code for code, who in self._openers.items() if who == client]
            if len(own) >= MOST_OF_CLIENT:
                self._drop_one("crowded", own)
            if len(self._rooms) >= MOST_ROOMS:
                self._drop_one("full", self._rooms)
            if not visitor and not self._opening.take():
                raise RoomRefusedError("too-often")
            code = next(code for code in iter(new_code, "") if code not in self._rooms)
            room = Room(code, new_token(), self._clock)
            if not self.store.add(room):
                raise RoomRefusedError("full")
            if client:
                self._openers[code] = client
            return OpenedRoom(code, room.secret)

    def _drop_one(self, why: Why, among: Collection[str]) -> None:
        """Remove the least recently used room that has no listeners."""
        with self._lock:
            now = self._clock()
            rooms = [room for code, room in self._rooms.items() if code in among]
        left = [room for room in rooms if room.is_left and now - room.used > LEFT_SECONDS]
        if not left:
            raise RoomRefusedError(why)
        self.store.end(min(left, key=lambda room: room.used))

    def is_teacher(self, code: str, secret: str) -> bool:
        """Whether this is the secret of an open room."""
        room = self._found(code)
        return room is not None and alike(room.secret, secret)

    def do(self, taught: OpenedRoom, act: Callable[..., bool | None], *of: Any) -> None:
        """Have a room do a teacher-only action, such as `Room.ask`, and notify its listeners.

        `act`, called with the room and `of`, returns False if nothing changed. Raises `RoomRefusedError`: the room is
        gone or refuses, or its store is unreachable.
        """
        room = self._taught(taught)
        if self.store.change(room, lambda room: act(room, *of)) is not False:
            self._tell(room)

    def record(self, taught: OpenedRoom) -> tuple[Kept, ...]:
        """The rounds of a room so far. Raises `RoomRefusedError`: the room is gone."""
        return self._taught(taught).record

    def end(self, taught: OpenedRoom) -> None:
        """End a room, and all that is known of it. Raises `RoomRefusedError`: it is gone, or its store is away."""
        room = self._taught(taught)
        self.store.end(room)
        self._tell(room)

    # ---------------------------------------------------------------- everybody

    def public(self, code: str, *, go_on: bool = True) -> Public | None:
        """The public state of a room, None if there is none; `go_on` first advances its timers, which may wait."""
        room = self._found(code, tick=go_on)
        return None if room is None else room.public

    def counted(self, code: str) -> Counted:
        """How many are in a room and voted; none of a room that is not there."""
        with self._lock:
            room = self._rooms.get(code)
            return Counted(0, 0, 0) if room is None else room.counted()

    def left(self, public: Public) -> float:
        """Seconds left on the timer; 0 without one."""
        return max(0.0, public.until - self._clock()) if public.phase else 0.0

    def missed(self, code: str, client: str = "") -> bool:
        """Count a request for an unknown room; returns whether to say so, False if the client asks too often.

        A class that asks for one ended room counts as one request.
        """
        with self._lock:
            if (code, client) in self._told:
                return True
            may = self._limits.take("miss", client) and self._missing.take()
            if may:
                self._told = [*self._told[-MISSES_AT_ONCE:], (code, client)]
            return may

    def join(self, code: str, client: str = "") -> str:
        """Admit a student; returns the student's token.

        Raises `RoomRefusedError`: the room is unknown, full or locked, or too many join at once.
        """
        token, room = new_token(), self._asked(code)
        if not room.public.locked:  # attempts at a locked room are not counted
            self._take("join", client, code)
        self.store.change(room, lambda room: room.join(token, client))
        return token

    def _take(self, *what: str) -> None:
        with self._lock:
            if not self._limits.take(*what):
                raise RoomRefusedError("too-often")

    def vote(self, code: str, token: str, *, round_: int, choice: int, client: str = "") -> None:
        """Take a student's vote for a choice, from 0, in a round. Raises `RoomRefusedError`: it is not taken."""
        room = self._asked(code, token)
        if room.knows(token):
            self._take("vote", client, code)
        self.store.change(room, lambda room: room.vote(token, round_=round_, choice=choice))
        self._tell(room, counts=True)

    @contextmanager
    def listening(self, code: str, token: str, wake: Callable[[], None], *, counts: bool) -> Iterator[None]:
        """Call `wake` on changes while the context lasts.

        `token` is a student's, who is present meanwhile; "" is an anonymous listener's. `wake` is called after each
        change, from any thread, and with `counts` also when somebody joins, leaves or votes. It must be quick, and it
        reads the state itself. Raises `RoomRefusedError`: the room is unknown, or has too many listeners.
        """
        with self._lock:
            room = self._found(code, tick=False)
            if room is None:
                raise RoomRefusedError("away" if self.store.away else "no-room")
            if token and not room.knows(token):
                raise RoomRefusedError("away" if self.store.away else "no-token")
            if not room.has_place(token):
                raise RoomRefusedError("full")
            room.listeners[wake] = counts
            if token:
                room.come(token)
        self._come_or_go(room, token)
        try:
            yield
        finally:
            with self._lock:
                room.listeners.pop(wake, None)
                if token:
                    room.leave(token)
            self._come_or_go(room, token)

    def _come_or_go(self, room: Room, token: str) -> None:
        if token:
            self.store.came_or_left(room, token)
        self._tell(room, counts=True)

    def sweep(self) -> None:
        """Remove rooms that were unused for long."""
        with self._lock:
            now = self._clock()
            old = [room for room in self._rooms.values() if now - room.used > IDLE_SECONDS]
            for room in old:
                del self._rooms[room.code]
        for room in old:
            self._tell(room)

    def __len__(self) -> int:
        return len(self._rooms)

    def _found(self, code: str, *, tick: bool = True) -> Room | None:
        with self._lock:
            self.sweep()
            room = self._rooms.get(code)
        if room is not None and tick and room.is_due():
            with suppress(RoomRefusedError):  # retried later
                self.store.change(room, Room.tick)
        return room

    def _asked(self, code: str, token: str = "") -> Room:
        """The requested room; may wait. Raises `RoomRefusedError`: there is none."""
        self.store.look(code, token)
        room = self._found(code, tick=False)
        if room is None:
            raise RoomRefusedError("away" if self.store.away else "no-room")
        return room

    def _taught(self, taught: OpenedRoom) -> Room:
        room = self._asked(taught.code)
        if not alike(room.secret, taught.secret):
            raise RoomRefusedError("not-yours")
        return room

    def _tell(self, room: Room, *, counts: bool = False) -> None:
        with self._lock:
            woken = [wake for wake, wants in room.listeners.items() if wants or not counts]
        for wake in woken:
            wake()


try:
    ROOMS = Registry(store=next(filter(None, (chosen() for chosen in provided("stores"))), None))
except StoreError as error:
    raise SystemExit(str(error)) from None  # the app does not start; the message says all
