"""What all rooms of a server hold stays bounded, whatever comes in, and goes with them."""

import gc
import tracemalloc
from contextlib import ExitStack, suppress

import pytest

from glassformer.extensions.rooms import registry, room, store
from glassformer.extensions.rooms.registry import Registry
from glassformer.extensions.rooms.room import OpenedRoom, Question, Room, RoomRefusedError
from tests.glassformer.waiting import Clock

MOST_ROOMS, MOST_BYTES = 3, 3_000_000
LONG = "x" * 100_000
ADDRESS = {f"p{place}": "y" * (room.MOST_ADDRESS // 40) for place in range(30)}


@pytest.fixture
def held():
    """A function that says how many bytes have been taken since and not given back."""
    tracemalloc.start()
    yield lambda: (gc.collect() and 0) or tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()


def tried(call, *args, **named):
    """What came of it; None if it was refused."""
    with suppress(RoomRefusedError):
        return call(*args, **named)
    return None


def fill(rooms, taught, clock):
    """Everything that anybody can do in one room, more often than it is taken; the tokens of the last round."""
    for round_ in range(3):
        tried(rooms.do, taught, Room.move, f"page-{round_}", ADDRESS)
        tried(rooms.do, taught, Room.move, "page", {"src": LONG})
        for count in (1, room.MOST_CHOICES, room.MOST_CHOICES + 1):
            tried(rooms.do, taught, Room.ask, Question(f"q{round_}.{count}", "?", ("a",) * count))
        tokens = [token for _ in range(room.MOST_TOKENS + 50) if (token := tried(rooms.join, taught.code))]
        number = rooms.public(taught.code).round
        for token in [*tokens, LONG]:
            for choice in (-1, 0, room.MOST_CHOICES):
                tried(rooms.vote, taught.code, token, round_=number, choice=choice)
        acts = [Room.show, lambda one: one.start(60, 60), lambda one: one.let_few(True)]
        acts += [Room.again, Room.show] * (room.MOST_KEPT if round_ == 1 else 5)
        for act in (*acts, Room.answer, lambda one, own=bool(round_ % 2): one.let_own(own)):
            tried(rooms.do, taught, act)
        clock.now += 100
    return tokens


def test_what_the_rooms_hold_is_bounded_and_goes_with_them(monkeypatch, held):
    for module in (registry, store):
        monkeypatch.setattr(module, "MOST_ROOMS", MOST_ROOMS, raising=False)
    monkeypatch.setattr(room, "MOST_KEPT", 20)
    clock = Clock()
    rooms = Registry(clock)
    empty, full, opened = held(), [], []
    with ExitStack() as streams:
        for again in range(2):
            for _ in range(MOST_ROOMS + 5):
                clock.now += 30
                opened += [one for one in [tried(rooms.open)] if one]
            for one in opened:
                tokens = fill(rooms, one, clock)
                # More streams than there may be: of one student, of all, of nobody.
                for token in [] if again else ["", tokens[0], *tokens] * 3 + [""] * room.MOST_STREAMS + [LONG]:
                    tried(streams.enter_context, rooms.listening(one.code, token, lambda: None, counts=False))
            for wrong in ("", LONG, "AAAAAA", registry.new_code()):
                for call in (rooms.public, rooms.counted, rooms.join):
                    tried(call, wrong)
                tried(rooms.end, OpenedRoom(wrong, LONG))
            full.append(held() - empty)
            students = sum(len(one.state()) for one in rooms._rooms.values())
            assert (len(rooms), students > MOST_ROOMS * room.MOST_TOKENS) == (MOST_ROOMS, True)  # as full as it can be
    assert full[1] <= full[0] * 1.01
    assert max(full) < MOST_BYTES
    for one in opened:
        rooms.end(one)
    assert held() - empty < 0.05 * full[0]
