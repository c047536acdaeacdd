"""What is known of a room outside: where its teacher is, what is asked, the votes that were shown, what is timed.

Knows nothing of Streamlit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

MOST_CHOICES: Final = 8
LEAST_VOTES: Final = 5  # fewer are not counted by choice: who voted what could be guessed
LEAST_OF_FEW: Final = 2  # where a teacher wants them counted all the same

Why = Literal[
    "no-room", "full", "too-often", "no-token", "no-question", "over", "voted", "no-choice", "not-yours", "too-long"
]

Phase = Literal["", "vote", "discuss"]


class RefusedError(Exception):
    """What was asked for is not done.

    Attributes:
        why: A plain word for it.
    """

    def __init__(self, why: Why) -> None:
        super().__init__(why)
        self.why: Why = why


@dataclass(frozen=True)
class Opened:
    """A room that was opened.

    Attributes:
        code: What students type.
        secret: What only its teacher has.
    """

    code: str
    secret: str


@dataclass(frozen=True)
class Counted:
    """How many there are.

    Attributes:
        students: That listen now.
        voted: That voted in this round.
        expected: That are there, or voted and left.
    """

    students: int
    voted: int
    expected: int


@dataclass(frozen=True)
class Question:
    """What the class is asked.

    Attributes:
        name: Changes exactly when the question does.
        text: What is asked, to be shown on the wall.
        choices: What can be chosen, in order.
        aloud: It stands in no lesson: the teacher asks it aloud, and its choices are letters.
    """

    name: str
    text: str
    choices: tuple[str, ...]
    aloud: bool = False


@dataclass(frozen=True)
class Round:
    """The votes of one round, as they may be shown.

    Attributes:
        voted: How many voted.
        counts: How many for each choice; None if there are too few votes to show.
    """

    voted: int
    counts: tuple[int, ...] | None


@dataclass(frozen=True)
class Public:
    """What everybody in a room may know.

    Attributes:
        version: Grows with every change of what follows.
        moves: How often the teacher moved.
        page, parameters: Where the teacher is; an empty page as long as the teacher has opened none.
        question: What is asked; None for nothing.
        round: Counts the rounds of votes of the room; 0 before the first.
        taken: Whether votes are taken.
        shown: Votes of this question that the teacher showed, the latest last.
        answered: Whether the answer may be seen.
        right: Then, which choice is right; None where choices are not compared.
        told: Then, what is right where the class types its answers to one question; "" where choices say it.
        own: Students keep sentences of their own instead of looking at the teacher's.
        at: When the teacher moved last, in seconds since 1970.
        few: Whether fewer votes than `LEAST_VOTES` are counted by choice, too, from the next round on.
        least: So many votes of this round are needed to be counted by choice.
        phase: What is timed; "" for nothing.
        until: When that ends, by the clock of the rooms.
    """

    version: int = 0
    moves: int = 0
    page: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)
    question: Question | None = None
    round: int = 0
    taken: bool = False
    shown: tuple[Round, ...] = ()
    answered: bool = False
    right: int | None = None
    told: str = ""
    own: bool = False
    at: float = 0.0
    few: bool = False
    least: int = LEAST_VOTES
    phase: Phase = ""
    until: float = 0.0
