"""How a question in a room ends: with its answer, or as students take sentences of their own."""

import csv
import io

import pytest

from glassformer.extensions.rooms.server.registry import Registry
from glassformer.extensions.rooms.server.room import Room
from glassformer.extensions.rooms.server.room_state import LEAST_VOTES, OpenedRoom, Question, RoomRefusedError, table
from glassformer.shared.csv_export import Origin, saved
from tests.glassformer.waiting import Clock

pytestmark = pytest.mark.usefixtures("each_store")


def asked():
    """A room in which a lesson's question is asked."""
    rooms = Registry()
    taught = rooms.open()
    rooms.do(taught, Room.ask, Question("masks.1", "How many?", ("one", "two", "three")))
    return rooms, taught


def vote_all(rooms, taught, choices):
    for choice in choices:
        rooms.vote(taught.code, rooms.join(taught.code), round_=1, choice=choice)


def test_the_answer_ends_the_votes_and_says_which_was_right():
    rooms, taught = asked()
    vote_all(rooms, taught, [1] * LEAST_VOTES)
    rooms.do(taught, Room.answer, 2)
    public = rooms.public(taught.code)
    assert (public.taken, public.answered, public.right) == (False, True, 2)
    with pytest.raises(RoomRefusedError, match="no-question"):
        rooms.do(taught, Room.again)
    rooms.do(taught, Room.ask, Question("masks.2", "And now?", ("a", "b")))
    assert rooms.public(taught.code).right is None


def test_few_votes_are_counted_by_choice_where_the_teacher_wants_it_and_who_voted_before_was_told_so():
    rooms, taught = asked()
    vote_all(rooms, taught, [0, 1])
    rooms.do(taught, lambda room: room.let_few(True))  # not this round
    rooms.do(taught, Room.show)
    assert rooms.public(taught.code).shown[-1].counts is None
    rooms.do(taught, Room.again)
    for choice in (2, 2, 0):
        rooms.vote(taught.code, rooms.join(taught.code), round_=2, choice=choice)
    rooms.do(taught, Room.show)
    assert rooms.public(taught.code).shown[-1].counts == (1, 0, 2)
    rooms.do(taught, Room.again)
    rooms.vote(taught.code, rooms.join(taught.code), round_=3, choice=1)
    rooms.do(taught, Room.show)
    assert rooms.public(taught.code).shown[-1].counts is None  # one vote alone is never a bar


def test_a_timer_closes_the_vote_lets_the_class_talk_and_takes_votes_again():
    clock = Clock()
    rooms = Registry(clock)
    taught = rooms.open()
    with pytest.raises(RoomRefusedError, match="no-question"):
        rooms.do(taught, lambda room: room.start(60, 120))
    rooms.do(taught, Room.ask, Question("masks.1", "How many?", ("one", "two", "three")))
    rooms.do(taught, lambda room: room.start(60, 120))
    vote_all(rooms, taught, [0, 0, 0, 1, 2])
    clock.now += 59
    public = rooms.public(taught.code)
    assert (public.phase, public.taken, rooms.left(public)) == ("vote", True, 1)
    clock.now += 1
    public = rooms.public(taught.code)
    assert (public.phase, public.taken, rooms.left(public)) == ("discuss", False, 120)
    assert public.shown[-1].counts == (3, 1, 1)
    with pytest.raises(RoomRefusedError, match="over"):
        rooms.vote(taught.code, rooms.join(taught.code), round_=1, choice=0)
    clock.now += 120
    public = rooms.public(taught.code)
    assert (public.phase, public.taken, public.round, rooms.left(public)) == ("vote", True, 2, 60)
    clock.now += 60
    public = rooms.public(taught.code)
    assert (public.phase, public.taken, len(public.shown), rooms.left(public)) == ("", False, 2, 0)


def timed(discuss=120):
    clock = Clock()
    rooms = Registry(clock)
    taught = rooms.open()
    rooms.do(taught, Room.ask, Question("masks.1", "How many?", ("one", "two", "three")))
    rooms.do(taught, lambda room: room.start(60, discuss))
    return clock, rooms, taught


def test_a_teacher_need_not_wait_for_the_timer():
    clock, rooms, taught = timed()
    rooms.do(taught, Room.show)
    public = rooms.public(taught.code)
    assert (public.phase, public.taken) == ("", False)  # shown at once, and nothing is timed
    rooms.do(taught, lambda room: room.start(60, 120))
    clock.now += 60
    rooms.do(taught, Room.again)  # enough talk
    public = rooms.public(taught.code)
    assert (public.phase, public.taken, public.round, rooms.left(public)) == ("vote", True, 3, 60)
    rooms.do(taught, lambda room: room.stop())
    clock.now += 1000
    public = rooms.public(taught.code)
    assert (public.phase, public.taken) == ("", True)  # the vote goes on
    rooms.do(taught, lambda room: room.start(60, 120))
    rooms.do(taught, Room.answer, 1)
    clock.now += 1000
    public = rooms.public(taught.code)
    assert (public.phase, public.taken, public.answered) == ("", False, True)


def test_a_vote_alone_is_shown_when_its_time_is_up_and_votes_while_discussing_show_early():
    clock, rooms, taught = timed(discuss=0)
    clock.now += 60
    assert (rooms.public(taught.code).phase, len(rooms.public(taught.code).shown)) == ("", 1)
    clock, rooms, taught = timed()
    clock.now += 60
    assert rooms.public(taught.code).phase == "discuss"
    rooms.do(taught, Room.show)
    clock.now += 1000
    assert (rooms.public(taught.code).phase, rooms.public(taught.code).taken) == ("", False)


def test_the_record_counts_and_names_nobody():
    rooms, taught = asked()
    vote_all(rooms, taught, [1] * 3 + [2] * 2)
    rooms.do(taught, Room.show)
    rooms.do(taught, Room.again)
    for choice in (1, 2):
        rooms.vote(taught.code, rooms.join(taught.code), round_=2, choice=choice)
    rooms.do(taught, Room.answer, 1)
    rooms.do(taught, Room.ask, Question("aloud.3", '=HYPERLINK("http://evil","A")', ("A", "B"), aloud=True))
    rooms.vote(taught.code, rooms.join(taught.code), round_=3, choice=0)
    rooms.do(taught, Room.ask, None)  # votes that were never shown are kept, too
    columns = table(rooms.record(taught))
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
    stranger = OpenedRoom(taught.code, "x" * 22)
    with pytest.raises(RoomRefusedError, match="not-yours"):
        rooms.record(stranger)
