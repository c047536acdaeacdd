"""The session's lesson step: read from and written to the URL, its question, cached; a teacher's own lesson files.

    lesson=one-piece.3                       the third step of that lesson
    lesson=one-piece.0                       its opening; its first step where it has none
    lesson=one-piece.3&path=short            the same as a part of the short path through all lessons
    lesson=where.1&mine=src%3DI+like+tea     a step on a checkpoint of its own, and what the learner comes back to

A URL without these parameters stays in the lesson: only `leave` ends it. Each URL is read once, so a browser with an
old URL does not undo a change.

A teacher's own lessons are files in a folder named at start. A changed file is read again while the app runs.

    streamlit run app.py -- --lessons DIR        or the environment variable GLASSFORMER_LESSONS

A step is posed to the learner's own run (greedy, no interventions), in the model's thread, and cached for all users.
"""

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Final, TypeVar

import streamlit as st

from glassformer.charts.theme import shortened
from glassformer.extensions.lessons.library import (
    Case,
    Lesson,
    LessonStep,
    Opening,
    Posed,
    QuestionNotApplicable,
    Scene,
    lessons,
    opening_link,
    pose,
    read_folder,
)
from glassformer.runs import loading
from glassformer.server.model_runner import BusyError
from glassformer.server.server_options import said
from glassformer.state import link, session
from transformer.checkpoint.load import Checkpoint
from transformer.errors import GlassformerError
from transformer.i18n import Sentence, joined, say
from transformer.runs.query import Query

ENVIRONMENT: Final = "GLASSFORMER_LESSONS"
OPTION: Final = "--lessons"

_Stamp = tuple[tuple[str, int, int], ...]


def folder() -> Path | None:
    """The folder of lessons that the command line or the environment names; None if none was named."""
    named = said(None, ENVIRONMENT, OPTION)
    return Path(named).expanduser() if named else None


def read_own() -> tuple[Mapping[str, Lesson], tuple[Sentence, ...]]:
    """The lessons of that folder by name, and a sentence for each file that cannot be used."""
    where = folder()
    return ({}, ()) if where is None else _read(where, _stamp(where))


def _stamp(where: Path) -> _Stamp:
    """Changes when a file does."""
    try:
        return tuple(sorted((file.name, file.stat().st_mtime_ns, file.stat().st_size) for file in where.glob("*.toml")))
    except OSError:
        return ()


@lru_cache(maxsize=8)
def _read(where: Path, stamp: _Stamp) -> tuple[Mapping[str, Lesson], tuple[Sentence, ...]]:
    return read_folder(where)


PARAMETER, PATH, OWN = "lesson", "path", "mine"  # in the address, apart from all that a link says there
NAMES: Final = (PARAMETER, PATH, OWN)
SHORT: Final = "short"  # the only path there is beside the lessons themselves
RETURNED_TO: Final = ("model", "src")

PLACE, SEEN, NOTES, GIVEN = "lesson_place", "lesson_seen", "lesson_notes", "lesson_given"  # in the session
ABOUT: Final = "lesson_about"  # there while a page is drawn: the checkpoint that it has opened

_PLACE = re.compile(r"([a-z][a-z0-9-]{0,30})\.(0|[1-9][0-9]?)", re.ASCII)
_LONGEST_SHOWN: Final = 40
_BYTES: Final = 4_000  # of a question with its answer

Found = Posed | Sentence  # a question, or why there is none
_Made = TypeVar("_Made")


@dataclass(frozen=True)
class LessonStepRef:
    """A step of a lesson."""

    lesson: str  # the lesson's name
    step: int  # which step, from 1; 0 for the opening
    short: bool = False  # it is walked as a part of the short path
    # The learner's checkpoint and sentence (see `glassformer.state.link`) while a step runs on another checkpoint.
    own: str = ""

    @property
    def name(self) -> str:
        """As an address and a browser's memory call it."""
        return f"{self.lesson}.{self.step}"

    def in_address(self) -> dict[str, str]:
        """What an address says of it."""
        said = {PARAMETER: self.name, PATH: SHORT if self.short else "", OWN: self.own}
        return {name: value for name, value in said.items() if value}


def known() -> Mapping[str, Lesson]:
    """The lessons that there are, by name, in their order."""
    return {**lessons(), **read_own()[0]}


def title_of(lesson: Lesson) -> Sentence:
    """Its title, with its number in the plan."""
    title = lesson.title.said({})
    return say("{n}. {title}", n=lesson.number, title=title) if lesson.number else title


def titles_before(lesson: Lesson) -> Sentence:
    """The titles of the lessons that it comes after; "" if there are none."""
    there = known()
    return joined(", ", [there[name].title.said({}) for name in lesson.after if name in there])


