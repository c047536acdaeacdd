"""Room store in this process's memory, base class of shared stores; limits on rooms and their idle time.

Every process reads its own copies of rooms, without waiting. A change is tried on a copy of the room's state and counts
once it is complete.
"""

import secrets
import threading
import time
from collections.abc import Callable
from typing import Final, TypeVar

from glassformer.extensions.rooms.room import Room
from transformer.errors import SentenceError

MOST_ROOMS: Final = 20
IDLE_SECONDS: Final = 4 * 3600.0
_Result = TypeVar("_Result")


class StoreError(SentenceError, RuntimeError):
    """The store that was named cannot be used."""


class RoomStore:
    """Rooms of this process alone."""

    is_shared = False
    away = ""  # where a shared store is, while it does not answer

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.boot = secrets.token_urlsafe(6)  # identifies this start of the server or store
        self.lock = threading.RLock()  # never held while anything waits
        self.rooms: dict[str, Room] = {}
        self.tell: Callable[..., None] = lambda room, *, counts=False: None  # wakes who listens to a room here
        self.closed = False

    def begin(self) -> None:
        """Be ready, before there is a visitor. Raises `StoreError`: never with what was named."""

    def add(self, room: Room) -> bool:
        """Have one room more; whether there is space for it."""
        with self.lock:
            self.rooms[room.code] = room
        return True

    def change(self, room: Room, act: Callable[[Room], _Result]) -> _Result:
        """Call `act` on a room, after its timers are advanced.

        Raises `RoomRefusedError`: the room refuses or is gone, or the store is unreachable; then nothing was changed.
        """
        with self.lock:
            room.tick()
            return act(room)

    def end(self, room: Room) -> None:
        """Let go of a room. Raises `RoomRefusedError`: the store is away."""
        with self.lock:
            self.rooms.pop(room.code, None)

    def look(self, code: str, token: str = "") -> None:
        """Look whether others know a room, or a student, that is not known here; this may wait."""

    def came_or_left(self, room: Room, token: str) -> None:
        """A student came or left here."""
        with self.lock:
            room.saw((token,))

    def close(self) -> None:
        """Release this process's resources."""
        self.closed = True
        with self.lock:
            gone = list(self.rooms.values())
            self.rooms.clear()
        for room in gone:
            self.tell(room)
