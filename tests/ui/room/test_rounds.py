"""How a question in a room ends: with its answer, or as students take sentences of their own."""

import pytest

from ui.room.registry import Registry
from ui.room.room import LEAST_VOTES, Question, RefusedError


def asked():
    """A room in which a lesson's question is asked."""
    rooms = Registry()
    taught = rooms.open()
    rooms.ask(taught, Question("masks.1", "How many?", ("one", "two", "three")))
    return rooms, taught


def vote_all(rooms, taught, choices):
    for choice in choices:
        rooms.vote(taught.code, rooms.join(taught.code), round_=1, choice=choice)


def test_the_answer_ends_the_votes_and_says_which_was_right():
    rooms, taught = asked()
    vote_all(rooms, taught, [1] * LEAST_VOTES)
    rooms.answer(taught, right=2)
    public = rooms.public(taught.code)
    assert (public.taken, public.answered, public.right) == (False, True, 2)
    with pytest.raises(RefusedError, match="no-question"):
        rooms.again(taught)
    rooms.ask(taught, Question("masks.2", "And now?", ("a", "b")))
    assert rooms.public(taught.code).right is None


def test_own_sentences_begin_a_lessons_question_anew_and_leave_one_asked_aloud():
    rooms, taught = asked()
    vote_all(rooms, taught, [0, 1])
    rooms.let_own(taught, True)
    assert (rooms.public(taught.code).question, rooms.counted(taught.code).voted) == (None, 0)
    aloud = Question("aloud.2", "Which?", ("A", "B"), aloud=True)
    rooms.ask(taught, aloud)
    rooms.let_own(taught, False)
    assert rooms.public(taught.code).question == aloud
