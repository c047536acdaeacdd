"""A room counts exactly, keeps its bounds, and is gone when it has to be, whatever comes in."""

import csv
import io
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from glassformer.extensions.rooms import registry, room
from glassformer.extensions.rooms.registry import Registry, client
from glassformer.extensions.rooms.room import OpenedRoom, Question, Room, RoomRefusedError
from glassformer.shared.csv_export import Origin, saved
from tests.extensions.replicas.room_stores import ASKED, refused
from tests.extensions.rooms.test_bounds import tried
from tests.glassformer.waiting import Clock

pytestmark = pytest.mark.usefixtures("each_store")
# What happens very often happens in memory alone: that a shared room is the same is in `test_store`.
often = pytest.mark.parametrize("each_store", ["in memory"], indirect=True)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def rooms(clock, each_store):
    return Registry(clock)


@pytest.fixture
def taught(rooms):
    return rooms.open()


@pytest.fixture
def asked(rooms, taught):
    """A room in which a lesson's question is asked."""
    rooms.do(taught, Room.ask, ASKED)
    return taught


NEXT = Question("masks.2", "And now?", ("a", "b"))


def vote_all(rooms, taught, choices):
    round_ = rooms.public(taught.code).round
    for choice in choices:
        rooms.vote(taught.code, rooms.join(taught.code), round_=round_, choice=choice)


# ---------------------------------------------------------------- codes


@often
def test_a_code_is_read_as_people_type_it_and_what_is_none_is_none():
    code = registry.new_code()
    assert registry.read_code(f" {code[:3].lower()}-{code[3:]} ") == code
    assert all(len(set(alike) & set(registry.ALPHABET)) < 2 for alike in ("0OQ", "1IL", "2Z", "5S", "6G", "8B", "UV"))
    for typed in ("", " - ", code[1:], code * 2, f"{code[1:]}0", f"{code[1:]}é", f"{code[1:]}Ａ", "\ud800", "x" * 40):
        found = registry.read_code(typed)
        assert found == "" or (len(found) == registry.LENGTH and set(found) <= set(registry.ALPHABET)), typed


def test_the_class_goes_where_its_teacher_goes_and_hears_of_it_once(rooms, taught):
    woken = []
    with rooms.listening(taught.code, "", lambda: woken.append(1), counts=False):
        rooms.do(taught, Room.move, "masks", {"src": "a"})
        rooms.do(taught, Room.move, "masks", {"src": "a"})
    public = rooms.public(taught.code)
    assert (public.page, public.parameters, public.moves, len(woken)) == ("masks", {"src": "a"}, 1, 1)
    assert not any((public.own, public.answered, public.few, public.locked))  # what a teacher did not ask for


def test_only_the_secret_makes_a_teacher(rooms, taught):
    for secret in (rooms.open().secret, "", "ü", "\ud800"):
        wrong = OpenedRoom(taught.code, secret)
        assert not rooms.is_teacher(wrong.code, wrong.secret)
        for act in ((Room.show,), (Room.again,), (Room.move, "masks", {}), (Room.ask, ASKED)):
            refused("not-yours", rooms.do, wrong, *act)
        refused("not-yours", rooms.end, wrong)
        refused("not-yours", rooms.record, wrong)
    assert rooms.public(taught.code).version == 0
    assert rooms.is_teacher(taught.code, taught.secret)


# ---------------------------------------------------------------- votes


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])  # it makes its own rooms
@given(st.lists(st.integers(0, 2), max_size=30), st.lists(st.integers(0, 2), max_size=30))
def test_votes_are_counted_exactly_in_two_rounds(first, second):
    rooms = Registry(Clock())
    taught = rooms.open()
    rooms.do(taught, Room.ask, ASKED)
    for chosen in (first, second):
        vote_all(rooms, taught, chosen)
        assert rooms.counted(taught.code).voted == len(chosen)
        rooms.do(taught, Room.show)
        latest = rooms.public(taught.code).shown[-1]
        assert latest.voted == len(chosen)
        enough = len(chosen) >= room.LEAST_VOTES
        assert latest.counts == (tuple(chosen.count(choice) for choice in range(3)) if enough else None)
        if chosen is first:
            rooms.do(taught, Room.again)
    assert [one.voted for one in rooms.public(taught.code).shown] == [len(first), len(second)]


