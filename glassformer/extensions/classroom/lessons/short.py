"""The way through lessons: which step comes before and after which, and the two ends of the short path.

The path begins with the opening of its first lesson, beside which its terms are folded. The page with all lessons shows
the summary.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from glassformer.extensions.classroom import lesson, predictions
from glassformer.extensions.classroom.lesson import LessonStepRef
from glassformer.extensions.classroom.lessons import lesson_questions, step_links
from glassformer.extensions.lessons.library import Lesson
from glassformer.extensions.lessons.library.path import short_path, words_on
from glassformer.shared import drawing, menu
from glassformer.shared.i18n import st
from glassformer.state import session
from transformer.checkpoint.load import Checkpoint
from transformer.i18n import Sentence, joined, say

SHORT_MINUTES: Final = short_path().minutes


def places(lessons: Mapping[str, Lesson], name: str, *, short: bool) -> tuple[LessonStepRef, ...]:
    """The steps of a lesson, or all of the short path, in their order."""
    if not short:
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
    row = _row(lessons, here.lesson, short=here.short)
    if here.name not in [place.name for place in row]:
        row = _row(lessons, here.lesson, short=False)
    at, opens = [place.name for place in row].index(here.name), not row[0].step
    before = row[at - 1] if at else None
    after = row[at + 1] if at + 1 < len(row) else None
    return at + 1 - opens, len(row) - opens, before, after


def _row(lessons: Mapping[str, Lesson], name: str, *, short: bool) -> tuple[LessonStepRef, ...]:
    """The opening, if there is one, and the steps."""
    steps = places(lessons, name, short=short)
    opens = bool(steps) and lessons[steps[0].lesson].opening is not None
    return (replace(steps[0], step=0), *steps) if opens else steps


def first(lessons: Mapping[str, Lesson], name: str, *, short: bool) -> LessonStepRef | None:
    """Where a lesson or the short path begins; None for a path without steps."""
    return next(iter(_row(lessons, name, short=short)), None)


LIST = "lessons"  # path of the page on which the path ends
BEGINS, WORDS, SUMMARY = say("Go to the first question"), say("Terms for this path"), say("What you have learnt")


def words(checkpoint: Checkpoint | None) -> None:
    """Say the words of the path, folded."""
    source = st.session_state.get(session.SOURCE) or ""
    found = None if checkpoint is None else lesson_questions.made(checkpoint, source, "path", words_on)
    if not isinstance(found, dict):
        return  # the question says why
    with st.expander(WORDS):
        for term, says in short_path().words:
            line = say("{term}: {text}", term=drawing.strong(term.said({})), text=drawing.plain(says.said(found)))
            st.markdown(line)


def way_out(here: LessonStepRef) -> step_links.Way:
    """The link from the last step to the page with all lessons, with the learner's own run."""
    _, label, own = step_links.into(
        SUMMARY if here.short else say("All lessons"), first(lesson.known(), "", short=True) or here
    )
    return LIST, label, own | here.in_address() | ({"path": lesson.SHORT} if here.short else {})


def has_summary(here: LessonStepRef | None) -> bool:
    """Whether the page says what was met, and the panel asks nothing."""
    path = places(lesson.known(), "", short=True)
    if here is None or not here.short or st.session_state.get(session.URL_PAGE) != LIST:
        return False
    return replace(here, own="") == path[-1]


def summary() -> None:
    """Draw what was met on the path, how many answers were right, and what comes next; at its end."""
    if not has_summary(lesson.place()):
        return
    path = places(lesson.known(), "", short=True)
    last = {name: one.right for (name, _), one in predictions.kept().items()}
    given = [last[place.name] for place in path if place.name in last]
    with st.container(key="path_summary", border=True):
        st.markdown(drawing.strong(SUMMARY))
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
        st.caption(say("Next: how heads are built, how text is cut into tokens, and how a model is trained."))
        names = [name for name in ("building", "pieces", "recipe") if name in known]
        further = [place for name in names if (place := first(known, name, short=False)) is not None]
        menu.ways([step_links.into(known[place.lesson].title.said({}), place) for place in further])


def _called(place: LessonStepRef) -> Sentence:
    title = lesson.known()[place.lesson].title.said({})
    return say("{title}, step {n}", title=title, n=place.step)
