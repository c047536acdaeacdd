"""The page of all lessons: goals, minutes, where to continue; end of the short path, deletion of answers."""

from collections.abc import Iterator
from typing import Final

from glassformer.extensions.classroom import lesson, predictions, step_links
from glassformer.extensions.classroom.lesson import LessonStepRef
from glassformer.extensions.lessons.library import Lesson
from glassformer.extensions.lessons.library.posing import short_path
from glassformer.shared import drawing, menu
from glassformer.shared.i18n import st
from transformer.i18n import Sentence, joined, say, say_n

LIST_KEY: Final = "lesson_list"
FIRST: Final = 8  # lessons that are listed at once


def draw() -> None:
    """Draw the list."""
    _summary()
    there = lesson.known()
    said = say(
        "Each lesson first shows something that moves; then each step asks before it shows the answer: predict, then "
        "look. The answers come from your own sentence and the open checkpoint."
    )
    st.markdown(said)
    path, begins = step_links.places(there), step_links.first(there)
    if begins is not None:
        with st.container(horizontal=True, gap="small", vertical_alignment="center", key="lesson_short"):
            begin = say("Begin the {n}-minute path", n=step_links.SHORT_MINUTES)
            menu.ways([step_links.into(begin, begins)])
            said = say(
                "{count} on attention, √d_head, positions and masks, with the terms you need. The steps are "
                "marked below.",
                count=say_n("{n} step", "{n} steps", len(path)),
            )
            st.caption(said, width="content")
    lessons = list(there.values())
    for one in lessons[:FIRST]:
        _lesson(one)
    if lessons[FIRST:]:
        with st.expander(say("More lessons")):
            for one in lessons[FIRST:]:
                _lesson(one)
    st.caption(say("Your answers are kept only in this browser."))
    st.button(
        say("Delete my answers"), key="lesson_forget", on_click=predictions.forget, disabled=not predictions.kept()
    )


def _lesson(one: Lesson) -> None:
    with st.container(key=f"{LIST_KEY}_{one.name}", border=True, gap="small"):
        st.markdown(drawing.strong(lesson.title_of(one)))
        st.markdown(drawing.plain(one.teaches.said({})))
        with st.container(horizontal=True, gap="small", vertical_alignment="center"):
            place, label = _where_to_go_on(one)
            menu.ways([step_links.into(label, place)])
            st.caption(drawing.plain(joined(" ", _facts(one))), width="content")


def _where_to_go_on(one: Lesson) -> tuple[LessonStepRef, Sentence]:
    """The first step without an answer, whatever sentence it was about."""
    done = {name for name, _ in predictions.kept()}
    places = step_links.places(lesson.known(), one.name)
    ahead = [place for place in places if place.name not in done]
    if ahead and len(ahead) < len(places):
        return ahead[0], say("Continue at step {n}", n=ahead[0].step)
    begins = step_links.first(lesson.known(), one.name) or places[0]
    return begins, say("Begin") if ahead else say("Once more")


def _facts(one: Lesson) -> Iterator[str]:
    yield say(
        "{steps}, about {minutes}.",
        steps=say_n("{n} step", "{n} steps", len(one.steps)),
        minutes=say_n("{n} minute", "{n} minutes", one.minutes),
    )
    if before := lesson.titles_before(one):
        yield say("Builds on: {titles}.", titles=before)
    on_the_path = [n for n, step in enumerate(one.steps, 1) if step.short]
    if on_the_path:
        row = say_n("On the {minutes}-minute path: step {steps}.",
                    "On the {minutes}-minute path: steps {steps}.", len(on_the_path), minutes=step_links.SHORT_MINUTES,
                    steps=joined(", ", map(str, on_the_path)))  # fmt: skip
        yield row


def _summary() -> None:
    """Draw what was met on the path, how many answers were right, and what comes next; at its end."""
    if not step_links.has_summary(lesson.place()):
        return
    path = step_links.places(lesson.known())
    last = {name: one.right for (name, _), one in predictions.kept().items()}
    given = [last[place.name] for place in path if place.name in last]
    with st.container(key="path_summary", border=True):
        st.markdown(drawing.strong(step_links.SUMMARY))
        known = lesson.known()
        lines = [
            say("{title}: {text}", title=drawing.strong(known[name].title.said({})), text=drawing.plain(met.said({})))
            for name, met in short_path().met.items()
        ]
        st.markdown(joined("  \n", lines))
        said = say(
            "You predicted {given} of {n} steps, {right} of them correctly.",
            given=len(given),
            n=len(path),
            right=sum(given),
        )
        st.markdown(said)
        wrong = [place for place in path if last.get(place.name) is False]
        if wrong:
            st.caption(say("Look again at the steps whose answers surprised you:"))
            menu.ways([step_links.into(_called(place), place) for place in wrong])
        st.caption(say("More lessons"))
        names = [name for name in ("building", "pieces", "recipe") if name in known]
        further = [place for name in names if (place := step_links.first(known, name)) is not None]
        menu.ways([step_links.into(known[place.lesson].title.said({}), place) for place in further])


def _called(place: LessonStepRef) -> Sentence:
    title = lesson.known()[place.lesson].title.said({})
    return say("{title}, step {n}", title=title, n=place.step)
