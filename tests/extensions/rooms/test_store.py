"""Rooms that replicas share are exact and heard at once, and outlive a replica that ends or is killed."""

import contextlib
import runpy
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.extensions.replicas import store_shared
from glassformer.extensions.replicas.room_store import chosen
from glassformer.extensions.replicas.store_shared import RECORDS
from glassformer.extensions.rooms import registry
from glassformer.extensions.rooms.registry import MOST_ROOMS
from glassformer.extensions.rooms.room import MOST_TOKENS, VOTES_AT_ONCE, Kept, Public, Question, Room, Round, Student
from glassformer.extensions.rooms.store import StoreError
from glassformer.server.replicas import read, written
from tests.extensions.replicas.room_stores import ASKED, agree, opened, refused, replicas
from tests.extensions.rooms.test_bounds import tried
from tests.glassformer.waiting import WAIT, Clock, until
from transformer.i18n import joined, languages, said, say, say_n, through

# ---------------------------------------------------------------- what is written


@through
def loud(text):
    return f"**{text}**!"


TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)
SAID = st.one_of(
    TEXTS,
    TEXTS.map(lambda text: say("Step {n} looks at {what}.", n=3, what=text)),
    st.integers(0, 3).map(lambda n: say_n("{n} vote", "{n} votes", n)),
    TEXTS.map(lambda text: joined(" {} ", [text, loud(say("Show the votes"))])),
)
QUESTIONS = st.builds(Question, TEXTS, SAID, st.lists(SAID, max_size=4).map(tuple), aloud=st.booleans())
ROUNDS = st.builds(Round, st.integers(0, 200), st.none() | st.lists(st.integers(0, 9), max_size=4).map(tuple))
TIMES = st.floats(0, 1e10)
PUBLIC = st.builds(
    Public, page=TEXTS, parameters=st.dictionaries(TEXTS, TEXTS), question=st.none() | QUESTIONS,
    shown=st.lists(ROUNDS, max_size=3).map(tuple), right=st.none() | st.integers(0, 7), told=SAID, at=TIMES,
    phase=st.sampled_from(["", "vote", "discuss"]), until=TIMES,
)  # fmt: skip
STUDENTS = st.builds(Student, TIMES, st.none() | st.integers(0, 7), st.none() | st.tuples(TIMES, TIMES))
STATES = st.fixed_dictionaries(
    {
        "secret": TEXTS, "public": PUBLIC, "used": TIMES, "joins": st.tuples(TIMES, TIMES),
        "record": st.lists(st.builds(Kept, QUESTIONS, st.integers(1, 9), ROUNDS), max_size=3).map(tuple),
        "ahead": st.lists(st.tuples(st.sampled_from(["vote", "discuss"]), TIMES), max_size=2).map(tuple),
    }
)  # fmt: skip


def sentences(value):
    """All texts of a value in all languages."""
    if isinstance(value, str):
        return [said(value, language) for language in languages()]
    parts = value if isinstance(value, tuple) else vars(value).values() if hasattr(value, "__dict__") else ()
    return [text for part in parts for text in sentences(part)]


@given(STATES, st.dictionaries(TEXTS, STUDENTS, max_size=3))
def test_a_state_is_the_same_after_it_was_written_and_read(state, students):
    room = Room("ACDEFG", "", Clock()).become(state | {f"t.{token}": one for token, one in students.items()})
    texts = {name: written(value) for name, value in room.state().items()}
    again = Room("ACDEFG", "", Clock()).become({name: read(text, RECORDS) for name, text in texts.items()})
    assert again.state() == room.state()
    assert type(again.public.parameters) is dict
    assert [sentences(one) for one in again.state().values()] == [sentences(one) for one in room.state().values()]


@pytest.mark.parametrize(
    "found", ["http://x", "redis://h:99999/0", "127.0.0.1:6379", "redis://a:secret@h/x", "redis://h/x?password=secret"]
)
def test_what_is_no_address_of_a_store_is_said_without_its_password(found):
    with pytest.raises(StoreError, match="it must be the address of a Redis or Valkey server") as caught:
        chosen(found)
    assert "secret" not in str(caught.value)


def test_without_the_package_it_is_said_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "glassformer.extensions.replicas.store_shared", None)
    with pytest.raises(StoreError, match=r"pip install 'glassformer\[hosting\]'"):
        chosen("redis://127.0.0.1:6379/0")
    assert chosen("") is None


def test_an_app_with_a_wrong_address_does_not_start(monkeypatch):
    monkeypatch.setenv("GLASSFORMER_STORE", "http://x")
    with pytest.raises(SystemExit, match="GLASSFORMER_STORE is “http://x”"):
        runpy.run_path(registry.__file__)


# ---------------------------------------------------------------- two replicas


def test_what_one_does_the_other_knows_at_once(two, monkeypatch):
    monkeypatch.setattr(store_shared, "BEAT_SECONDS", 1000.0)  # it is told, and does not find out by comparing
    here, there = two
    taught, heard = opened(here, there), threading.Event()
    assert here.store.boot == there.store.boot
    assert there.is_teacher(taught.code, taught.secret)
    with there.listening(taught.code, "", heard.set, counts=False):
        for n in range(10):
            heard.clear()
            here.do(taught, Room.move, "masks", {"src": str(n)})
            assert heard.wait(WAIT)
            assert there.public(taught.code) == here.public(taught.code)
    there.end(taught)
    until(lambda: here.public(taught.code) is None)
    refused("no-room", here.do, taught, Room.show)


