"""The panel of a lesson beside the page: the question, the answer, the way on.

`main.py` makes its place before the page runs, as a page takes over the address before any control is drawn, and
fills it afterwards, when the page has opened the checkpoint. On a wide screen it is a column, on a narrow one a sheet
at the bottom that folds (`lesson_style`).
"""

import re
from html import escape
from typing import Any, Final

from glassformer.extensions.classroom import lesson, predictions
from glassformer.extensions.classroom.lesson import Place
from glassformer.extensions.classroom.lessons import (
    answering,
    leading,
    lesson_questions,
    lesson_style,
    memory,
    short,
    voting,
)
from glassformer.extensions.classroom.lessons.lesson_questions import Found
from glassformer.extensions.lessons.library import Posed
from glassformer.extensions.rooms import in_room
from glassformer.shared import door, drawing, menu
from glassformer.shared.door import st
from glassformer.state import session
from transformer.checkpoint.load import Checkpoint
from transformer.i18n import Sentence, say

LIST: Final = "lessons"  # the path of the page with all lessons
_KEY: Final = re.compile(r"[A-Za-z0-9_-]{1,60}", re.ASCII)
_MOST_EXAMPLES: Final = 3


def begin(page: str) -> Any:
    """Make the place of the panel; call it before the page runs. There is none outside of lessons."""
    lesson.begin()
    here = lesson.place()
    if here is None:
        voting.ask(None, None)
    if here is not None or page == LIST:
        memory.mount(page)
    if here is None:
        return None
    lesson_style.apply()
    with st.container(key=lesson_style.PANEL):
        number, count, _, _ = short.around(lesson.known(), here)
        title = lesson.known()[here.lesson].title.said({})
        said = say("{title} · {n} of {count}", title=drawing.plain(title), n=number, count=count)
        line = st.empty()
        with st.expander(said, expanded=True):
            return line, st.container()


def fill(place: Any) -> None:
    """Draw what the panel says into what `begin` made; call it after the page."""
    here, checkpoint = lesson.place(), lesson_questions.taken()
    if place is None or here is None:
        return
    st.session_state[leading.SHOWN] = predictions.run_at_hand()
    line, sheet = place
    with sheet:
        _draw(here, checkpoint, line)


def _draw(here: Place, checkpoint: Checkpoint | None, line: Any) -> None:
    if (begins := short.has_words(here)) or short.has_summary(here):
        voting.ask(None, None)
        if begins:
            short.words(checkpoint)
        label = short.BEGINS if begins else say("Back to the step")
        menu.ways([leading.to(label, here, checkpoint, then=not begins)])
        _leave()
        return
    found = current(here, checkpoint)
    voting.ask(here, found)
    if isinstance(found, Posed) and in_room.current() and in_room.taught() is None:
        line.html(lesson_style.FOLDED.format(escape(door.here(found.question))))
    answered = isinstance(found, Posed) and checkpoint is not None and _asked(here, found, checkpoint)
    if not isinstance(found, Posed):
        _not_here(here, found, checkpoint)
    _ways(here, checkpoint, answered=answered, passed=not isinstance(found, Posed))
    if leading.at_the_step(here):
        lesson_style.outline([key for key in lesson.step_of(here).look if _KEY.fullmatch(key)])


def current(here: Place, checkpoint: Checkpoint | None) -> Found:
    """The question of a step on the run that the page has opened, or why there is none."""
    on = lesson.step_of(here).on
    if checkpoint is None:
        return say("No model is open on this page. Go back to the step to continue.")
    if on not in ("", st.session_state.get(session.MODEL)):
        return say("This step uses the checkpoint {name}. Go back to the step to open it.", name=on)
    return lesson_questions.posed(here, checkpoint, st.session_state.get(session.SOURCE) or "")


def _asked(here: Place, found: Posed, checkpoint: Checkpoint) -> bool:
    """Ask, or say what became of the answer; tells whether there is one."""
    room = in_room.asks(here.name, predictions.run_at_hand())
    if room is not None:
        return voting.draw(here, found, checkpoint, room)
    given = predictions.of(here)
    source = st.session_state.get(session.SOURCE) or ""
    if given is not None and answering.reveal(here, given, checkpoint, source):
        return True
    answering.question(here, found, checkpoint)
    return False


def _not_here(here: Place, why: Sentence, checkpoint: Checkpoint | None) -> None:
    """Say why there is no question, and offer sentences that have one."""
    if checkpoint is not None and predictions.open_up(here) and lesson.step_of(here).cover:
        st.rerun()  # there is nothing to cover
    st.info(drawing.plain(why), icon=":material/info:")
    examples = () if checkpoint is None else checkpoint.card.tried()
    others = [one for one in examples if one != st.session_state.get(session.SOURCE)][:_MOST_EXAMPLES]
    if others:
        st.caption(say("Try one of these sentences:"))
        for place, example in enumerate(others):
            st.button(
                drawing.plain(example),
                key=f"lesson_example_{place}",
                type="tertiary",
                on_click=session.use_example,
                args=(example,),
            )


def _ways(here: Place, checkpoint: Checkpoint | None, *, answered: bool, passed: bool) -> None:
    """Draw the links from here: on, back, back to the step, out of the lesson."""
    _, _, before, after = short.around(lesson.known(), here)
    ways: list[leading.Way] = []
    if answered or passed:
        label = say("Next", about="lesson") if answered else say("Skip")
        ways.append(short.way_out(here) if after is None else leading.to(label, after, checkpoint))
    if before is not None:
        ways.append(leading.to(say("Back"), before, checkpoint, then=predictions.of(before) is not None))
    elif here.short and (words := short.way_in(short.WORDS, checkpoint)) is not None:
        ways.append(words)
    ways.append(leading.to(say("Back to the step"), here, checkpoint, then=answered))
    menu.ways(ways)
    _leave()


def _leave() -> None:
    st.button(say("Leave the lesson"), key="lesson_leave", type="tertiary", on_click=lesson.leave)
