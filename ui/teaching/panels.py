"""The page for teachers: a link that is built from choices, a lesson on paper, lessons in one's own words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from transformer.checkpoint.load import Checkpoint
from transformer.lessons import Lesson
from ui.shared import drawing, menu
from ui.shared.door import st
from ui.state import covering, in_room, lesson, own_lessons, session
from ui.state.language import current
from ui.state.lesson import Place
from ui.state.link import write_link
from ui.state.view import View
from ui.teaching.example import EXAMPLE
from ui.teaching.places import PAGES, base, whole
from ui.teaching.sheets import written
from words import joined, say, say_n

PAGE, STEP, COVERED, GUESS, HANDOUT = "teach_page", "teach_step", "teach_cover", "teach_guess", "teach_handout"
NONE: Final = ""
PARTS: Final[Mapping[str, str]] = {
    "*": say("everything below the sentence, the output too"),
    "part": say("everything below the output"),
    "candidates": say("the likeliest next pieces"),
    "entropy": say("how unsure each step was"),
    "cross_row": say("where a step looks"),
    "cross_map": say("the map of the Step page"),
    "head_map": say("the map of one head"),
}
"""Words of `ui.shared.cover` that a teacher may want, with what they name."""


def draw(checkpoint: Checkpoint) -> None:
    """Draw the page below its title and the sentence.

    Args:
        checkpoint: The one that is open.
    """
    _link(checkpoint)
    _handout(checkpoint)
    _own()


def _link(checkpoint: Checkpoint) -> None:
    st.subheader(say("A link for the class"), divider=False)
    st.caption(say("It opens with the sentence above and the checkpoint that is chosen in the sidebar."))
    left, right = st.columns(2, gap="medium")
    steps = _steps()
    with left:
        at = st.selectbox(say("Step of a lesson"), list(steps), key=STEP, format_func=steps.__getitem__)
        place = _place(at)
        page = st.selectbox(
            say("Page"), list(PAGES), key=PAGE, format_func=PAGES.__getitem__, disabled=place is not None
        )
    with right:
        hidden = st.multiselect(
            say("Covered"),
            list(PARTS),
            key=COVERED,
            format_func=PARTS.__getitem__,
            placeholder=say("Nothing; choose parts that are not shown"),
        )
        guess = st.toggle(say("Hide candidates until I guess"), key=GUESS, disabled=place is not None)
    path, parameters = _address(checkpoint, place, page, hidden, guess=guess)
    address = whole(base(), path, parameters)
    st.code(address, language=None, wrap_lines=True)
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        st.link_button(say("Try it"), address, icon=":material/open_in_new:")
        if in_room.taught() is not None:
            alone = {covering.PARAMETER: "", lesson.PARAMETER: ""}  # not what this session has of them
            menu.ways([(path, say("Go there with the class"), alone | parameters)])
    if hidden:
        st.caption(
            say("What is covered is not sent to the browser. A reader can show it in the sidebar: it is no lock.")
        )


def _address(
    checkpoint: Checkpoint, place: Place | None, page: str, hidden: list[str], *, guess: bool
) -> tuple[str, dict[str, str]]:
    """The path and the parameters of the link."""
    asked = session.asked()
    link = replace(asked, revision="", forced=(), tried=(), interventions=(), beside="", view=View(guess=guess))
    said = covering.write(hidden)
    # Whole, as another server may open with another checkpoint, and a card may get another first example.
    more = {"model": checkpoint.name, "src": asked.source or checkpoint.card.first_example()}
    more |= {covering.PARAMETER: said} if said else {}
    if place is None:
        return page, write_link(link) | more
    bare = replace(link, view=View())
    step = lesson.known()[place.lesson].steps[place.step - 1]
    return step.page, write_link(bare) | place.in_address() | more


def _steps() -> dict[str, str]:
    """Every step of every lesson by its name, and none."""
    found: dict[str, str] = {NONE: say("none")}
    for one in lesson.known().values():
        title = one.title.said({})
        for number, step in enumerate(one.steps, 1):
            question = step.ask.question.said(_as_they_are(step.ask.question.names))
            found[f"{one.name}.{number}"] = say("{title}, {n}: {question}", title=title, n=number, question=question)
    return found


def _as_they_are(names: frozenset[str]) -> dict[str, object]:
    """Values that a question has not found yet."""
    return dict.fromkeys(names, _Blank())


class _Blank:
    """A value that is not known yet; takes any format of a number."""

    def __format__(self, spec: str) -> str:
        return "…"


def _place(name: str) -> Place | None:
    lesson_name, _, number = name.partition(".")
    return Place(lesson_name, int(number)) if number else None


def _handout(checkpoint: Checkpoint) -> None:
    st.subheader(say("A handout"), divider=False)
    st.caption(
        say(
            "A lesson on the sentence above as one file: it opens without a network, prints well, and has the "
            "answers at its end."
        )
    )
    known = lesson.known()
    name = st.selectbox(say("Lesson"), list(known), key=HANDOUT, format_func=lambda name: known[name].title.said({}))
    source = st.session_state.get(session.SOURCE) or ""
    if not source.strip():
        st.caption(say("Type a sentence above the page, or take one of the examples."))
        return
    st.download_button(
        say("Handout as HTML"),
        partial(_file, known[name], checkpoint, source, current(), base()),
        file_name=f"{name}.html",
        mime="text/html",
        key="teach_file",
        on_click="ignore",
        icon=":material/download:",
    )


def _file(one: Lesson, checkpoint: Checkpoint, source: str, language: str, app: str) -> bytes:
    return written(one, checkpoint, source, language, app=app)


def _own() -> None:
    st.subheader(say("Lessons in your own words"), divider=False)
    where, (found, problems) = own_lessons.folder(), own_lessons.read()
    if where is None:
        st.markdown(
            say(
                "Start the app with a folder of lessons, and they stand in the list of lessons: "
                '`make run ARGS="-- --lessons DIR"`'
            )
        )
    else:
        said = say_n("{n} lesson opens from the folder.", "{n} lessons open from the folder.", len(found))
        titles = [one.title.said({}) for one in found.values()]
        st.markdown(drawing.plain(joined(" ", [said, *([joined(", ", titles)] if titles else [])])))
        for problem in problems:
            st.warning(drawing.plain(problem), icon=":material/error:")
    with st.expander(say("What such a file looks like")):
        st.caption(
            say(
                "A lesson is a TOML file. It takes its questions from those that the app can answer on any run; the "
                "texts are yours, in one language or more."
            )
        )
        st.code(EXAMPLE, language="toml")