@often
def test_many_threads_vote_and_each_vote_counts_once():
    rooms = Registry()
    taught = rooms.open()
    rooms.do(taught, Room.ask, ASKED)
    tokens = [rooms.join(taught.code) for _ in range(100)]
    begin = threading.Barrier(16)

    def some(first):
        begin.wait()
        done = 0
        for place in range(100):
            with suppress(RoomRefusedError):  # others were first
                rooms.vote(taught.code, tokens[(place + first) % 100], round_=1, choice=(place + first) % 100 % 3)
                done += 1
        return done

    with ThreadPoolExecutor(16) as pool:
        assert sum(pool.map(some, range(16))) == 100
    rooms.do(taught, Room.show)
    assert rooms.public(taught.code).shown[-1].counts == (34, 33, 33)


def test_what_is_no_vote_is_refused(rooms, taught):
    code, token, other = taught.code, rooms.join(taught.code), rooms.join(taught.code)
    refused("no-question", rooms.vote, code, token, round_=0, choice=0)
    rooms.do(taught, Room.ask, ASKED)
    for why, where, who, round_, choice in (
        ("no-room", "AAAAAA", token, 1, 0), ("no-token", code, registry.new_token(), 1, 0), ("over", code, token, 0, 0),
        ("no-choice", code, token, 1, 3), ("no-choice", code, other, 1, -1),
    ):  # fmt: skip
        refused(why, rooms.vote, where, who, round_=round_, choice=choice)
    rooms.vote(code, other, round_=1, choice=1)
    refused("voted", rooms.vote, code, other, round_=1, choice=2)
    rooms.do(taught, Room.show)
    refused("over", rooms.vote, code, rooms.join(code), round_=1, choice=1)
    refused("no-question", rooms.do, taught, Room.show)


def test_a_token_may_not_try_without_end(rooms, asked, clock):
    token = rooms.join(asked.code)
    for _ in range(room.VOTES_AT_ONCE):
        refused("no-choice", rooms.vote, asked.code, token, round_=1, choice=9)
    refused("too-often", rooms.vote, asked.code, token, round_=1, choice=1)
    clock.now += 10
    rooms.vote(asked.code, token, round_=1, choice=1)
    assert rooms.counted(asked.code).voted == 1


def test_another_question_begins_anew_and_the_same_does_not(rooms, asked):
    vote_all(rooms, asked, [0, 0])
    for question, voted in ((ASKED, 2), (NEXT, 0)):
        rooms.do(asked, Room.ask, question)
        assert rooms.counted(asked.code).voted == voted
    rooms.do(asked, Room.ask, None)
    assert not rooms.public(asked.code).taken
    for number in (1, room.MOST_CHOICES + 1):
        refused("no-choice", rooms.do, asked, Room.ask, Question("x", "x", ("a",) * number))


# ---------------------------------------------------------------- bounds


def test_a_full_room_lets_somebody_in_once_somebody_was_gone_for_a_while(rooms, taught, clock):
    tokens = [rooms.join(taught.code) for _ in range(room.MOST_TOKENS)]
    clock.now += 30
    refused("full", rooms.join, taught.code)
    with rooms.listening(taught.code, tokens[0], lambda: None, counts=False):
        clock.now += room.FORGOTTEN_SECONDS
        rooms.join(taught.code)
        assert rooms._rooms[taught.code].knows(tokens[0])
        assert not rooms._rooms[taught.code].knows(tokens[1])


@often
def test_who_voted_is_not_dropped_before_the_round_ends(rooms, asked, clock):
    vote_all(rooms, asked, [0] * room.MOST_TOKENS)
    clock.now += room.FORGOTTEN_SECONDS
    refused("full", rooms.join, asked.code)
    rooms.do(asked, Room.show)
    rooms.do(asked, Room.again)
    rooms.join(asked.code)


# ---------------------------------------------------------------- one client, and others


@often
def test_one_client_keeps_no_class_out(rooms, taught, clock):
    """It joins 500 times; then a class comes, of a school with one address, and nobody of it is refused for long."""
    for _ in range(500):
        tried(rooms.join, taught.code, "one")
        clock.now += 0.01
    inside, refusals = [], 0
    while len(inside) < 90:
        token = tried(rooms.join, taught.code, "school")
        inside += [token] if token else []
        refusals += token is None
        tried(rooms.join, taught.code, "one")
        clock.now += 0.05
    assert refusals < 100  # seconds, as a browser asks again
    with ExitStack() as streams:  # who is there stays, whatever comes
        for token in inside:
            streams.enter_context(rooms.listening(taught.code, token, lambda: None, counts=False))
        for _ in range(500):
            tried(rooms.join, taught.code, "one")
            clock.now += 1
        assert all(rooms._rooms[taught.code].knows(token) for token in inside)


