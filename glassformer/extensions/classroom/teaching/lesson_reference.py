"""What a lesson of one's own can ask: every oracle and every pick, with its choices, its outcomes and its values.

What each means is said by the questions that the app's own lessons ask with it, in the reader's language, and by the
first line of its documentation; what its values are, by the run at hand. So nothing here differs from what there is.
"""

import inspect
from collections.abc import Iterator
from string import Formatter
from typing import Any, Final

from glassformer.extensions.classroom.lesson import LessonStepRef
from glassformer.extensions.classroom.lessons import lesson_questions
from glassformer.extensions.lessons.library import Lesson, Posed, Step, lessons
from glassformer.extensions.lessons.library.subjects import oracles as all_oracles
from glassformer.extensions.lessons.library.subjects import picks as all_picks
from glassformer.shared import drawing
from glassformer.shared.i18n import frame, st
from glassformer.state import session
from transformer.checkpoint.load import Checkpoint
from transformer.i18n import Sentence, joined, say

ORACLE: Final = "teach_oracle"


def draw(checkpoint: Checkpoint) -> None:
    """Draw the lists, and one question as it is on the sentence at hand."""
    said = say(
        "An oracle computes the answer; a pick chooses what the lesson step looks at. Both supply values; to "
        "use a value in a text or link, write its name in braces. The tables show the choices, outcomes and "
        "values that the app's own lessons use."
    )
    st.caption(said)
    st.dataframe(oracles(), hide_index=True, height=260)
    st.dataframe(picks(), hide_index=True, height=200)
    label = say("Try an oracle on the sentence above")
    name = st.selectbox(label, list(all_oracles()), index=None, key=ORACLE, placeholder="–")
    if name:
        _tried(name, checkpoint)


def oracles() -> Any:
    """The table of all oracles."""
    rows = []
    for name, oracle in all_oracles().items():
        used = list(_uses(name))
        steps = [step for _, _, step in used]
        rows.append(
            (
                name,
                joined(" · ", [question(step) for step in steps]),
                ", ".join(dict.fromkeys(word for step in steps for word in step.ask.choices)),
                ", ".join(dict.fromkeys(word for step in steps for word in step.reveal)),
                ", ".join(sorted({value for step in steps for value in values(step)})),
                ", ".join(f"{lesson.name}.{n}" for lesson, n, _ in used),
                inspect.getdoc(oracle),
            )
        )
    columns = [
        say("oracle"),
        say("asks"),
        say("choices that have a text"),
        say("outcomes that have a text"),
        say("values"),
    ]
    return frame(rows, columns=[*columns, say("used in"), say("in the code")])


def picks() -> Any:
    """The table of all picks."""
    rows = []
    for name, pick in all_picks().items():
        used = list(_uses(name))
        found = sorted({value for _, _, step in used for value in values(step)})
        steps = ", ".join(f"{lesson.name}.{n}" for lesson, n, _ in used)
        asked = ", ".join(dict.fromkeys(step.ask.oracle for _, _, step in used))
        rows.append((name, ", ".join(found), asked, steps, inspect.getdoc(pick)))
    columns = [say("pick"), say("values, including the oracle's"), say("oracles that need this pick")]
    return frame(rows, columns=[*columns, say("used in"), say("in the code")])


def _uses(name: str) -> Iterator[tuple[Lesson, int, Step]]:
    for one in lessons().values():
        for number, step in enumerate(one.steps, 1):
            if name in (step.ask.oracle, step.pick):
                yield one, number, step


def values(step: Step) -> set[str]:
    """The values that a step's texts and links name."""
    ask = step.ask
    texts = [ask.question, *ask.choices.values(), *ask.misled.values(), *step.reveal.values()]
    linked = [name for link in (*step.link.values(), *step.then.values()) for _, name, _, _ in Formatter().parse(link)]
    return {name for text in texts for name in text.names} | {name for name in linked if name}


def question(step: Step) -> Sentence:
    """What a step asks before it is posed to a run: its values are not known yet."""
    return step.ask.question.said(dict.fromkeys(step.ask.question.names, _Blank()))


class _Blank:
    """A value that is not known yet; takes any format of a number."""

    def __format__(self, spec: str) -> str:
        return "…"


def _tried(name: str, checkpoint: Checkpoint) -> None:
    lesson, number, _ = next(_uses(name))
    source = st.session_state.get(session.SOURCE) or ""
    found = lesson_questions.posed(LessonStepRef(lesson.name, number), checkpoint, source)
    if not isinstance(found, Posed):
        st.info(drawing.plain(found))
        return
    st.markdown(drawing.strong(found.question))
    right = found.answer.right
    rows = [(value, "pick", _short(is_)) for value, is_ in found.picked.items()]
    rows += [(value, "oracle", _short(is_)) for value, is_ in found.answer.values.items()]
    rows += [(option.word, "choice", option.label) for option in found.options]
    rows.append(("right", "oracle", right if isinstance(right, str) else f"{right:.4g}"))
    rows.append(("reveal", "oracle", found.answer.variant))
    st.table(frame(rows, columns=[say("name"), say("from"), say("here")]), hide_index=True)


def _short(value: object) -> str:
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 80 else text[:79] + "…"
