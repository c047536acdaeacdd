"""Room store of replicas, class `Shared`: local copies, retried changes in Redis, listener and heartbeat threads.

A change is tried on a copy and written if no other replica was first; otherwise the copy is read again and the change
retried. Replicas are notified of what changed; one that missed something reads the room again. Every `BEAT_SECONDS` a
replica compares its copies with the server, and reports which students listen to it. A restarted server that has lost
rooms or recent changes gets them back from the copies. A replica that is silent for `SILENT_SECONDS` has no students.

Limited per replica, not globally: streams of a room (`MOST_STREAMS`), opening of rooms, guesses of codes, and requests
of a client.
"""

import json
import logging
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar, cast

from glassformer.extensions.replicas.store_redis import BY, ERRORS, REV, RedisClient
from glassformer.extensions.rooms.room import (
    Kept,
    Public,
    Question,
    Room,
    RoomRefusedError,
    Round,
    Student,
    TokenBucket,
)
from glassformer.extensions.rooms.store import IDLE_SECONDS, MOST_ROOMS, RoomStore
from glassformer.server.replicas import read, written

BEAT_SECONDS, SILENT_SECONDS = 1.5, 5.0
AGAIN_SECONDS = 0.3  # until a server that did not answer is asked again
TOGETHER_SECONDS = 0.02  # students who join within this time are reported together
TRY_SECONDS = 3.0
LOOKS_AT_ONCE, LOOKS_A_SECOND = 200, 20.0  # of unknown rooms, which anyone may request
HEAR_SECONDS = 0.5
RECORDS = (Kept, Public, Question, Round, Student)  # of which a room's state is made
_LOG = logging.getLogger("glassformer.rooms")
_Result = TypeVar("_Result")
State = Mapping[str, Any]


