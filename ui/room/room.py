"""One room: where its teacher is, the question that is put, and who voted what, as long as it lasts.

Knows nothing of Streamlit, and nothing of threads: the registry holds a lock around every call.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from ui.room.rates import Bucket

MOST_TOKENS: Final = 200
MOST_STREAMS: Final = 300  # open streams of events: one for each token, some for teachers and projectors
MOST_CHOICES: Final = 8
LEAST_VOTES: Final = 5  # fewer are not counted by choice: who voted what could be guessed
MOST_ADDRESS: Final = 8000  # characters of a teacher's address
VOTES_AT_ONCE, VOTES_A_SECOND = 5, 0.5  # of one token
JOINS_AT_ONCE, JOINS_A_SECOND = 200, 10.0
FORGOTTEN_SECONDS: Final = 60.0  # a token that is needed for another may be dropped when unseen for so long

Why = Literal[
    "no-room", "full", "too-often", "no-token", "no-question", "over", "voted", "no-choice", "not-yours", "too-long"
]


class RefusedError(Exception):
    """What was asked for is not done.

    Attributes:
        why: A plain word for it.
    """

    def __init__(self, why: Why) -> None:
        super().__init__(why)
        self.why: Why = why


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
        own: Students keep sentences of their own instead of looking at the teacher's.
        at: When the teacher moved last, in seconds since 1970.
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
    own: bool = False
    at: float = 0.0


class Room:
    """A room.

    Args:
        code: Its code.
        secret: What its teacher knows.
        clock: Says what time it is, in seconds.
    """

    def __init__(self, code: str, secret: str, clock: Callable[[], float]) -> None:
        self.code, self.secret, self._clock = code, secret, clock
        self.public = Public()
        self.used = clock()
        self.listeners: dict[Callable[[], None], bool] = {}
        self._seen: dict[str, float] = {}  # of each token
        self._rates: dict[str, Bucket] = {}
        self._streams: dict[str, int] = {}
        self._joins = Bucket(JOINS_AT_ONCE, per_second=JOINS_A_SECOND, clock=clock)
        self._votes: dict[str, int] = {}

    @property
    def students(self) -> int:
        """How many are there now: tokens that listen."""
        return len(self._streams)

    @property
    def voted(self) -> int:
        """How many voted in this round."""
        return len(self._votes)

    def join(self, token: str) -> None:
        """Let somebody in.

        Raises:
            RefusedError: The room is full, or too many come at once.
        """
        if not self._joins.take():
            raise RefusedError("too-often")
        if len(self._seen) >= MOST_TOKENS:
            self._drop_one()
        self.used = self._seen[token] = self._clock()

    def _drop_one(self) -> None:
        """Forget the token that was not seen for longest; its vote counts on."""
        now = self._clock()
        away = [token for token in self._seen if token not in self._streams and token not in self._votes]
        oldest = min(away, key=self._seen.__getitem__, default=None)
        if oldest is None or now - self._seen[oldest] < FORGOTTEN_SECONDS:
            raise RefusedError("full")
        del self._seen[oldest]
        self._rates.pop(oldest, None)

    def knows(self, token: str) -> bool:
        """Whether somebody was let in."""
        return token in self._seen

    def come(self, token: str) -> None:
        """Somebody who was let in listens."""
        self._streams[token] = self._streams.get(token, 0) + 1
        self._seen[token] = self._clock()

    def leave(self, token: str) -> None:
        """Somebody listens no more."""
        left = self._streams.get(token, 0) - 1
        if left > 0:
            self._streams[token] = left
        else:
            self._streams.pop(token, None)
        if token in self._seen:
            self._seen[token] = self._clock()

    def move(self, page: str, parameters: Mapping[str, str]) -> bool:
        """The teacher is somewhere; whether that is news.

        Raises:
            RefusedError: The address is too long to be sent.
        """
        before = self.public
        self.used = self._clock()
        if (page, dict(parameters)) == (before.page, before.parameters):
            return False
        if len(page) + sum(len(name) + len(value) for name, value in parameters.items()) > MOST_ADDRESS:
            raise RefusedError("too-long")
        self._change(moves=before.moves + 1, page=page, parameters=dict(parameters), at=time.time())
        return True

    def ask(self, question: Question | None) -> bool:
        """Put a question, and take votes on it; None: no question any more. Whether that is news.

        Raises:
            RefusedError: The question has too few choices, or too many.
        """
        self.used = self._clock()
        if question == self.public.question:
            return False
        if question is not None and not 2 <= len(question.choices) <= MOST_CHOICES:
            raise RefusedError("no-choice")
        self._begin(question, ())
        return True

    def again(self) -> None:
        """Take new votes on the same question; those before stay to be compared with.

        Raises:
            RefusedError: There is no question, its votes were not shown, or its answer was.
        """
        here = self.public
        if here.question is None or here.taken or here.answered:
            raise RefusedError("no-question")
        self._begin(here.question, here.shown[-1:])

    def _begin(self, question: Question | None, shown: tuple[Round, ...]) -> None:
        self._votes = {}
        taken = question is not None
        number = self.public.round + taken
        self._change(question=question, round=number, taken=taken, shown=shown, answered=False, right=None)

    def show(self) -> None:
        """End the round and show its votes.

        Raises:
            RefusedError: No votes are taken.
        """
        here = self.public
        if here.question is None or not here.taken:
            raise RefusedError("no-question")
        self.used = self._clock()
        chosen = list(self._votes.values())
        counts = tuple(chosen.count(choice) for choice in range(len(here.question.choices)))
        latest = Round(len(chosen), counts if len(chosen) >= LEAST_VOTES else None)
        self._change(taken=False, shown=(*here.shown, latest))

    def answer(self, right: int | None) -> None:
        """Let everybody see the answer; no votes are taken from then on.

        Args:
            right: Which choice is right; None where choices are not compared.

        Raises:
            RefusedError: There is no question.
        """
        if self.public.question is None:
            raise RefusedError("no-question")
        if self.public.taken:
            self.show()
        self._change(answered=True, right=right)

    def let_own(self, own: bool) -> bool:
        """Have students keep sentences of their own, or not; whether that is news.

        A lesson's question is taken back: what a vote on it says is another thing then.
        """
        self.used = self._clock()
        if own == self.public.own:
            return False
        if self.public.question is not None and not self.public.question.aloud:
            self._begin(None, ())
        self._change(own=own)
        return True

    def vote(self, token: str, *, round_: int, choice: int) -> None:
        """Take a vote.

        Raises:
            RefusedError: It is not taken.
        """
        here = self.public
        if token not in self._seen:
            raise RefusedError("no-token")
        if token not in self._rates:
            self._rates[token] = Bucket(VOTES_AT_ONCE, per_second=VOTES_A_SECOND, clock=self._clock)
        if not self._rates[token].take():
            raise RefusedError("too-often")
        if here.question is None:
            raise RefusedError("no-question")
        if not here.taken or round_ != here.round:
            raise RefusedError("over")
        if not 0 <= choice < len(here.question.choices):
            raise RefusedError("no-choice")
        if token in self._votes:
            raise RefusedError("voted")
        self._votes[token] = choice
        self.used = self._seen[token] = self._clock()

    def _change(self, **fields: object) -> None:
        self.public = replace(self.public, version=self.public.version + 1, **fields)  # type: ignore[arg-type]
