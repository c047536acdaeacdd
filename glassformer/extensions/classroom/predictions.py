"""Learners' answers by run and step, kept in the browser's local storage; charts hidden until the answer.

A prediction is of one run: another sentence or checkpoint is another question. The browser stores predictions in its
local storage, which `view.js` reads and writes; the server keeps them only in the session. Data from a browser is not
trusted: other shapes are skipped.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import streamlit as st

from glassformer.components.custom_component import Element, told_text
from glassformer.extensions.classroom import lesson
from glassformer.extensions.classroom.lesson import LessonStepRef
from glassformer.extensions.rooms import room_session
from glassformer.state import session

KEPT, OPEN, FORGOTTEN = "predictions", "predictions_open", "predictions_forgotten"  # in the session
WHOLE: Final = "*"
MOST: Final = 400  # of a session

MEMORY: Final = "lesson_memory"
_MEMORY: Final = Element(MEMORY)
LONGEST: Final = 100_000  # characters
_NAME = re.compile(r"[a-z][a-z0-9-]{0,30}\.[1-9][0-9]?", re.ASCII)
_DIGEST = re.compile(r"[0-9a-f]{8}", re.ASCII)
_LONGEST_CHOICE: Final = 100

Key = tuple[str, str]
"""Name of a step and digest of a run."""


@dataclass(frozen=True)
class Prediction:
    """An answer."""

    choice: str  # the word of a choice, or what was typed
    right: bool  # whether it was right
    text: str  # fingerprint of the question; an answer to another text does not count


def run_at_hand() -> str:
    """A digest of what the learner's run is of."""
    return digest(st.session_state.get(session.MODEL) or "", lesson.source())


def digest(model: str, source: str) -> str:
    """A digest of a run."""
    return hashlib.sha256("\0".join((model, source)).encode("utf-8", "replace")).hexdigest()[:8]


def kept() -> Mapping[Key, Prediction]:
    """All that the session knows of."""
    return st.session_state.get(KEPT, {})


def of(place: LessonStepRef) -> Prediction | None:
    """What was predicted at a step of the run at hand; None if nothing was."""
    found = kept().get((place.name, run_at_hand()))
    return found if found is not None and found.text == lesson.step_of(place).fingerprint else None


def keep(more: Mapping[Key, Prediction]) -> None:
    """Remember predictions, the last ones best."""
    found = {**kept(), **more}
    st.session_state[KEPT] = dict(list(found.items())[-MOST:])


def predict(place: LessonStepRef, choice: str, *, right: bool) -> None:
    """Remember what the learner predicts at a step of the run at hand: the word of a choice, or what was typed."""
    text = lesson.step_of(place).fingerprint
    keep({(place.name, run_at_hand()): Prediction(choice, right, text)})


def forget() -> None:
    """Callback: forget all; the browser is told."""
    st.session_state[KEPT] = {}
    st.session_state[FORGOTTEN] = st.session_state.get(FORGOTTEN, 0) + 1


def open_up(place: LessonStepRef) -> bool:
    """Cover nothing at a step of the run at hand, which has no answer; tells whether that is news."""
    here = (place.name, run_at_hand())
    news = st.session_state.get(OPEN) != here
    st.session_state[OPEN] = here
    return news


def mount(page: str, *, heard: Callable[[], None]) -> None:
    """Have the browser remember what the session knows, say what it remembers, and show what a step is about.

    `heard` is called once it has said something.
    """
    here, step = lesson.place(), lesson.scene()
    at_the_step = step is not None and step.page == page
    payload = {
        "rows": [[name, run, one.choice, one.right, one.text] for (name, run), one in kept().items()],
        "forgotten": st.session_state.get(FORGOTTEN, 0),  # when it grows, the browser forgets too
        "open": here.name if here is not None and at_the_step else "",
        "look": list(step.look) if step is not None and at_the_step else [],
    }
    _MEMORY.draw(payload, key=MEMORY, hears={"answers": partial(_heard, heard)})


def _heard(then: Callable[[], None]) -> None:
    """Callback: the browser says what it remembers; what the session knows goes before it."""
    if told := told_text(MEMORY, "answers"):
        keep({**dict(read(told)), **kept()})
        then()


def read(text: str) -> Iterator[tuple[Key, Prediction]]:
    """The answers that a browser remembers, as it wrote them."""
    try:
        rows: Any = json.loads(text) if len(text) <= LONGEST else []
    except (ValueError, RecursionError):
        return
    for row in rows[:MOST] if isinstance(rows, list) else ():
        if not isinstance(row, list) or len(row) != 5:
            continue
        name, run, choice, right, fingerprint = row
        texts = all(isinstance(one, str) for one in (name, run, choice, fingerprint))
        if not texts or not isinstance(right, bool) or len(choice) > _LONGEST_CHOICE:
            continue
        if _NAME.fullmatch(name) and _DIGEST.fullmatch(run) and _DIGEST.fullmatch(fingerprint):
            yield (name, run), Prediction(choice, right, fingerprint)


def waits_for_teacher() -> bool:
    """Whether it is a room's teacher who shows the answer of the step at hand."""
    place = lesson.place()
    return place is not None and room_session.asks(place.name, run_at_hand()) is not None


def covered_by_the_step() -> tuple[str, ...]:
    """Words of the step's `cover`; nothing once it was answered, in a room once the teacher has shown the answer."""
    place, step = lesson.place(), lesson.scene()
    if place is None or step is None or not step.cover:
        return ()
    room = room_session.asks(place.name, run_at_hand())
    may_be_seen = of(place) is not None if room is None else room.answered
    if may_be_seen or st.session_state.get(OPEN) == (place.name, run_at_hand()):
        return ()
    at_the_step = st.session_state.get(session.URL_PAGE) == step.page
    return step.cover if at_the_step else tuple(word for word in step.cover if word not in (WHOLE, "part"))