class Shared(RoomStore):
    """The rooms of all replicas that share a store. Each is one, with two threads of its own."""

    is_shared = True

    def __init__(self, url: str, *, clock: Callable[[], float] | None = None) -> None:
        super().__init__(self._time if clock is None else clock)
        self._link = RedisClient(url, most=MOST_ROOMS, seconds=round(IDLE_SECONDS))
        self._me, self._met, self._offset = secrets.token_hex(8), False, time.time() - time.monotonic()
        self._changing = threading.Lock()  # one change of this replica at a time: it does not fight itself
        self._comparing = threading.Lock()
        self._work, self._stopped = threading.Event(), threading.Event()
        self._next_beat = 0.0
        self._looks = TokenBucket(LOOKS_AT_ONCE, per_second=LOOKS_A_SECOND, clock=time.monotonic)
        self._dirty: set[str] = set()  # rooms whose listeners are to be reported
        self._seen: dict[str, set[str]] = {}  # students of each room who came or left
        self._silent: dict[str, float] = {}  # when each other replica is taken for gone
        self._threads = [threading.Thread(target=one, daemon=True) for one in (self._hear_all, self._keep)]

    def _time(self) -> float:
        """The server's clock, estimated."""
        return time.monotonic() + self._offset

    def begin(self) -> None:
        """See `RoomStore`. A server that does not answer is waited for afterwards."""
        with suppress(RoomRefusedError):
            self._called(self._catch_up)
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """See `RoomStore`: the rooms stay, and all who listen here leave."""
        self.closed = True
        self._tell_all()
        self._stopped.set()
        self._work.set()
        if not self.away:
            with suppress(*ERRORS):
                self._link.publish(self._news(here={}, all=True))
        for thread in self._threads:
            if thread.is_alive():
                thread.join(HEAR_SECONDS + 1)
        self._link.close()

    # ---------------------------------------------------------------- changes

    def add(self, room: Room) -> bool:
        """See `RoomStore`. Raises `RoomRefusedError`: the store is away."""
        if not self._called(self._put, room, {}, room.state(), was=0):
            return False
        with self.lock:
            self.rooms[room.code] = room
        return True

    def change(self, room: Room, act: Callable[[Room], _Result]) -> _Result:
        """See `RoomStore`."""
        with self._changing:
            end = time.monotonic() + TRY_SECONDS
            while time.monotonic() < end:
                with self.lock:
                    if self.rooms.get(room.code) is not room:
                        raise RoomRefusedError("no-room")
                    before, tried = room.state(), room.tried()
                tried.tick()
                result: Any = None
                refused: RoomRefusedError | None = None
                try:
                    result = act(tried)
                except RoomRefusedError as error:  # what it has changed by then counts
                    refused = error
                if self._called(self._put, room, before, tried.state(), was=tried.rev):
                    if refused is not None:
                        raise refused
                    return cast("_Result", result)
                if not self._called(self._read, room.code):
                    self._called(self._catch_up)
        raise RoomRefusedError("too-often")

    def _put(self, room: Room, before: State, after: State, *, was: int) -> bool:
        """Write a change to the server if no other replica was first; returns whether it was written."""
        said = {name: written(value) for name, value in after.items() if name not in before or before[name] != value}
        gone = [name for name in before if name not in after]
        if not said and not gone:
            return True
        news = self._news(code=room.code, rev=was + 1, said=said, gone=gone)
        made = self._link.change(room.code, was=was, new=was + 1, now=self.clock(), said=said, gone=gone, news=news)
        with self.lock:
            if made and room.rev <= was:
                room.become(after).rev = was + 1
        return made

    def _put_back(self, room: Room) -> None:
        """Restore a room, or its latest state, that the server has lost."""
        with self.lock:
            rev, state = room.rev, room.state()
        said, news = {name: written(value) for name, value in state.items()}, self._news(code=room.code, rev=rev)
        self._link.change(room.code, was=None, new=rev, now=self.clock(), said=said, gone=(), news=news)

    def end(self, room: Room) -> None:
        """See `RoomStore`."""
        self._called(self._link.end, room.code, news=self._news(code=room.code, ended=True))
        super().end(room)

    def look(self, code: str, token: str = "") -> None:
        """See `RoomStore`."""
        with self.lock:
            room = self.rooms.get(code)
            unknown = code and (room is None or (token and not room.knows(token))) and self._looks.take()
        if unknown:
            with suppress(RoomRefusedError):
                self._called(self._read, code)

    def came_or_left(self, room: Room, token: str) -> None:
        """See `RoomStore`; it is reported soon."""
        with self.lock:
            self._dirty.add(room.code)
            self._seen.setdefault(room.code, set()).add(token)
        self._work.set()

    def _called(self, call: Callable[..., _Result], *args: Any, **named: Any) -> _Result:
        """The server's answer. Raises `RoomRefusedError`: it does not answer, or recently did not."""
        if self.away:
            raise RoomRefusedError("away")
        try:
            return call(*args, **named)
        except ERRORS as error:
            self._lose(error)
            raise RoomRefusedError("away") from None

    # ---------------------------------------------------------------- copies

    def _all(self) -> list[Room]:
        with self.lock:
            return list(self.rooms.values())

    def _tell_all(self) -> None:
        for room in self._all():
            self.tell(room)

    def _read(self, code: str) -> bool:
        """Read a room again; returns whether the copy is now current."""
        texts = self._link.room(code)
        if not texts:
            return False
        rev, _ = int(texts.pop(REV)), texts.pop(BY)
        try:
            state = {name: read(text, RECORDS) for name, text in texts.items()}
            found = Room(code, state["secret"], self.clock).become(state)
        except Exception:  # an unreadable room does not affect the others
            _LOG.exception("A room in the store was not written by this program")
            return False
        with self.lock:
            if self.clock() - found.used > IDLE_SECONDS:
                return False
            room = self.rooms.setdefault(code, found)
            if room.rev >= rev:
                return room.rev == rev
            room.become(state).rev = rev
        self.tell(room)
        return True

    def _catch_up(self) -> None:
        """Compare all copies with the server, in one thread at a time; a restart is recorded only after success."""
        with self._comparing:
            revs, began = {room.code: room.rev for room in self._all()}, time.monotonic()
            boot, now, there = self._link.overview(self.clock())
            self._offset = now - (began + time.monotonic()) / 2
            for code, rev in there.items():
                if rev > revs.get(code, 0):
                    self._read(code)
            for code, rev in revs.items():
                room = self.rooms.get(code)
                if room is not None and rev > there.get(code, 0):
                    if code in there or (self._met and boot != self.boot):
                        self._put_back(room)
                    else:
                        self._forget(room)
            self.boot, self._met = boot, True

    def _forget(self, room: Room) -> None:
        super().end(room)
        self.tell(room)

    def _lose(self, error: Exception) -> None:
        """Mark the server as unreachable."""
        with self.lock:
            before, self.away = self.away, self._link.host
        if not before:
            _LOG.warning("The store of the rooms at %s does not answer: %s", self.away, error)
            self._tell_all()

    def _find_again(self) -> None:
        """Mark the server as reachable; the other replicas get the full time to report."""
        with self.lock:
            before, self.away = self.away, ""
            if before:
                self._silent = dict.fromkeys(self._silent, time.monotonic() + SILENT_SECONDS)
        if before:
            _LOG.warning("The store of the rooms at %s answers again.", before)
            self._tell_all()

    # ---------------------------------------------------------------- what replicas tell each other

    def _news(self, **said: Any) -> str:
        return json.dumps({"from": self._me, **said}, separators=(",", ":"))

    def _tried(self, work: Callable[[], None], trouble: str) -> None:
        """Do some work of a thread, which must continue whatever happens."""
        try:
            work()
        except ERRORS as error:
            if not self._stopped.is_set():
                self._lose(error)
        except RoomRefusedError:
            pass  # the store is away, or a room is gone
        except Exception:
            _LOG.exception(trouble)

    def _hear_all(self) -> None:
        """The listener thread."""
        while not self._stopped.is_set():
            self._tried(self._listen, "What the store of the rooms says cannot be read")
            self._stopped.wait(AGAIN_SECONDS)

    def _listen(self) -> None:
        with self._link.hearing() as channel:
            self._catch_up()
            self._find_again()
            self._link.publish(self._news(who=True))
            last = time.monotonic()  # it hears at least itself, unless the connection is dead
            while not self._stopped.is_set() and time.monotonic() - last < SILENT_SECONDS:
                heard = channel.get_message(ignore_subscribe_messages=True, timeout=HEAR_SECONDS)
                if heard is not None:
                    last = time.monotonic()
                    self._hear(heard["data"])

    def _hear(self, data: str) -> None:
        said = json.loads(data)
        if said["from"] != self._me and "here" in said:
            self._hear_who_is_there(said["from"], said["here"], whole=said["all"])
        elif said.get("who"):
            self._next_beat = 0.0
            self._work.set()
        elif said.get("ended"):
            room = self.rooms.get(said["code"])
            if room is not None:
                self._forget(room)
        elif "rev" in said:
            self._hear_change(said)

    def _hear_change(self, said: Mapping[str, Any]) -> None:
        with self.lock:
            room = self.rooms.get(said["code"])
            if room is not None and room.rev >= said["rev"]:
                return
            follows = room is not None and room.rev == said["rev"] - 1 and "said" in said
            if room is not None and follows:
                state = {name: value for name, value in room.state().items() if name not in said["gone"]}
                state |= {name: read(text, RECORDS) for name, text in said["said"].items()}
                room.become(state).rev = said["rev"]
        if room is not None and follows:
            self.tell(room, counts="public" not in said["said"])
        else:
            self._read(said["code"])

    def _hear_who_is_there(self, replica: str, here: Mapping[str, list[str]], *, whole: bool) -> None:
        changed = []
        with self.lock:
            self._silent[replica] = time.monotonic() + SILENT_SECONDS
            for room in self.rooms.values():
                before = room.elsewhere.get(replica, frozenset())
                now = frozenset(here.get(room.code, () if whole else before))
                others = {name: there for name, there in room.elsewhere.items() if name != replica}
                room.elsewhere = {**others, replica: now} if now else others
                changed += [room] if now != before else []
        for room in changed:
            self.tell(room, counts=True)

    def _keep(self) -> None:
        """The thread that reports presence, advances timers and compares the copies."""
        while not self._stopped.is_set():
            self._work.wait(self._pause())
            self._work.clear()
            self._stopped.wait(AGAIN_SECONDS if self.away else TOGETHER_SECONDS)
            self._tried(self._beat, "The rooms cannot be compared with their store")

    def _pause(self) -> float:
        ends = [room.public.until - self.clock() for room in self._all() if room.public.phase]
        return max(0.0, min([self._next_beat - time.monotonic(), *ends]))

    def _beat(self) -> None:
        now = time.monotonic()
        whole = self.away != "" or now >= self._next_beat
        if whole:
            self._next_beat = now + BEAT_SECONDS
            self._catch_up()
            self._find_again()
            self._drop_silent(now)
        self._tell_who_is_here(whole=whole)
        for room in self._all():
            if room.is_due():
                self.change(room, Room.tick)
                self.tell(room)

    def _drop_silent(self, now: float) -> None:
        with self.lock:
            gone = [replica for replica, end in self._silent.items() if now > end]
        for replica in gone:
            self._hear_who_is_there(replica, {}, whole=True)
            with self.lock:
                del self._silent[replica]

    def _tell_who_is_here(self, *, whole: bool) -> None:
        with self.lock:
            seen, self._seen = self._seen, {}
            dirty, self._dirty = self._dirty, set()
            here = {code: sorted(room.here()) for code, room in self.rooms.items() if whole or code in dirty}
        if here or whole:
            self._link.publish(self._news(here=here, all=whole))
        for code, tokens in seen.items():
            room = self.rooms.get(code)
            if room is not None:
                with suppress(RoomRefusedError):
                    self.change(room, partial(Room.saw, tokens=tokens))
