"""Poses a lesson step to the learner's own run (greedy, no interventions); cached.

Computed in the model's thread and cached for all users. Other runs in that thread bypass its queue, to avoid a
deadlock.
"""

from collections.abc import Callable, Hashable
from dataclasses import replace
from functools import partial
from typing import Final, TypeVar

import streamlit as st

from glassformer.extensions.classroom import lesson
from glassformer.extensions.classroom.lesson import LessonStepRef
from glassformer.extensions.lessons.library import Case, Opening, Posed, QuestionNotApplicable, opening_link, pose
from glassformer.runs import loading
from glassformer.server.model_runner import BusyError
from glassformer.state import session
from glassformer.state.link import DEFAULT_NEW, Link
from transformer.checkpoint.load import Checkpoint
from transformer.errors import GlassformerError
from transformer.i18n import Sentence, say
from transformer.runs.query import Query

ABOUT: Final = "lesson_about"  # in the session, while a page is drawn: the checkpoint that it has opened
_BYTES: Final = 4_000  # of a question with its answer


Found = Posed | Sentence  # a question, or why there is none
_Made = TypeVar("_Made")


def about(checkpoint: Checkpoint) -> None:
    """Say which checkpoint the page has opened; a lesson asks about the sentence that its pages would show first."""
    if lesson.place() is None:
        return
    st.session_state[ABOUT] = checkpoint
    if st.session_state.get(session.SOURCE) is None:
        st.session_state[session.SOURCE] = checkpoint.card.first_example()


def taken() -> Checkpoint | None:
    """The checkpoint that the page has opened, for the panel that is drawn after it; a session does not keep it."""
    found: Checkpoint | None = st.session_state.pop(ABOUT, None)
    return found


def posed(place: LessonStepRef, checkpoint: Checkpoint, source: str, *, given: str = "") -> Found:
    """A step posed to a run of the learner's sentence, with what was typed where a piece is asked for."""
    if not source.strip():
        return say("Type a sentence at the top of the page, or choose an example.")
    step = lesson.step_of(place)
    key = ("lesson", place.lesson, place.step, step.fingerprint, given)
    return made(checkpoint, source, key, lambda case: pose(step, replace(case, given=given)))


def opened(place: LessonStepRef, checkpoint: Checkpoint, source: str) -> dict[str, str] | Sentence:
    """What a lesson's opening looks at in a run of the learner's sentence, as parameters of an address."""
    scene = lesson.scene_of(place)
    if not isinstance(scene, Opening):
        return {}
    key = ("opening", scene.page, scene.pick, tuple(scene.link.items()))
    return made(checkpoint, source, key, lambda case: opening_link(scene, case))


def made(checkpoint: Checkpoint, source: str, key: Hashable, work: Callable[[Case], _Made]) -> _Made | Sentence:
    """What is made of the run of a sentence in the model's thread, or why there is nothing; `key` says what it is."""
    try:
        query = own_query(checkpoint, source)
        case = Case(checkpoint=checkpoint, trace=loading.runner().trace(checkpoint, query))
        return loading.runner().compute((key, query), partial(_or_why, work, case), nbytes=lambda _: _BYTES)
    except (GlassformerError, BusyError) as error:
        return error.sentence


def own_query(checkpoint: Checkpoint, source: str) -> Query:
    """What a step asks the model: the sentence as it is, decoded greedily.

    Raises:
        QueryError: The sentence is too long.
    """
    return Link(source=source, max_new=min(DEFAULT_NEW, checkpoint.config.max_len)).query(checkpoint.content_hash)


def _or_why(work: Callable[[Case], _Made], case: Case) -> _Made | Sentence:
    """A reason why there is nothing is kept as a result is; the thread hands exceptions on instead."""
    try:
        return work(case)
    except QuestionNotApplicable as why:
        return why.sentence