def read(parameters: Mapping[str, Sequence[str]]) -> tuple[LessonStepRef | None, tuple[str, ...]]:
    """The place that an address says, None where there is none such, and a note for everything that was left out."""
    written = next(iter(parameters.get(PARAMETER, ())), "")
    if not written:
        return None, ()
    found = _PLACE.fullmatch(written)
    lesson = known().get(found[1]) if found else None
    if found is None or lesson is None or int(found[2]) > len(lesson.steps):
        return None, (
            say("There is no lesson “{name}”, so no lesson is shown.", name=shortened(written, limit=_LONGEST_SHOWN)),
        )
    number = int(found[2]) or (0 if lesson.opening else 1)
    own = link.read_nested(next(iter(parameters.get(OWN, ())), "")[: link.LONGEST]) or {}
    own = {name: value for name, value in own.items() if name in RETURNED_TO}
    short = SHORT in parameters.get(PATH, ())
    return LessonStepRef(lesson.name, number, short=short, own=link.write_nested(own)), ()


def begin() -> None:
    """Take over what the address says of a lesson, if that is news; call it when a run begins."""
    state = st.session_state
    said = {name: tuple(st.query_params.get_all(name)) for name in NAMES}
    if said == state.get(SEEN, dict.fromkeys(NAMES, ())):
        return
    state[SEEN] = said
    if said[PARAMETER] == ("",):  # a teacher has left the lesson, and the class with them
        state[PLACE] = None
    elif said[PARAMETER]:
        state[PLACE], state[NOTES] = read(said)


def place() -> LessonStepRef | None:
    """Where the session is; None outside of lessons."""
    return st.session_state.get(PLACE)


def scene() -> Scene | None:
    """What the lesson shows at the place that the session is at; None outside of lessons."""
    here = place()
    return None if here is None else scene_of(here)


def scene_of(place: LessonStepRef) -> Scene:
    """What a lesson shows at a place: a step, or its opening."""
    return (None if place.step else known()[place.lesson].opening) or step_of(place)


def step_of(place: LessonStepRef) -> LessonStep:
    """The step at a place that has a question."""
    return known()[place.lesson].steps[place.step - 1]


def leave() -> None:
    """Callback: end the lesson."""
    st.session_state[PLACE] = None
    for name in NAMES:
        st.query_params.pop(name, None)


def take_notes() -> tuple[str, ...]:
    """What there is to say of the address, once."""
    return st.session_state.pop(NOTES, ())


def in_address() -> dict[str, str]:
    """What the address says of the lesson; nothing outside of lessons."""
    here = place()
    return {} if here is None else here.in_address()


def gave(parameters: Mapping[str, tuple[str, ...]]) -> None:
    """Say that the session was set from an address; one that says what is looked at need not be told by the step."""
    st.session_state[GIVEN] = bool(set(parameters) - {*RETURNED_TO, "rev", "answers"})


# ------------------------------------------------------------------------------------------------ its question


def about(checkpoint: Checkpoint) -> None:
    """Say which checkpoint the page has opened; a lesson asks about the sentence that its pages would show first."""
    if place() is None:
        return
    st.session_state[ABOUT] = checkpoint
    if st.session_state.get(session.SOURCE) is None:
        st.session_state[session.SOURCE] = checkpoint.card.first_example()


def taken() -> Checkpoint | None:
    """The checkpoint that the page has opened, for the panel that is drawn after it; a session does not keep it."""
    return st.session_state.pop(ABOUT, None)


def source() -> str:
    """The learner's sentence; "" for none."""
    return st.session_state.get(session.SOURCE) or ""


def posed(place: LessonStepRef, checkpoint: Checkpoint, source: str, *, given: str = "") -> Found:
    """A step posed to a run of the learner's sentence, with what was typed where a piece is asked for."""
    if not source.strip():
        return say("Type a sentence at the top of the page, or choose an example.")
    step = step_of(place)
    key = ("lesson", place.lesson, place.step, step.fingerprint, given)
    return made(checkpoint, source, key, lambda case: pose(step, replace(case, given=given)))


def opened(place: LessonStepRef, checkpoint: Checkpoint, source: str) -> dict[str, str] | Sentence:
    """What a lesson's opening looks at in a run of the learner's sentence, as parameters of an address."""
    scene = scene_of(place)
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
    return link.Link(source=source, max_new=min(link.DEFAULT_NEW, checkpoint.config.max_len)).query(
        checkpoint.content_hash
    )


def _or_why(work: Callable[[Case], _Made], case: Case) -> _Made | Sentence:
    """A reason why there is nothing is kept as a result is; the thread hands exceptions on instead."""
    try:
        return work(case)
    except QuestionNotApplicable as why:
        return why.sentence
