"""Rooms that replicas share by a real redis-server: exact, heard at once, and back by themselves whatever ends."""

import asyncio
import contextlib
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import redis
from hypothesis import given
from hypothesis import strategies as st

from tests.source_code import ROOT
from tests.ui.server.redis_server import RedisServer
from tests.ui.waiting import WAIT, Clock, until
from ui.server import codes, store_redis, store_shared
from ui.server.events import stream
from ui.server.public import Kept, Public, Question, RefusedError, Round
from ui.server.registry import MOST_ROOMS, Registry
from ui.server.room import MOST_TOKENS, VOTES_AT_ONCE, Room, Student
from ui.server.store import StoreError, chosen
from ui.server.store_plain import read, written
from ui.server.store_shared import SILENT_SECONDS, Shared
from words import joined, languages, said, say, say_n, through

ASKED = Question("masks.1", say("How many of {n}?", n=3), ("one", "two", "three"))


@contextlib.contextmanager
def replicas(url, n=2, **named):
    """So many replicas in this process, with their threads."""
    found = [Registry(store=Shared(url, **named)) for _ in range(n)]
    for one in found:
        one.begin()
    try:
        yield found
    finally:
        for one in found:
            one.close()


@pytest.fixture
def two(redis_server):
    redis_server.empty()
    with replicas(redis_server.url) as found:
        yield found


@pytest.fixture
def own_server(tmp_path):
    """A server that a test may end."""
    with RedisServer(tmp_path) as server:
        yield server


def opened(here, there):
    """A room that both know, in which a question is asked."""
    taught = here.open()
    here.do(taught, Room.ask, ASKED)
    until(lambda: (known := there.public(taught.code)) and known.taken)
    return taught


def refused(why, call, *args, **named):
    with pytest.raises(RefusedError) as caught:
        call(*args, **named)
    assert caught.value.why == why


def agree(one, other, code):
    until(lambda: one.public(code) == other.public(code) and one.counted(code) == other.counted(code))


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
    if isinstance(value, tuple):
        return [text for part in value for text in sentences(part)]
    if isinstance(value, Question):
        return sentences((value.text, *value.choices))
    return [text for part in vars(value).values() for text in sentences(part)] if hasattr(value, "__dict__") else []


@given(STATES, st.dictionaries(TEXTS, STUDENTS, max_size=3))
def test_a_state_is_the_same_after_it_was_written_and_read(state, students):
    room = Room("ACDEFG", "", Clock()).become(state | {f"t.{token}": one for token, one in students.items()})
    texts = {name: written(value) for name, value in room.state().items()}
    again = Room("ACDEFG", "", Clock()).become({name: read(text) for name, text in texts.items()})
    assert again.state() == room.state()
    assert type(again.public.parameters) is dict
    assert [sentences(one) for one in again.state().values()] == [sentences(one) for one in room.state().values()]


@pytest.mark.parametrize(
    "found", ["http://x", "redis://h:99999/0", "redis:h", "127.0.0.1:6379", "redis://h/zero", "redis://a:secret@h/x"]
)
def test_what_is_no_address_of_a_store_is_said_without_its_password(found):
    with pytest.raises(StoreError, match="it must be the address of a Redis or Valkey server") as caught:
        chosen(found)
    assert "secret" not in str(caught.value)


def test_without_the_package_it_is_said_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "ui.server.store_shared", None)
    with pytest.raises(StoreError, match=r"pip install 'glassformer\[hosting\]'"):
        chosen("redis://127.0.0.1:6379/0")
    assert not chosen("").is_shared


