"""Way through lessons: the order of steps, the URL of a step on the learner's own run, and arrival on it.

A lesson drives the app only by URLs. A URL that names a step and selects nothing is completed on arrival, from what the
step's pick finds in the run, and again for another sentence or checkpoint. One that selects something is left as it is.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from glassformer.extensions.classroom import lesson, predictions
from glassformer.extensions.classroom.lesson import LessonStepRef
from glassformer.extensions.lessons.library import Lesson, Posed
from glassformer.extensions.lessons.library.posing import short_path
from glassformer.extensions.rooms import room_session
from glassformer.runs import loading
from glassformer.runs.run_address import address
from glassformer.server.streamlit_private import in_fragment
from glassformer.shared.i18n import st
from glassformer.state import global_params, language, session
from glassformer.state.link import Link, read_link, read_nested, write_link, write_nested
from transformer.checkpoint.load import Checkpoint
from transformer.errors import GlassformerError
from transformer.i18n import say

ARRIVED: Final = "lesson_arrived"  # in the session: the step and the run that the page was last set for
LED: Final = "lesson_led"  # whether it was the step that set it, and not the address
SHOWN: Final = "lesson_shown"  # the run that the panel is of
SHORT_MINUTES: Final = short_path().minutes
LIST: Final = "lessons"  # path of the page with all lessons, on which the short path ends
SUMMARY: Final = say("What you have learnt")
BARE: Final = {"rev", lesson.PATH, lesson.OWN, language.PARAMETER, language.PRESENT, room_session.PARAMETER}


def places(lessons: Mapping[str, Lesson], name: str = "") -> tuple[LessonStepRef, ...]:
    """The steps of a lesson, or of the short path (""), in their order."""
    if name:
        return tuple(LessonStepRef(name, n) for n in range(1, len(lessons[name].steps) + 1))
    return tuple(
        LessonStepRef(one.name, n, short=True)
        for one in lessons.values()
        for n, step in enumerate(one.steps, 1)
        if step.short
    )


def around(
    lessons: Mapping[str, Lesson], here: LessonStepRef
) -> tuple[int, int, LessonStepRef | None, LessonStepRef | None]:
    """A step's number, the count, and its neighbours; in its lesson if the short path leaves it out.

    The number of an opening is 0, and the count leaves it out.
    """
    row = _row(lessons, "" if here.short else here.lesson)
    if here.name not in [place.name for place in row]:
        row = _row(lessons, here.lesson)
    at, opens = [place.name for place in row].index(here.name), not row[0].step
    before = row[at - 1] if at else None
    after = row[at + 1] if at + 1 < len(row) else None
    return at + 1 - opens, len(row) - opens, before, after


def _row(lessons: Mapping[str, Lesson], name: str) -> tuple[LessonStepRef, ...]:
    """The opening, if there is one, and the steps."""
    steps = places(lessons, name)
    opens = bool(steps) and lessons[steps[0].lesson].opening is not None
    return (replace(steps[0], step=0), *steps) if opens else steps


def first(lessons: Mapping[str, Lesson], name: str = "") -> LessonStepRef | None:
    """Where a lesson or the short path begins; None for a path without steps."""
    return next(iter(_row(lessons, name)), None)


def run_of(place: LessonStepRef) -> tuple[LessonStepRef, str, str | None]:
    """A step's run, whatever is open: its place, the checkpoint's name, the sentence (None for its first example)."""
    here, on = lesson.place(), lesson.scene_of(place).on
    model = st.session_state.get(session.MODEL) or ""
    source = st.session_state.get(session.SOURCE)
    own = read_nested(here.own) if here is not None else None
    if on == model:
        return replace(place, own=here.own if here else ""), model, source
    if on:
        mine = here.own if here and here.own else write_nested({"model": model, "src": source or ""})
        return replace(place, own=mine), on, None
    if own:
        return replace(place, own=""), own.get("model", model), own.get("src", source)
    return replace(place, own=""), model, source


def parameters(place: LessonStepRef, at_hand: Checkpoint | None, *, then: bool = False) -> dict[str, str]:
    """The query parameters of a step on its run, without the language; `then`: after the answer.

    `at_hand` is the open checkpoint.
    """
    place, model, source = run_of(place)
    checkpoint = at_hand if model == st.session_state.get(session.MODEL) else _open(model)
    if checkpoint is None:
        return write_link(_plain(Link(model=model, source=source))) | place.in_address()
    source = checkpoint.card.first_example() if source is None else source
    return complete(checkpoint, model, source, _looked_at(place, checkpoint, source, then=then)) | place.in_address()


def _looked_at(place: LessonStepRef, checkpoint: Checkpoint, source: str, *, then: bool) -> dict[str, str]:
    if not place.step:
        opened = lesson.opened(place, checkpoint, source)
        return opened if isinstance(opened, dict) else {}
    found = lesson.posed(place, checkpoint, source)
    return {} if not isinstance(found, Posed) else found.then() if then else found.link()


def complete(checkpoint: Checkpoint, model: str, source: str, looked_at: dict[str, str]) -> dict[str, str]:
    """The parameters of a link: a run, of which `model` is the checkpoint's name there, and what a step looks at."""
    link, _ = read_link({name: (text,) for name, text in looked_at.items()})
    link = replace(address(checkpoint, replace(link, model=model, source=source)), revision="")
    return write_link(link)


