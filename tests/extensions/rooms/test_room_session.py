"""A class is told what its teacher looks at, covers and asks, and nothing of pages about rooms."""

import pytest
import streamlit as st

from glassformer.extensions.classroom import blocks, lesson
from glassformer.extensions.classroom.lesson import LessonStepRef
from glassformer.extensions.rooms import registry, room_session
from glassformer.extensions.rooms.registry import LIMITS, ROOMS
from glassformer.extensions.rooms.room_view import BLOCKS, bar, room_counts
from glassformer.state import session
from glassformer.state.link import Link
from tests.glassformer.components.test_components import sends_what_its_type_names


@pytest.fixture
def state(monkeypatch):
    """A session of a teacher, on the Step page."""
    found = {}
    does = {"from_dict": lambda own, said: (own.clear(), own.update(said)), "to_dict": dict}
    parameters = type("QueryParameters", (dict,), does)
    for streamlit in (st, blocks.st):
        monkeypatch.setattr(streamlit, "session_state", found)
        monkeypatch.setattr(streamlit, "query_params", parameters())
    opened = ROOMS.open()
    room_session.enter(opened.code, opened)
    found[session.URL_PAGE] = "step"
    yield found
    ROOMS.end(opened)


def told():
    public = room_session.public()
    return public.page, dict(public.parameters)


def test_a_class_is_told_the_step_of_a_lesson_whatever_the_address_says(state):
    state[lesson.PLACE] = LessonStepRef("looking", 2, short=True, own="src=b")
    link, bare = Link(model="reverse", source="glass"), {"model": "reverse", "src": "glass"}
    expected = bare | {"lesson": "looking.2", "path": "short", "mine": "src=b"}
    session.publish(link)  # the address is written
    assert told() == ("step", expected)
    state[session.URL_OPENED] = True  # the address was just opened, and is left as it is
    state[lesson.PLACE] = LessonStepRef("looking", 3, short=True, own="src=b")
    session.publish(link)
    assert told() == ("step", expected | {"lesson": "looking.3"})
    lesson.leave()
    session.publish(link)
    assert told() == ("step", bare)


def test_a_class_is_told_what_its_teacher_has_covered(state):
    state[blocks.WORDS] = ("candidates", "entropy")
    for cover in ({"cover": "candidates.entropy"}, {}):
        session.publish(Link(source="a"))
        assert told() == ("step", {"src": "a"} | cover)
        blocks.show_all()


def test_a_class_does_not_follow_to_the_pages_about_rooms(state):
    session.publish(Link(source="a"))
    for page in (room_session.PAGE, room_session.PROJECTOR):
        state[session.URL_PAGE] = page
        session.publish(Link(source="b"))
    assert told() == ("step", {"src": "a"})


def test_who_tries_many_codes_is_told_to_wait_and_who_knows_one_comes_in(state):
    code, notes = room_session.current(), set()
    room_session.leave()
    for _ in range(LIMITS["miss"][0] + 5):
        st.query_params[room_session.PARAMETER] = registry.new_code()
        room_session.begin()
        notes.update(room_session.ADDRESS.take_notes())
        state[room_session.LEFT] = ""  # as in a new session
    assert notes == {room_session.TOO_MANY}
    st.query_params[room_session.PARAMETER] = code
    room_session.begin()
    assert room_session.current() == code


def test_who_left_a_room_is_not_taken_back_by_an_address_of_before(state):
    code = room_session.current()
    room_session.leave()
    for written in (code, None, code):  # a browser that has not heard yet; one that has; the Back button
        st.query_params.clear()
        if written is not None:
            st.query_params[room_session.PARAMETER] = written
        room_session.begin()
        assert room_session.current() == ""
    room_session.enter(code)
    assert room_session.current() == code


DRAWN = {
    "PresenterPayload": lambda key: BLOCKS.on_every_page(),
    "RoomPayload": lambda key: bar(room_session.PROJECTOR),
    "RoomCountsPayload": lambda key: room_counts(key=key),
}


@pytest.mark.parametrize(("interface", "draw"), DRAWN.items())
def test_the_types_of_a_payload_name_what_python_sends(monkeypatch, interface, draw):
    sends_what_its_type_names(monkeypatch, interface, draw)
