"""What is known of a room outside: where its teacher is, what is asked, the votes that were shown, what is timed.

Its record is a table of what was asked and how often each choice was chosen, of nobody in particular; rounds with too
few votes to be counted by choice have only their number of votes there, too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from transformer.i18n import say

MOST_CHOICES: Final = 8
LEAST_VOTES: Final = 5  # fewer are not counted by choice: who voted what could be guessed
LEAST_OF_FEW: Final = 2  # where a teacher wants them counted all the same

_Refusal = Literal[
    "no-room", "full", "too-often", "no-token", "no-question", "over", "voted", "no-choice", "not-yours", "too-long",
    "locked", "crowded",
]  # fmt: skip
Why = Literal[_Refusal, "away"]

Phase = Literal["", "vote", "discuss"]


class RoomRefusedError(Exception):
    """What was asked for is not done; `why` is a plain word for it."""

    def __init__(self, why: Why) -> None:
        super().__init__(why)
        self.why: Why = why


@dataclass(frozen=True)
class OpenedRoom:
    """A room that was opened."""

    code: str  # what students type
    secret: str  # what only its teacher has


@dataclass(frozen=True)
class Counted:
    """How many there are."""

    students: int  # that listen now
    voted: int  # that voted in this round
    expected: int  # that are there, or voted and left


@dataclass(frozen=True)
class Question:
    """What the class is asked."""

    name: str  # changes exactly when the question does
    text: str  # what is asked, to be shown on the wall
    choices: tuple[str, ...]  # what can be chosen, in order
    aloud: bool = False  # it stands in no lesson: the teacher asks it aloud, and its choices are letters


@dataclass(frozen=True)
class Round:
    """The votes of one round, as they may be shown."""

    voted: int  # how many voted
    counts: tuple[int, ...] | None  # how many for each choice; None if there are too few votes to show


@dataclass(frozen=True)
class Public:
    """What everybody in a room may know."""

    version: int = 0  # grows with every change of what follows
    moves: int = 0  # how often the teacher moved
    page: str = ""  # where the teacher is; an empty page as long as the teacher has opened none
    parameters: Mapping[str, str] = field(default_factory=dict)
    question: Question | None = None  # what is asked; None for nothing
    round: int = 0  # counts the rounds of votes of the room; 0 before the first
    taken: bool = False  # whether votes are taken
    shown: tuple[Round, ...] = ()  # votes of this question that the teacher showed, the latest last
    answered: bool = False  # whether the answer may be seen
    right: int | None = None  # then, which choice is right; None where choices are not compared
    told: str = ""  # then, what is right where the class types its answers to one question; "" where choices say it
    own: bool = False  # students keep sentences of their own instead of looking at the teacher's
    at: float = 0.0  # when the teacher moved last, in seconds since 1970
    few: bool = False  # whether fewer votes than `LEAST_VOTES` are counted by choice, too, from the next round on
    least: int = LEAST_VOTES  # so many votes of this round are needed to be counted by choice
    phase: Phase = ""  # what is timed; "" for nothing
    until: float = 0.0  # when that ends, by the clock of the rooms
    locked: bool = False  # nobody else is let in


@dataclass(frozen=True)
class Kept:
    """A round that has ended."""

    question: Question  # what was asked
    number: int  # of the round in its room, from 1
    round: Round  # its votes
    right: int | None = None  # which choice is right; None where that was not shown, or choices are not compared


def table(record: Sequence[Kept]) -> dict[str, list[Any]]:
    """The columns by their names: a row for each choice of each round."""
    rows: list[tuple[Any, ...]] = []
    for one in record:
        counts = one.round.counts or (None,) * len(one.question.choices)
        for place, (choice, votes) in enumerate(zip(one.question.choices, counts, strict=True)):
            right = "" if one.right is None else int(place == one.right)
            step = "" if one.question.aloud else ".".join(one.question.name.split(".")[:2])
            rows.append((one.number, one.question.text, step, one.round.voted, choice, votes, right))
    names = [
        say("round"),
        say("question"),
        say("step of a lesson"),
        say("votes in the round"),
        say("choice"),
        say("votes for the choice"),
        say("right (1) or not (0)"),
    ]
    return {name: [row[place] for row in rows] for place, name in enumerate(names)}
