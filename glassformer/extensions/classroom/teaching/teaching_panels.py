"""The page for teachers: a link that is built from choices, a lesson on paper, lessons in one's own words."""

from functools import partial
from pathlib import Path
from typing import Final

from glassformer.extensions.classroom import lesson, own_lessons
from glassformer.extensions.classroom.teaching import lesson_reference, links, planning
from glassformer.extensions.classroom.teaching.sheets import written
from glassformer.extensions.lessons.library import Lesson
from glassformer.shared import drawing
from glassformer.shared.door import st
from glassformer.state import session
from glassformer.state.apart import base
from glassformer.state.language import current
from transformer.checkpoint.load import Checkpoint
from transformer.i18n import Sentence, joined, say, say_n

EXAMPLE: Final = Path(__file__).with_name("example.toml").read_text(encoding="utf-8")  # a test reads it
HANDOUT, ANSWERS = "teach_handout", "teach_answers"
_WITH: dict[bool, Sentence] = {False: say("For students, without answers"), True: say("With answers")}


def draw(checkpoint: Checkpoint) -> None:
    """Draw the page below its title and the sentence."""
    links.draw(checkpoint)
    planning.draw()
    _handout(checkpoint)
    _own(checkpoint)


def _handout(checkpoint: Checkpoint) -> None:
    st.subheader(say("A handout"), divider=False)
    st.caption(
        say(
            "The handout is a lesson on the sentence above, in a single file that opens offline and prints well. "
            "The answers, with the charts that show them, are in a separate file."
        )
    )
    known = lesson.known()
    name = st.selectbox(say("Lesson"), list(known), key=HANDOUT, format_func=lambda name: known[name].title.said({}))
    answers = st.segmented_control(
        say("Which file"), list(_WITH), key=ANSWERS, default=False, format_func=_WITH.__getitem__, required=True
    )
    source = st.session_state.get(session.SOURCE) or ""
    if not source.strip():
        st.caption(say("Type a sentence at the top of the page, or choose an example."))
        return
    st.download_button(
        say("Handout as HTML"),
        partial(_file, known[name], checkpoint, source, current(), base(), answers=bool(answers)),
        file_name=f"{name}-{'answers' if answers else 'students'}.html",
        mime="text/html",
        key="teach_file",
        on_click="ignore",
        icon=":material/download:",
    )


def _file(one: Lesson, checkpoint: Checkpoint, source: str, language: str, app: str, *, answers: bool) -> bytes:
    return written(one, checkpoint, source, language, app=app, answers=answers)


def _own(checkpoint: Checkpoint) -> None:
    st.subheader(say("Your own lessons"), divider=False)
    where, (found, problems) = own_lessons.folder(), own_lessons.read()
    if where is None:
        st.markdown(
            say(
                "To add your own lessons to the list, start the app with the folder that contains them: `make run "
                'ARGS="-- --lessons DIR"`'
            )
        )
    else:
        said = say_n("{n} lesson was loaded from the folder.", "{n} lessons were loaded from the folder.", len(found))
        titles = [one.title.said({}) for one in found.values()]
        st.markdown(drawing.plain(joined(" ", [said, *([joined(", ", titles)] if titles else [])])))
        for problem in problems:
            st.warning(drawing.plain(problem), icon=":material/error:")
    with st.expander(say("What a lesson file looks like")):
        st.caption(
            say(
                "A lesson is a TOML file. For some questions, the app can compute the answer for any run; for the "
                "rest, the file gives the correct answer. A lesson can also reuse steps of other lessons. You "
                "write the texts, in one or more languages."
            )
        )
        st.code(EXAMPLE, language="toml")
    with st.expander(say("What a lesson can ask")):
        lesson_reference.draw(checkpoint)