@often
def test_a_class_of_one_address_joins_and_votes_at_once(rooms, asked):
    tokens = [rooms.join(asked.code, "school") for _ in range(registry.LIMITS["join"][0])]
    refused("too-often", rooms.join, asked.code, "school")
    for token in tokens:
        rooms.vote(asked.code, token, round_=1, choice=0, client="school")
    other = rooms.join(asked.code, "home")
    refused("too-often", rooms.vote, asked.code, other, round_=1, choice=0, client="school")
    rooms.vote(asked.code, other, round_=1, choice=0, client="home")
    assert rooms.counted(asked.code).voted == registry.LIMITS["join"][0] + 1


@often
def test_a_locked_room_lets_nobody_else_in_and_nobody_out(rooms, taught):
    token = rooms.join(taught.code)
    rooms.do(taught, Room.lock, True)
    for _ in range(200):  # who waits at the door
        refused("locked", rooms.join, taught.code, "school")
    with rooms.listening(taught.code, token, lambda: None, counts=False):
        assert rooms.counted(taught.code).students == 1
    rooms.do(taught, Room.lock, False)
    rooms.join(taught.code, "school")


@often
def test_a_visitor_with_many_rooms_keeps_no_teacher_out(rooms, clock):
    for _ in range(registry.OPENED_AT_ONCE):
        rooms.open("one", "first visit")
    refused("too-often", rooms.open, "one", "first visit")
    rooms.open("one", "a colleague in the same school")
    rooms.open("another", "a teacher")
    for number in range(registry.MOST_OF_CLIENT):
        tried(rooms.open, "one", f"visit {number}")
    refused("crowded", rooms.open, "one", "once more")
    rooms.open("another", "another teacher")
    clock.now += registry.LEFT_SECONDS + 1
    rooms.open("one", "once more")  # in place of one that was left


@often
def test_codes_that_are_none_are_counted_for_each_client(rooms, clock):
    assert [rooms.missed(str(n), "one") for n in range(21)] == [True] * 20 + [False]
    assert rooms.missed("20", "another")
    assert all(rooms.missed("7", "one") for _ in range(100))  # a class whose room has ended
    assert not any(rooms.missed("20", "one") for _ in range(100))
    clock.now += 10
    assert rooms.missed("20", "one")


@often
def test_a_client_is_its_address_and_of_ipv6_its_network():
    assert client("::1") == client(None) == client("127.0.0.1") == client("::ffff:127.0.0.1")
    assert client("2001:db8::1") == client("2001:db8::ffff:2%eth0") != client("2001:db8:0:1::1")
    assert client("10.0.0.7:80") != client("x:y")  # whatever a proxy says
    assert "10.0.0.7" not in client("10.0.0.7") != client("10.0.0.8")


def test_nobody_who_looks_on_keeps_a_student_out(rooms, taught):
    first, second = rooms.join(taught.code), rooms.join(taught.code)
    with ExitStack() as streams:
        for token in ("",) * room.MOST_STREAMS + (first,) * room.MOST_OF_TOKEN + (second,):
            streams.enter_context(rooms.listening(taught.code, token, lambda: None, counts=False))
        for token in ("", first):
            refused("full", rooms.listening(taught.code, token, lambda: None, counts=False).__enter__)
        assert rooms.counted(taught.code).students == 2


def test_a_room_is_gone_when_nobody_used_it_for_hours_when_its_teacher_ends_it_and_with_the_server(
    rooms, taught, clock
):
    woken = []
    with rooms.listening(taught.code, "", lambda: woken.append(1), counts=False):
        clock.now += registry.IDLE_SECONDS - 1
        rooms.do(taught, Room.move, "masks", {})
        clock.now += registry.IDLE_SECONDS - 1
        assert rooms.public(taught.code) is not None
        clock.now += 2
        assert rooms.public(taught.code) is None
    assert len(woken) == 2
    refused("no-room", rooms.do, taught, Room.move, "masks", {})
    assert not rooms.is_teacher(taught.code, taught.secret)
    ended, other = rooms.open(), rooms.open()
    woken.clear()
    with rooms.listening(other.code, "", lambda: woken.append(1), counts=False):
        rooms.end(ended)
        assert rooms.public(ended.code) is None
        assert not woken
        rooms.store.close()
        assert (rooms.public(other.code) is None) is not rooms.store.is_shared  # others go on with it
        assert woken