def test_an_app_with_a_wrong_address_does_not_start():
    child = subprocess.run(
        [sys.executable, "-c", "import ui.server.registry"], env={"GLASSFORMER_STORE": "http://x"}, cwd=ROOT,
        capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert child.returncode == 1
    assert child.stderr.count("\n") == 1
    assert child.stderr.startswith("GLASSFORMER_STORE is “http://x”")


# ---------------------------------------------------------------- two replicas


def test_what_one_does_the_other_knows_at_once(two):
    here, there = two
    taught, heard, seconds = opened(here, there), threading.Event(), []
    assert here.boot == there.boot
    assert there.is_teacher(taught.code, taught.secret)
    with there.listening(taught.code, "", heard.set, counts=False):
        for n in range(30):
            heard.clear()
            began = time.perf_counter()
            here.do(taught, Room.move, "masks", {"src": str(n)})
            assert heard.wait(5)
            seconds.append(time.perf_counter() - began)
            assert there.public(taught.code) == here.public(taught.code)
    print(
        f"a move is heard by the other after {sorted(seconds)[15] * 1000:.1f} ms, at most {max(seconds) * 1000:.1f}"
    )
    assert sorted(seconds)[15] < 0.15
    there.end(taught)
    until(lambda: here.public(taught.code) is None)
    refused("no-room", here.do, taught, Room.show)


def test_two_hundred_vote_at_once_on_both_and_each_vote_counts_once(two):
    taught = opened(*two)
    tokens = [two[n % 2].join(taught.code) for n in range(MOST_TOKENS)]
    refused("full", two[0].join, taught.code)
    agree(*two, taught.code)

    def vote(n, rooms):
        with contextlib.suppress(RefusedError):
            rooms.vote(taught.code, tokens[n], round_=1, choice=n % 3)
            return 1
        return 0

    with ThreadPoolExecutor(16) as pool:  # each on both, at one moment
        done = [pool.submit(vote, n, rooms) for n in range(MOST_TOKENS) for rooms in two]
        assert sum(one.result() for one in done) == MOST_TOKENS
    two[1].do(taught, Room.show)
    agree(*two, taught.code)
    expected = tuple(sum(n % 3 == choice for n in range(MOST_TOKENS)) for choice in range(3))
    assert two[0].public(taught.code).shown == (Round(MOST_TOKENS, expected),)
    assert two[0].record(taught) == two[1].record(taught)


def test_a_student_is_counted_once_wherever_the_streams_are(two):
    here, there = two
    taught = opened(here, there)
    token, woken = here.join(taught.code), threading.Event()
    there.look(taught.code, token)
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
    monkeypatch.setattr(there._store, "_hear", lambda data: None)
    taught = here.open()
    token = there.join(taught.code)
    here.look(taught.code, token)
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
        two[0]._store.rooms.popitem()  # as if it had not heard of it yet
        refused("full", two[0].open)


def test_a_replica_that_ends_leaves_the_rooms_to_the_others(redis_server):
    redis_server.empty()
    with replicas(redis_server.url) as (here, there):
        taught, woken = opened(here, there), threading.Event()
        token = here.join(taught.code)
        with here.listening(taught.code, token, woken.set, counts=False):
            until(lambda: there.counted(taught.code).students == 1)
            woken.clear()
            here.close()
            assert woken.is_set()
            assert here.closed
        until(lambda: there.counted(taught.code).students == 0)
        there.vote(taught.code, token, round_=1, choice=0)
        with replicas(redis_server.url, 1) as [new]:
            assert new.counted(taught.code).voted == 1
            assert new.boot == there.boot


def test_another_process_votes_too_and_its_students_vanish_when_it_is_killed(redis_server):
    redis_server.empty()
    with replicas(redis_server.url, 1) as [rooms]:
        taught = rooms.open()
        rooms.do(taught, Room.ask, ASKED)
        tokens = [rooms.join(taught.code) for _ in range(200)]
        command = [sys.executable, "-m", "tests.ui.server.replica", redis_server.url, taught.code, *tokens[::2]]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as child:
            try:
                assert child.stdout.readline() == "ready\n"
                child.stdin.write("go\n")
                child.stdin.flush()
                for n, token in enumerate(tokens[1::2]):
                    rooms.vote(taught.code, token, round_=1, choice=n % 3)
                assert child.stdout.readline() == "there\n"
                until(lambda: rooms.counted(taught.code).students == 100)
                rooms.do(taught, Room.show)
                assert rooms.public(taught.code).shown == (Round(200, (68, 66, 66)),)
            finally:
                child.kill()
        began = time.monotonic()
        until(lambda: rooms.counted(taught.code).students == 0)
        print(f"students of a killed replica are gone after {time.monotonic() - began:.1f} s")
        assert time.monotonic() - began < 3 * SILENT_SECONDS
        assert rooms.counted(taught.code).expected == 200


# ---------------------------------------------------------------- a store that is away


def end_and_start(server):
    server.stop()
    time.sleep(0.3)
    server.start()


def stay_away(server):
    server.stop()
    time.sleep(3)
    server.start()


def empty(server):
    server.empty()


def pause(server):
    server.pause()
    time.sleep(store_shared.BEAT_SECONDS + 2.5)
    server.pause(False)


@pytest.mark.parametrize(
    ("happens", "kept"),
    [(end_and_start, False), (end_and_start, True), (stay_away, False), (empty, False), (pause, False)],
)
def test_whatever_happens_to_the_store_all_is_back(tmp_path, happens, kept):
    with RedisServer(tmp_path, kept=kept) as server, replicas(server.url) as two:
        taught = opened(*two)
        tokens = [two[n % 2].join(taught.code) for n in range(12)]
        for n, token in enumerate(tokens[:6]):
            two[n % 2].vote(taught.code, token, round_=1, choice=0)
        agree(*two, taught.code)
        gone = two[0].open()
        until(lambda: two[1].public(gone.code))
        two[1].end(gone)
        until(lambda: two[0].public(gone.code) is None)
        with two[0].listening(taught.code, tokens[0], lambda: None, counts=False):
            happens(server)
            until(lambda: not any(one.away for one in two))
            until(lambda: all(one.counted(taught.code).students == 1 for one in two))
            for n, token in enumerate(tokens):
                until(lambda n=n, token=token: voted(two[n % 2], taught.code, token))
            agree(*two, taught.code)
            assert two[0].counted(taught.code).voted == 12
            two[1].do(taught, Room.show)
            agree(*two, taught.code)
        assert two[0].public(taught.code).shown == (Round(12, (6, 6, 0)),)
        assert [one.public(gone.code) for one in two] == [None, None]
        with replicas(server.url, 1) as [new]:
            until(lambda: new.public(taught.code) == two[0].public(taught.code))


def test_a_store_that_ends_again_while_it_gets_its_rooms_back_gets_them_later(own_server, monkeypatch):
    with replicas(own_server.url, 1) as [rooms]:
        taught = [rooms.open() for _ in range(3)]
        rooms.do(taught[2], Room.ask, ASKED)
        link, asked = rooms._store._link, []
        change = link.change

        def failing(*args, **named):
            asked.append(named)
            if len(asked) == 2:
                raise OSError("gone again")
            return change(*args, **named)

        monkeypatch.setattr(link, "change", failing)
        own_server.empty()
        until(lambda: len(asked) >= 4 and not rooms.away)  # one, one in vain, and the two that are left
        with replicas(own_server.url, 1) as [new]:
            until(lambda: len(new) == 3)
            assert new.public(taught[2].code) == rooms.public(taught[2].code)


def test_a_store_that_has_lost_the_latest_gets_it_back(two, redis_server):
    taught = opened(*two)
    with redis.Redis.from_url(redis_server.url, decode_responses=True) as asked:
        name = f"{store_redis.PREFIX}room:{taught.code}"
        before = asked.hgetall(name)
        two[0].do(taught, Room.move, "masks", {})
        two[0].do(taught, Room.show)
        until(lambda: two[1].public(taught.code) == two[0].public(taught.code))
        asked.delete(name)
        asked.hset(name, mapping=before)
        two[1].do(taught, Room.move, "step", {})
        public = two[1].public(taught.code)
        assert (public.moves, public.taken, len(public.shown)) == (2, False, 1)
        agree(*two, taught.code)


def voted(rooms, code, token):
    """Vote until it is counted, as browsers do."""
    try:
        rooms.vote(code, token, round_=1, choice=1)
    except RefusedError as refusal:
        if refusal.why not in ("away", "voted", "too-often"):
            raise
        return refusal.why == "voted"
    return True


def test_while_the_store_is_away_nothing_waits_and_all_can_be_read(own_server):
    with replicas(own_server.url) as (here, there):
        taught, woken = opened(here, there), threading.Event()
        token = here.join(taught.code)
        with here.listening(taught.code, token, woken.set, counts=False):
            own_server.pause()
            woken.clear()
            began = time.monotonic()
            refused("away", here.vote, taught.code, token, round_=1, choice=0)
            assert time.monotonic() - began < 4
            assert woken.is_set()
            began = time.monotonic()
            for call in (
                here.open,
                lambda: here.end(taught),
                lambda: here.do(taught, Room.show),
                lambda: here.join(taught.code),
            ):
                refused("away", call)
            refused("away", here.listening("ACDEFG", "", lambda: None, counts=False).__enter__)
            refused("away", here.listening(taught.code, codes.new_token(), lambda: None, counts=False).__enter__)
            assert here.public(taught.code).question == ASKED
            assert here.counted(taught.code).students == 1
            assert here.away == f"127.0.0.1:{own_server.port}"
            assert time.monotonic() - began < 1
            own_server.pause(False)
            until(lambda: not here.away)
        with contextlib.suppress(RefusedError):  # the first may have been counted after all
            here.vote(taught.code, token, round_=1, choice=0)
        assert here.counted(taught.code).voted == 1


def test_a_replica_that_starts_without_its_store_finds_it_later(own_server):
    with replicas(own_server.url, 1) as [other]:
        taught = other.open()
        own_server.stop()
        with replicas(own_server.url, 1) as [late]:
            assert late.away
            refused("away", late.listening(taught.code, "", lambda: None, counts=False).__enter__)
            own_server.start()
            until(lambda: late.is_teacher(taught.code, taught.secret))


def test_a_stream_stays_open_and_says_that_the_store_is_away_and_back(own_server):
    async def heard():
        found = []
        async with asyncio.timeout(WAIT):
            async for part in stream(here, taught.code, "", counts=False):
                kind = part.decode().partition("event: ")[2].partition("\n")[0]
                found += [kind] if kind not in ("", "room") else []
                if kind == "room" and found == ["hello"]:
                    own_server.stop()
                elif kind == "away":
                    own_server.start()
                elif kind == "hello" and "away" in found:
                    here.end(taught)
        return found

    with replicas(own_server.url) as (here, there):
        taught = opened(here, there)
        assert asyncio.run(heard()) == ["hello", "away", "hello", "ended"]
