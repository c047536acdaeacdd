"""Which lessons fill 45 or 90 minutes, and what each is for: from what the lessons' files say.

How long a lesson takes is its file's number, for one reader alone; a vote with its talk makes each question longer.
Source: Crouch and Mazur, "Peer instruction: Ten years of experience and results" (2001): about a minute to think and
two to talk.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from transformer.lessons import Lesson
from ui.shared.door import frame, st
from ui.state import lesson
from words import joined, say

LENGTHS: Final = (45, 90)
VOTE_MINUTES: Final = 3
AROUND: Final = 5  # minutes to come into the room, and to look back
LENGTH, FIRST, VOTES = "teach_minutes", "teach_first", "teach_votes"


@dataclass(frozen=True)
class Planned:
    """A lesson with its time."""

    lesson: Lesson  # which
    begins: int  # minutes from the start
    ends: int  # minutes from the start
    votes: int  # how many of its questions the class votes on


def plan(lessons: Mapping[str, Lesson], *, minutes: int, first: str, votes: int) -> tuple[Planned, ...]:
    """The lessons that fit, in their order; one whose beginnings are neither known nor planned is left out.

    The class knows those before the `first`, and votes on so many questions of each.
    """
    names = list(lessons)
    known, at, found = set(names[: names.index(first)]), AROUND, list[Planned]()
    for one in list(lessons.values())[names.index(first) :]:
        voted = min(votes, len(one.steps))
        ends = at + one.minutes + VOTE_MINUTES * voted
        if ends <= minutes and (known.issuperset(one.after) or not found):
            found.append(Planned(one, at, ends, voted))
            known.add(one.name)
            at = ends
    return tuple(found)


def draw() -> None:
    """Draw the part of the page."""
    st.subheader(say("A plan for a class"), divider=False)
    known = lesson.known()
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        minutes = st.segmented_control(say("Minutes"), list(LENGTHS), key=LENGTH, default=LENGTHS[0], required=True)
        first = st.selectbox(
            say("Begin with"), list(known), key=FIRST, format_func=lambda name: known[name].title.said({})
        )
        votes = st.segmented_control(say("Votes per lesson"), [0, 1, 2, 3, 4], key=VOTES, default=2, required=True)
    found = plan(known, minutes=minutes or LENGTHS[0], first=first, votes=2 if votes is None else votes)
    if found:
        rows = [
            (say("{begins} to {ends} min", begins=one.begins, ends=one.ends), _title(one.lesson), one.votes)
            for one in found
        ]
        st.table(frame(rows, columns=[say("Time"), say("Lesson"), say("Votes")]), hide_index=True)
    else:
        st.caption(say("With this many votes, the lesson does not fit into the time you chose. Choose fewer votes."))
    st.caption(
        say(
            "The minutes given for a lesson assume one person working alone. Each vote and its discussion add "
            "{vote} minutes; joining the room adds {around}.",
            vote=VOTE_MINUTES,
            around=AROUND,
        )
    )
    with st.expander(say("What each lesson is for")):
        goals = [
            (_title(one), one.teaches.said({}), len(one.steps), one.minutes, _before(one)) for one in known.values()
        ]
        columns: list[str] = [say("Lesson"), say("Goal"), say("Questions"), say("Minutes"), say("Comes after")]
        st.table(frame(goals, columns=columns), hide_index=True)


def _title(one: Lesson) -> str:
    title = one.title.said({})
    return say("{n}. {title}", n=one.number, title=title) if one.number else title


def _before(one: Lesson) -> str:
    known = lesson.known()
    return joined(", ", [known[name].title.said({}) for name in one.after if name in known])