# ---------------------------------------------------------------- how a question ends


def test_the_answer_ends_the_votes_and_says_which_was_right(rooms, asked):
    vote_all(rooms, asked, [1] * room.LEAST_VOTES)
    rooms.do(asked, Room.answer, 2)
    public = rooms.public(asked.code)
    assert (public.taken, public.answered, public.right) == (False, True, 2)
    refused("no-question", rooms.do, asked, Room.again)
    rooms.do(asked, Room.ask, NEXT)
    assert rooms.public(asked.code).right is None


def test_few_votes_are_counted_by_choice_where_the_teacher_wants_it_and_who_voted_before_was_told_so(rooms, asked):
    vote_all(rooms, asked, [0, 1])
    rooms.do(asked, lambda room: room.let_few(True))  # not this round
    rooms.do(asked, Room.show)
    assert rooms.public(asked.code).shown[-1].counts is None
    for choices, counts in (([2, 2, 0], (1, 0, 2)), ([1], None)):  # one vote alone is never a bar
        rooms.do(asked, Room.again)
        vote_all(rooms, asked, choices)
        rooms.do(asked, Room.show)
        assert rooms.public(asked.code).shown[-1].counts == counts


def test_a_timer_closes_the_vote_lets_the_class_talk_and_takes_votes_again(rooms, taught, clock):
    refused("no-question", rooms.do, taught, timed)
    rooms.do(taught, Room.ask, ASKED)
    rooms.do(taught, timed)
    vote_all(rooms, taught, [0, 0, 0, 1, 2])
    for passed, phase, taken, round_, left in (
        (59, "vote", True, 1, 1), (1, "discuss", False, 1, 120), (120, "vote", True, 2, 60), (60, "", False, 2, 0),
    ):  # fmt: skip
        clock.now += passed
        public = rooms.public(taught.code)
        assert (public.phase, public.taken, public.round, rooms.left(public)) == (phase, taken, round_, left)
        if phase == "discuss":
            refused("over", rooms.vote, taught.code, rooms.join(taught.code), round_=1, choice=0)
    assert [one.counts for one in public.shown] == [(3, 1, 1), None]


def timed(room):
    room.start(60, 120)


def test_a_teacher_need_not_wait_for_the_timer(rooms, asked, clock):
    for acts, passed, phase, taken in (
        ((timed, Room.show), 0, "", False),  # shown at once, and nothing is timed
        ((timed, None, Room.again), 0, "vote", True),  # enough talk
        ((Room.stop,), 1000, "", True),  # the vote goes on
        ((timed, lambda room: room.answer(1)), 1000, "", False),
    ):
        for act in acts:
            rooms.do(asked, act) if act else setattr(clock, "now", clock.now + 60)
        clock.now += passed
        public = rooms.public(asked.code)
        assert (public.phase, public.taken) == (phase, taken)
    assert (public.round, public.answered) == (3, True)


def test_the_record_counts_and_names_nobody(rooms, asked):
    vote_all(rooms, asked, [1] * 3 + [2] * 2)
    rooms.do(asked, Room.show)
    rooms.do(asked, Room.again)
    vote_all(rooms, asked, [1, 2])
    rooms.do(asked, Room.answer, 1)
    rooms.do(asked, Room.ask, Question("aloud.3", '=HYPERLINK("http://evil","A")', ("A", "B"), aloud=True))
    vote_all(rooms, asked, [0])
    rooms.do(asked, Room.ask, None)  # votes that were never shown are kept, too
    columns = room.table(rooms.record(asked))
    named = {str(name): values for name, values in columns.items()}
    assert named["round"] == [1, 1, 1, 2, 2, 2, 3, 3]
    assert named["step of a lesson"] == ["masks.1"] * 6 + [""] * 2
    assert named["votes in the round"] == [5] * 3 + [2] * 3 + [1] * 2
    assert named["votes for the choice"] == [0, 3, 2] + [None] * 5  # too few are not told apart here either
    assert named["right (1) or not (0)"] == [0, 1, 0] * 2 + [""] * 2
    file = saved(lambda: columns, Origin(), "en")().decode("utf-8-sig")
    rows = list(csv.reader(io.StringIO(file)))
    assert len(rows) == 9
    assert rows[-1][1].startswith("'=HYPERLINK")