def test_two_hundred_vote_at_once_on_both_and_each_vote_counts_once(two):
    taught = opened(*two)
    tokens = [two[n % 2].join(taught.code) for n in range(MOST_TOKENS)]
    refused("full", two[0].join, taught.code)
    agree(*two, taught.code)

    def vote(n, rooms):
        return tried(lambda: rooms.vote(taught.code, tokens[n], round_=1, choice=n % 3) is None)

    with ThreadPoolExecutor(16) as pool:  # each on both, at one moment
        done = [pool.submit(vote, n, rooms) for n in range(MOST_TOKENS) for rooms in two]
        assert sum(one.result() is True for one in done) == MOST_TOKENS
    two[1].do(taught, Room.show)
    agree(*two, taught.code)
    expected = tuple(sum(n % 3 == choice for n in range(MOST_TOKENS)) for choice in range(3))
    assert two[0].public(taught.code).shown == (Round(MOST_TOKENS, expected),)
    assert two[0].record(taught) == two[1].record(taught)


def test_a_student_is_counted_once_wherever_the_streams_are(two):
    here, there = two
    taught = opened(here, there)
    token, woken = here.join(taught.code), threading.Event()
    there.store.look(taught.code, token)
    with there.listening(taught.code, "", woken.set, counts=True):
        with here.listening(taught.code, token, lambda: None, counts=False):
            until(lambda: there.counted(taught.code).students == 1)
            assert woken.is_set()
            with there.listening(taught.code, token, lambda: None, counts=False):
                agree(here, there, taught.code)
                assert there.counted(taught.code).students == 1
        until(lambda: here.counted(taught.code).students == 0 == there.counted(taught.code).students)


def test_what_a_replica_has_not_heard_yet_it_looks_for(two, monkeypatch):
    here, there = two
    monkeypatch.setattr(there.store, "_hear", lambda data: None)
    taught = here.open()
    token = there.join(taught.code)
    here.store.look(taught.code, token)
    with here.listening(taught.code, token, lambda: None, counts=False):
        assert here.counted(taught.code).students == 1
    here.do(taught, Room.ask, ASKED)
    for n in range(VOTES_AT_ONCE):  # as often as one may, on both together
        refused("no-choice", two[n % 2].vote, taught.code, token, round_=1, choice=9)
    refused("too-often", there.vote, taught.code, token, round_=1, choice=0)


def test_a_time_that_is_up_is_up_once(two):
    taught = opened(*two)
    two[0].do(taught, lambda room: room.start(0.2, 0.2))
    until(lambda: all(one.public(taught.code).phase == "" and one.public(taught.code).shown for one in two))
    agree(*two, taught.code)
    assert two[0].public(taught.code).round == 2
    assert len(two[0].record(taught)) == 2


def test_there_are_so_many_rooms_in_all(redis_server):
    redis_server.empty()
    clock = Clock(time.time())
    with replicas(redis_server.url, clock=clock) as two:
        for n in range(MOST_ROOMS):
            clock.now += 30
            two[n % 2].open()
        until(lambda: all(len(one) == MOST_ROOMS for one in two))
        clock.now += 30
        refused("full", two[0].open)
        two[0].store.rooms.popitem()  # as if it had not heard of it yet
        refused("full", two[0].open)


def test_a_replica_that_ends_leaves_the_rooms_to_the_others(redis_server):
    redis_server.empty()
    with replicas(redis_server.url) as (here, there):
        taught, woken = opened(here, there), threading.Event()
        token = here.join(taught.code)
        with here.listening(taught.code, token, woken.set, counts=False):
            until(lambda: there.counted(taught.code).students == 1)
            woken.clear()
            here.store.close()
            assert woken.is_set()
            assert here.store.closed
        until(lambda: there.counted(taught.code).students == 0)
        there.vote(taught.code, token, round_=1, choice=0)
        with replicas(redis_server.url, 1) as [new]:
            assert new.counted(taught.code).voted == 1
            assert new.store.boot == there.store.boot


def test_students_of_a_replica_that_was_killed_vanish(two, monkeypatch):
    """Its threads end without a word; processes that are killed are in `tests/deploy/test_replicas.py`."""
    monkeypatch.setattr(store_shared, "SILENT_SECONDS", 1.6 * store_shared.BEAT_SECONDS)
    here, there = two
    taught = opened(here, there)
    with contextlib.ExitStack() as streams:
        for token in [there.join(taught.code) for _ in range(3)]:
            there.vote(taught.code, token, round_=1, choice=0)
            streams.enter_context(there.listening(taught.code, token, lambda: None, counts=False))
        until(lambda: here.counted(taught.code).students == 3)
        there.store._stopped.set()
        until(lambda: here.counted(taught.code).students == 0)
        assert here.counted(taught.code).expected == 3
