"""What all rooms of a server hold stays bounded, whatever comes in, and goes with them."""

import sys
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import fields, is_dataclass

import pytest

from glassformer.extensions.rooms import registry, store
from glassformer.extensions.rooms.registry import Registry
from glassformer.extensions.rooms.room import (
    MOST_ADDRESS,
    MOST_CHOICES,
    MOST_KEPT,
    MOST_STREAMS,
    MOST_TOKENS,
    OpenedRoom,
    Question,
    Room,
    RoomRefusedError,
)
from tests.glassformer.waiting import Clock

MOST_ROOMS, MOST_BYTES = 6, 6_000_000
LONG = "x" * 100_000


def parts(one):
    """What an object holds."""
    if isinstance(one, Mapping):
        return [*one.keys(), *one.values()]
    if isinstance(one, (list, tuple, set, frozenset)):
        return list(one)
    if is_dataclass(one):
        return [getattr(one, field.name) for field in fields(one)]
    return list(vars(one).values()) if type(one).__module__.startswith("glassformer.") else []


def held(rooms):
    """How many objects a registry holds, and how many bytes they are."""
    seen, left = {}, [rooms]
    while left:
        one = left.pop()
        if id(one) not in seen:
            seen[id(one)] = one
            left += [part for part in parts(one) if not isinstance(part, (int, float))]  # small ones are shared
    return len(seen), sum(map(sys.getsizeof, seen.values()))


def tried(call, *args, **named):
    """What came of it; None if it was refused."""
    with suppress(RoomRefusedError):
        return call(*args, **named)
    return None


def fill(rooms, opened, clock, number):
    """Everything that anybody can do in one room, more often than it is taken."""
    taught = opened[number]
    for round_ in range(3):
        parameters = {f"p{place}": "y" * (MOST_ADDRESS // 40) for place in range(30)}
        tried(rooms.do, taught, Room.move, f"page-{round_}", parameters)
        tried(rooms.do, taught, Room.move, "page", {"src": LONG})
        for count in (1, MOST_CHOICES, MOST_CHOICES + 1):
            tried(rooms.do, taught, Room.ask, Question(f"q{round_}.{count}", "?", ("a",) * count))
        tokens = [token for _ in range(MOST_TOKENS + 50) if (token := tried(rooms.join, taught.code))]
        public = rooms.public(taught.code)
        for token in tokens:
            for choice in (-1, 0, 1, MOST_CHOICES):
                tried(rooms.vote, taught.code, token, round_=public.round, choice=choice)
        tried(rooms.vote, taught.code, LONG, round_=1, choice=1)
        tried(rooms.do, taught, Room.show)
        tried(rooms.do, taught, lambda room: room.start(60, 60))
        tried(rooms.do, taught, lambda room: room.let_few(True))
        for _ in range(MOST_KEPT if round_ == 1 else 5):
            tried(rooms.do, taught, Room.again)
            tried(rooms.do, taught, Room.show)
        tried(rooms.do, taught, Room.answer)
        tried(rooms.do, taught, Room.let_own, bool(round_ % 2))
        clock.now += 100
    return tokens


def listen(rooms, code, tokens, open_streams):
    """More streams than there may be: of one student, of all, of nobody."""
    for token in ["", tokens[0] if tokens else "", *tokens] * 3 + [""] * MOST_STREAMS + [LONG]:
        tried(open_streams.enter_context, rooms.listening(code, token, lambda: None, counts=False))


def test_what_the_rooms_hold_is_bounded_and_goes_with_them(monkeypatch):
    monkeypatch.setattr(registry, "MOST_ROOMS", MOST_ROOMS)
    monkeypatch.setattr(store, "MOST_ROOMS", MOST_ROOMS)
    clock = Clock()
    rooms = Registry(clock)
    empty, _ = held(rooms)
    counts, opened = [], []
    with ExitStack() as streams:
        for again in range(2):
            for _ in range(MOST_ROOMS + 5):
                clock.now += 30
                opened += [one for one in [tried(rooms.open)] if one]
            for number, one in enumerate(opened):
                tokens = fill(rooms, opened, clock, number)
                if not again:
                    listen(rooms, one.code, tokens, streams)
            for wrong in ("", LONG, "AAAAAA", registry.new_code()):
                for call in (rooms.public, rooms.counted, rooms.join):
                    tried(call, wrong)
                tried(rooms.end, OpenedRoom(wrong, LONG))
            counts.append(held(rooms))
    assert len(rooms) == MOST_ROOMS
    (first, first_bytes), (second, second_bytes) = counts
    assert first > MOST_ROOMS * (MOST_TOKENS + MOST_STREAMS)  # as full as it can be
    assert second <= first * 1.01
    assert max(first_bytes, second_bytes) < MOST_BYTES
    for one in opened:
        rooms.end(one)
    assert held(rooms)[0] == pytest.approx(empty, abs=5)
