"""Neither the address nor a browser's memory is trusted to say where a lesson stands or what was answered."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.extensions.classroom import lesson, predictions
from glassformer.extensions.classroom.lesson import LessonStepRef
from glassformer.extensions.classroom.step_links import around, first, places
from glassformer.extensions.lessons.library import lessons
from glassformer.state import link
from tests.glassformer.components.test_components import sends_what_its_type_names

LESSONS = lessons()
PLACES = [LessonStepRef(name, n) for name, one in LESSONS.items() for n in range(len(one.steps) + 1)]


def parameters(said):
    return {name: (text,) for name, text in said.items()}


@given(st.sampled_from(PLACES), st.booleans(), st.dictionaries(st.sampled_from(["model", "src"]), st.text(max_size=50)))
def test_a_place_reads_back_from_its_address(place, short, own):
    whole = LessonStepRef(place.lesson, place.step, short=short, own=link.write_nested(own))
    assert lesson.read(parameters(whole.in_address())) == (whole, ())


@given(st.text(max_size=200), st.text(max_size=20), st.text(max_size=200))
def test_garbage_is_no_lesson_and_is_said_or_is_one_that_there_is(written, path, own):
    place, notes = lesson.read(parameters({"lesson": written, "path": path, "mine": own}))
    if place is None:
        assert len(notes) == (1 if written else 0)
        assert all(len(note) < 200 for note in notes)
    else:
        assert place.name == written
        assert 0 <= place.step <= len(LESSONS[place.lesson].steps)
        assert set(link.read_nested(place.own)) <= {"model", "src"}


def test_every_lesson_is_walked_from_its_first_step_to_its_last():
    for name, one in LESSONS.items():
        here, seen = first(LESSONS, name), []
        assert here.name == f"{name}.0"
        while here is not None:
            number, count, before, after = around(LESSONS, here)
            assert (number, count) == (here.step, len(one.steps))
            assert before == (seen[-1] if seen else None)
            seen.append(here)
            here = after
        assert len(seen) == 1 + len(one.steps)


def test_a_lesson_without_an_opening_begins_with_its_first_step(monkeypatch):
    bare = {"bare": replace(LESSONS["masks"], name="bare", opening=None)}
    monkeypatch.setattr(lesson, "known", lambda: bare)
    assert lesson.read(parameters({"lesson": "bare.0"})) == (LessonStepRef("bare", 1), ())
    assert first(bare, "bare") == LessonStepRef("bare", 1)
    assert around(bare, LessonStepRef("bare", 1))[:3] == (1, 7, None)


def test_the_short_path_goes_through_all_short_steps_and_no_others():
    row = places(LESSONS)
    assert {place.name for place in row} == {
        f"{name}.{n}" for name, one in LESSONS.items() for n, step in enumerate(one.steps, 1) if step.short
    }
    assert all(place.short for place in row)
    walked = [first(LESSONS)]
    while (after := around(LESSONS, walked[-1])[3]) is not None:
        walked.append(after)
    assert walked == [replace(row[0], step=0), *row]


ROW = ["one-piece.3", "0123abcd", "equal", True, "89abcdef"]


@pytest.mark.parametrize("place", range(5))
@pytest.mark.parametrize("wrong", [None, 7, "<b>", ["x"], {}, "x" * 200])
def test_an_answer_that_looks_otherwise_is_passed_over(place, wrong):
    if place == 2 and wrong in ("<b>",):
        return  # a choice may be any short text
    row = [*ROW[:place], wrong, *ROW[place + 1 :]]
    assert dict(predictions.read(json.dumps([row, ROW]))).keys() == {("one-piece.3", "0123abcd")}


@given(
    st.one_of(st.text(), st.recursive(st.none() | st.booleans() | st.text(), st.lists, max_leaves=20).map(json.dumps))
)
def test_whatever_a_browser_says_is_read_without_an_error(text):
    for (name, run), one in predictions.read(text):
        assert len(name) < 40
        assert len(run) == len(one.text) == 8


def test_what_is_too_long_is_passed_over():
    assert not list(predictions.read(json.dumps([ROW] * 3000)))
    many = [[f"one-piece.{n % 9 + 1}", f"{n:08x}", "equal", True, "89abcdef"] for n in range(predictions.MOST + 50)]
    assert len(list(predictions.read(json.dumps(many)))) == predictions.MOST


def test_what_is_forgotten_is_forgotten_by_the_browser_too(monkeypatch):
    state = {predictions.KEPT: {("one-piece.1", "0" * 8): predictions.Prediction("start", True, "0" * 8)}}
    monkeypatch.setattr(predictions.st, "session_state", state)
    predictions.forget()
    assert state == {predictions.KEPT: {}, predictions.FORGOTTEN: 1}


DRAWN = {"LessonMemoryPayload": lambda key: predictions.mount("lessons", heard=lambda: None)}


@pytest.mark.parametrize(("interface", "draw"), DRAWN.items())
def test_the_types_of_a_payload_name_what_python_sends(monkeypatch, interface, draw):
    sends_what_its_type_names(monkeypatch, interface, draw)
