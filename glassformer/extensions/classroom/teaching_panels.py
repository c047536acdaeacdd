"""Page for teachers: lesson plan by minutes, handout, own lesson files, tables of the functions that find answers.

A lesson's duration in its file is for one reader; a vote with discussion makes each question longer. Source: Crouch and
Mazur, "Peer instruction: Ten years of experience and results" (2001): about one minute to think and two to talk.

An oracle or a pick is explained by the app's own questions that use it, in the user's language, and by its docstring;
its values come from the open run. So the page always agrees with the code.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from string import Formatter
from typing import Any, Final

from glassformer.charts.theme import shortened
from glassformer.extensions.classroom import lesson, teaching_links
from glassformer.extensions.classroom.handout import written
from glassformer.extensions.classroom.lesson import LessonStepRef, folder, read_own
from glassformer.extensions.classroom.teaching_links import PAGE_NAMES, question
from glassformer.extensions.lessons.library import Lesson, LessonStep, Posed, lessons
from glassformer.extensions.lessons.library.subjects import oracles as all_oracles
from glassformer.extensions.lessons.library.subjects import picks as all_picks
from glassformer.shared import drawing
from glassformer.shared.i18n import frame, st
from glassformer.state.global_params import base
from glassformer.state.language import current
from transformer.checkpoint.load import Checkpoint
from transformer.i18n import Sentence, joined, say, say_n

LEAST, USUAL, MOST, STEP = 20, 45, 180, 5  # minutes
VOTE_MINUTES: Final = 3
AROUND: Final = 5  # minutes to come into the room, and to look back
NEAR: Final = VOTE_MINUTES - 1  # minutes that no vote fills
LENGTH, CHOSEN, ABOUT = "teach_minutes", "teach_lessons", "teach_topics"
TOPICS: Final[Mapping[str, tuple[str, ...]]] = {
    # By the page that names the topic.
    "attention": ("looking", "one-weight", "scaling", "heads", "building"),
    "masks": ("masks", "cache"),
    "positions": ("order", "clocks"),
    "training": ("training", "recipe", "debug"),
}


@dataclass(frozen=True)
class Planned:
    """A lesson with its time."""

    lesson: Lesson  # which
    begins: int  # minutes from the start
    ends: int  # minutes from the start
    votes: int  # how many of its questions the class votes on


def plan(chosen: Sequence[Lesson], *, minutes: int) -> tuple[Planned, ...]:
    """The chosen lessons with their times: votes of the class, one on a question at most, fill what is left."""
    left, voted = minutes - AROUND - sum(one.minutes for one in chosen), [0] * len(chosen)
    for round_ in range(max((len(one.steps) for one in chosen), default=0)):
        for n, one in enumerate(chosen):
            if round_ < len(one.steps) and left >= VOTE_MINUTES:
                voted[n] += 1
                left -= VOTE_MINUTES
    at, found = AROUND, list[Planned]()
    for one, n_votes in zip(chosen, voted, strict=True):
        found.append(Planned(one, at, at + one.minutes + VOTE_MINUTES * n_votes, n_votes))
        at = found[-1].ends
    return tuple(found)


def proposed(lessons: Mapping[str, Lesson], *, minutes: int, topics: Sequence[str] = ()) -> list[str]:
    """Lessons that fit with a vote each, in order: first those on the topics, then others as far as time is left.

    Without topics, the first lessons, none before those that it comes after.
    """
    about = [name for topic in topics for name in TOPICS[topic] if name in lessons]
    before = {name for one in about for name in lessons[one].after}
    found = list[str]()
    for name in dict.fromkeys([*about, *sorted(lessons, key=lambda name: name not in before)]):
        chosen = [lessons[one] for one in found]
        if topics:
            wanted = name in about or not _is_full(plan(chosen, minutes=minutes), minutes)
        else:
            wanted = set(found).issuperset(lessons[name].after)
        if wanted and AROUND + sum(one.minutes + VOTE_MINUTES for one in (*chosen, lessons[name])) <= minutes:
            found.append(name)
    return [name for name in lessons if name in found]


def _is_full(planned: Sequence[Planned], minutes: int) -> bool:
    return bool(planned) and planned[-1].ends >= minutes - NEAR


def draw_plan() -> None:
    """Draw the part of the page."""
    st.subheader(say("A plan for a class"), divider=False)
    known = lesson.known()
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        minutes = st.number_input(say("Minutes"), LEAST, MOST, USUAL, STEP, key=LENGTH, width=140)
        topics = st.pills(
            say("Topics"), list(TOPICS), key=ABOUT, selection_mode="multi", format_func=PAGE_NAMES.__getitem__
        )
    names = st.multiselect(
        say("Lessons"),
        list(known),
        key=f"{CHOSEN}{minutes}{'.'.join(topics)}",  # another time or topic is another proposal
        default=proposed(known, minutes=minutes, topics=topics),
        format_func=lambda name: known[name].title.said({}),
        placeholder=say("Choose lessons"),
    )
    chosen = [one for name, one in known.items() if name in names]
    found = plan(chosen, minutes=minutes)
    if found:
        rows = [
            (say("{begins} to {ends} min", begins=one.begins, ends=one.ends), lesson.title_of(one.lesson), one.votes)
            for one in found
        ]
        st.table(frame(rows, columns=[say("Time"), say("Lesson"), say("Votes")]), hide_index=True)
        if (over := found[-1].ends - minutes) > 0:
            st.warning(
                say_n("{n} minute too long: leave out a lesson.", "{n} minutes too long: leave out a lesson.", over)
            )
        elif not _is_full(found, minutes):
            st.info(say("{n} minutes are left: add a lesson.", n=-over))
    for one in chosen:
        if missing := [known[name].title.said({}) for name in one.after if name in known and name not in names]:
            st.caption(
                drawing.plain(
                    say("“{title}” assumes: {others}.", title=one.title.said({}), others=joined(", ", missing))
                )
            )
    said = say(
        "The minutes given for a lesson assume one person working alone. Each vote and its discussion add "
        "{vote} minutes; joining the room adds {around}.",
        vote=VOTE_MINUTES,
        around=AROUND,
    )
    st.caption(said)
    with st.expander(say("What each lesson is for")):
        goals = [
            (lesson.title_of(one), one.teaches.said({}), len(one.steps), one.minutes, lesson.titles_before(one))
            for one in known.values()
        ]
        columns: list[str] = [say("Lesson"), say("Goal"), say("Questions"), say("Minutes"), say("Comes after")]
        st.table(frame(goals, columns=columns), hide_index=True)


EXAMPLE: Final = Path(__file__).with_name("example.toml").read_text(encoding="utf-8")  # a test reads it
HANDOUT, ANSWERS = "teach_handout", "teach_answers"
_WITH: dict[bool, Sentence] = {False: say("For students, without answers"), True: say("With answers")}


def draw(checkpoint: Checkpoint) -> None:
    """Draw the page below its title and the sentence."""
    teaching_links.draw(checkpoint)
    draw_plan()
    _handout(checkpoint)
    _own(checkpoint)


def _handout(checkpoint: Checkpoint) -> None:
    st.subheader(say("A handout"), divider=False)
    said = say(
        "The handout is a lesson on the sentence above, in a single file that opens offline and prints well. "
        "The answers, with the charts that show them, are in a separate file."
    )
    st.caption(said)
    known = lesson.known()
    name = st.selectbox(say("Lesson"), list(known), key=HANDOUT, format_func=lambda name: known[name].title.said({}))
    answers = st.segmented_control(
        say("Which file"), list(_WITH), key=ANSWERS, default=False, format_func=_WITH.__getitem__, required=True
    )
    source = lesson.source()
    if not source.strip():
        st.caption(say("Type a sentence at the top of the page, or choose an example."))
        return
    st.download_button(
        say("Handout as HTML"),
        partial(written, known[name], checkpoint, source, current(), app=base(), answers=bool(answers)),
        file_name=f"{name}-{'answers' if answers else 'students'}.html",
        mime="text/html",
        key="teach_file",
        on_click="ignore",
        icon=":material/download:",
    )


def _own(checkpoint: Checkpoint) -> None:
    st.subheader(say("Your own lessons"), divider=False)
    where, (found, problems) = folder(), read_own()
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
            st.warning(drawing.with_code(problem), icon=":material/error:")
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
        _reference(checkpoint)


ORACLE: Final = "teach_oracle"
Steps = Sequence[LessonStep]


def _reference(checkpoint: Checkpoint) -> None:
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
    cells: dict[str, Callable[[Steps], str]] = {
        say("asks"): lambda steps: joined(" · ", map(question, steps)),
        say("choices that have a text"): lambda steps: _each(word for step in steps for word in step.ask.choices),
        say("outcomes that have a text"): lambda steps: _each(word for step in steps for word in step.reveal),
        say("values"): _values,
    }
    return _listed(all_oracles(), say("oracle"), cells)


def picks() -> Any:
    """The table of all picks."""
    cells: dict[str, Callable[[Steps], str]] = {
        say("values"): _values,
        say("oracles that need this pick"): lambda steps: _each(step.ask.oracle for step in steps),
    }
    return _listed(all_picks(), say("pick"), cells)


def _listed(functions: Mapping[str, object], title: str, cells: Mapping[str, Callable[[Steps], str]]) -> Any:
    used = {name: list(_uses(name)) for name in functions}
    table: dict[str, list[Any]] = {title: list(functions)}
    for column, cell in cells.items():
        table[column] = [cell([step for _, _, step in found]) for found in used.values()]
    table[say("used in")] = [_each(f"{lesson.name}.{n}" for lesson, n, _ in found) for found in used.values()]
    table[say("in the code")] = list(map(inspect.getdoc, functions.values()))
    return frame(table)


def _each(words: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(words))


def _values(steps: Steps) -> str:
    return _each(sorted(value for step in steps for value in values(step)))


def _uses(name: str) -> Iterator[tuple[Lesson, int, LessonStep]]:
    for one in lessons().values():
        for number, step in enumerate(one.steps, 1):
            if name in (step.ask.oracle, step.pick):
                yield one, number, step


def values(step: LessonStep) -> set[str]:
    """The values that a step's texts and links name."""
    ask = step.ask
    texts = [ask.question, *ask.choices.values(), *ask.misled.values(), *step.reveal.values()]
    linked = [name for link in (*step.link.values(), *step.then.values()) for _, name, _, _ in Formatter().parse(link)]
    return {name for text in texts for name in text.names} | {name for name in linked if name}


def _tried(name: str, checkpoint: Checkpoint) -> None:
    one, number, _ = next(_uses(name))
    found = lesson.posed(LessonStepRef(one.name, number), checkpoint, lesson.source())
    if not isinstance(found, Posed):
        st.info(drawing.with_code(found))
        return
    st.markdown(drawing.strong(found.question))
    right = found.answer.right
    rows = [(value, "pick", _short(is_)) for value, is_ in found.picked.items()]
    rows += [(value, "oracle", _short(is_)) for value, is_ in found.answer.values.items()]
    rows += [(option.word, "choice", option.label) for option in found.options]
    rows.append(("right", "oracle", right if isinstance(right, str) else f"{right:.4g}"))
    rows.append(("reveal", "oracle", found.variant))
    st.table(frame(rows, columns=[say("name"), say("from"), say("here")]), hide_index=True)


def _short(value: object) -> str:
    return shortened(f"{value:.4g}" if isinstance(value, float) else str(value), limit=80)