Way = tuple[str, str, dict[str, str]]  # a link: the path of a page, what it says, the parameters of its address


def to(label: str, place: LessonStepRef, at_hand: Checkpoint | None, *, then: bool = False) -> Way:
    """The link to a step, with what `parameters` makes of it."""
    return lesson.scene_of(place).page, label, parameters(place, at_hand, then=then)


def into(label: str, place: LessonStepRef) -> Way:
    """The link to a step that is posed once the learner is there."""
    place, model, source = run_of(place)
    bare = write_link(_plain(Link(model=model, source=source))) | place.in_address()
    return lesson.scene_of(place).page, label, bare


def way_out(here: LessonStepRef) -> Way:
    """The link from the last step to the page with all lessons, with the learner's own run."""
    _, label, own = into(SUMMARY if here.short else say("All lessons"), first(lesson.known()) or here)
    return LIST, label, own | here.in_address() | ({"path": lesson.SHORT} if here.short else {})


def has_summary(here: LessonStepRef | None) -> bool:
    """Whether the page says what was met, and the panel asks nothing."""
    path = places(lesson.known())
    if here is None or not here.short or st.session_state.get(session.URL_PAGE) != LIST:
        return False
    return replace(here, own="") == path[-1]


def arrive(checkpoint: Checkpoint) -> None:
    """Have the page show what the step is about, if the learner has just come to it with this run."""
    place, run = lesson.place(), predictions.run_at_hand()
    if place is None:
        return
    if at_the_step(place):
        _lead(place, checkpoint, run)
    if st.session_state.get(SHOWN) != run and in_fragment():
        st.rerun()  # the panel is outside


def news() -> None:
    """The browser has said what it remembers: the step that was led to may be answered, and then shows it."""
    if st.session_state.pop(LED, False):
        st.session_state.pop(ARRIVED, None)


def _lead(place: LessonStepRef, checkpoint: Checkpoint, run: str) -> None:
    before: tuple[str, str] | None = st.session_state.get(ARRIVED)
    given = st.session_state.get(lesson.GIVEN, False)
    if before == (place.name, run):
        st.session_state.pop(lesson.GIVEN, None)
        return
    chosen = before is not None and before[0] == place.name
    leads = not given and not (chosen and lesson.scene_of(place).on not in ("", st.session_state.get(session.MODEL)))
    there = parameters(place, checkpoint, then=predictions.of(place) is not None) if leads else None
    # Only now: the model takes time, and a run that the browser interrupts has led nowhere.
    st.session_state.pop(lesson.GIVEN, None)
    st.session_state[ARRIVED], st.session_state[LED] = (place.name, run), leads
    if there is not None and _differs(there):
        st.query_params.from_dict(global_params.beside(there))
        st.rerun()


def at_the_step(place: LessonStepRef) -> bool:
    """Whether the page that is drawn now is the step's."""
    return st.session_state.get(session.URL_PAGE) == lesson.scene_of(place).page


def _open(model: str) -> Checkpoint | None:
    """A checkpoint of this program; None for another model: a page of it asks what it has to ask."""
    entry = loading.found(model)
    try:
        return None if entry is None else loading.open_checkpoint(entry)
    except (GlassformerError, OSError):
        return None


def _plain(link: Link) -> Link:
    """A link that does not name the default checkpoint."""
    return replace(link, model="") if link.model == session.left_out()[0] else link


def _differs(there: dict[str, str]) -> bool:
    now = {name: st.query_params[name] for name in st.query_params if name not in BARE}
    return now != {name: text for name, text in there.items() if name not in BARE}
