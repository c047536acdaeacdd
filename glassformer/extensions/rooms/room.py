"""A room: its state records, teacher's actions, students, timed votes, table of rounds, and `TokenBucket`.

The state of a room is an immutable value, the same in all processes; what is public of it has no personal data. Its
listeners are known per process; the store (`extensions/rooms/store.py`) reports them to the others, and holds a
lock around every call. Its record is a table of questions and of how often each choice was chosen, without names. A
round with too few votes has only its total, in the record too.

Knows nothing of Streamlit or threads.
"""

import copy
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, NamedTuple, Self

from transformer.i18n import say

MOST_CHOICES: Final = 8
LEAST_VOTES: Final = 5  # fewer are not counted by choice: who voted what could be guessed
LEAST_OF_FEW: Final = 2  # where a teacher wants them counted all the same

Why = Literal[
    "no-room", "full", "too-often", "no-token", "no-question", "over", "voted", "no-choice", "not-yours", "too-long",
    "locked", "crowded", "away",
]  # fmt: skip
Phase = Literal["", "vote", "discuss"]


class RoomRefusedError(Exception):
    """An action is refused; `why` is a word for the reason."""

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
    expected: int  # students who are present, or voted and left


@dataclass(frozen=True)
class Question:
    """What the class is asked."""

    name: str  # changes exactly when the question does
    text: str  # shown by the projector
    choices: tuple[str, ...]  # what can be chosen, in order
    aloud: bool = False  # not from a lesson: the teacher asks it aloud, and its choices are letters


@dataclass(frozen=True)
class Round:
    """The votes of one round, as they may be shown."""

    voted: int  # how many voted
    counts: tuple[int, ...] | None  # how many for each choice; None if there are too few votes to show


@dataclass(frozen=True)
class Public:
    """The public state of a room."""

    version: int = 0  # grows with every change of what follows
    moves: int = 0  # how often the teacher moved
    page: str = ""  # where the teacher is; an empty page as long as the teacher has opened none
    parameters: Mapping[str, str] = field(default_factory=dict)
    question: Question | None = None  # None for none
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
    phase: Phase = ""  # the timed phase; "" for none
    until: float = 0.0  # when that ends, by the clock of the rooms
    locked: bool = False  # no more students are admitted


@dataclass(frozen=True)
class Kept:
    """A round that has ended."""

    question: Question  # what was asked
    number: int  # of the round in its room, from 1
    round: Round  # its votes
    right: int | None = None  # which choice is right; None where that was not shown, or choices are not compared


def table(record: Sequence[Kept]) -> dict[str, list[Any]]:
    """The columns by name: one row per choice of each round."""
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


MOST_TOKENS: Final = 200
MOST_STREAMS: Final = 300  # open event streams of teachers, projectors and spectators
MOST_OF_TOKEN: Final = 3  # streams: a tab that comes again may be there twice for a while
MOST_ADDRESS: Final = 8000  # characters of a teacher's URL
VOTES_AT_ONCE, VOTES_A_SECOND = 5, 0.5  # of one token
JOINS_AT_ONCE, JOINS_A_SECOND = 200, 10.0
MOST_KEPT: Final = 200  # rounds
FORGOTTEN_SECONDS: Final = 60.0  # a token that is needed for another may be dropped when unseen for so long
_STATE: Final = ("secret", "public", "used", "record", "joins", "ahead")
_OF_A_STUDENT: Final = "t."  # names of a state that begin so


class TokenBucket:
    """Token bucket with a burst of `most`; not thread-safe, its owner locks."""

    def __init__(
        self, most: float, *, per_second: float, clock: Callable[[], float], held: tuple[float, float] | None = None
    ) -> None:
        self._most, self._per_second, self._clock = most, per_second, clock
        self.held = (most, clock()) if held is None else held  # how many are left, and since when

    def take(self) -> bool:
        """Take one; whether there was one."""
        (left, since), now = self.held, self._clock()
        left = min(self._most, left + max(0.0, now - since) * self._per_second)
        self.held = (left - 1 if left >= 1 else left), now
        return left >= 1


class Student(NamedTuple):
    """What is known of a token."""

    seen: float  # when it was last
    vote: int | None = None  # in this round
    rate: tuple[float, float] | None = None  # what its bucket of votes holds
    client: str = ""  # identifies a network address, in this room only


class Room:
    """A room, whose teacher knows the secret."""

    def __init__(self, code: str, secret: str, clock: Callable[[], float]) -> None:
        self.code, self.secret, self._clock = code, secret, clock
        self.rev = 0  # how often its state was changed in a store
        self.public = Public()
        self.used = clock()
        self.record: tuple[Kept, ...] = ()
        self.joins = TokenBucket(JOINS_AT_ONCE, per_second=JOINS_A_SECOND, clock=clock).held
        self.ahead: tuple[tuple[Phase, float], ...] = ()  # the next timed phases, and their seconds
        self._students: dict[str, Student] = {}
        # State of this process, and reports of the others.
        self.listeners: dict[Callable[[], None], bool] = {}
        self._streams: Counter[str] = Counter()
        self.elsewhere: dict[str, Collection[str]] = {}  # the tokens that listen at each other process

    # ---------------------------------------------------------------- its state

    def state(self) -> dict[str, Any]:
        """All that is true of the room everywhere, by names."""
        said = {name: getattr(self, name) for name in _STATE}
        return said | {f"{_OF_A_STUDENT}{token}": student for token, student in self._students.items()}

    def become(self, state: Mapping[str, Any]) -> Self:
        """Take over a whole state."""
        for name in _STATE:
            setattr(self, name, state[name])
        at = len(_OF_A_STUDENT)
        self._students = {name[at:]: one for name, one in state.items() if name.startswith(_OF_A_STUDENT)}
        return self

    def tried(self) -> Self:
        """The same room, on which something can be tried; who listens is the same for both."""
        found = copy.copy(self)
        found._students, found._streams = dict(self._students), self._streams.copy()
        return found

    # ---------------------------------------------------------------- who is there

    @property
    def is_left(self) -> bool:
        """Whether there are no listeners."""
        return not self.listeners and not any(self.elsewhere.values())

    def here(self) -> frozenset[str]:
        """The tokens that listen at this process."""
        return frozenset(self._streams)

    def _listening(self) -> set[str]:
        return set(self._streams).union(*self.elsewhere.values())

    def counted(self) -> Counted:
        """How many listen now, voted in this round, and could have: who listens, and who voted and left."""
        listening, voted = self._listening(), self._votes()
        return Counted(len(listening), len(voted), len(listening | voted.keys()))

    def _votes(self) -> dict[str, int]:
        return {token: one.vote for token, one in self._students.items() if one.vote is not None}

    def join(self, token: str, client: str = "") -> None:
        """Admit a student. Raises `RoomRefusedError`: the room is locked or full, or too many join at once."""
        if self.public.locked:
            raise RoomRefusedError("locked")
        joins = TokenBucket(JOINS_AT_ONCE, per_second=JOINS_A_SECOND, clock=self._clock, held=self.joins)
        taken, self.joins = joins.take(), joins.held
        if not taken:
            raise RoomRefusedError("too-often")
        if len(self._students) >= MOST_TOKENS:
            self._drop_one(client)
        self.used = self._clock()
        self._students[token] = Student(self.used, client=client)

    def _drop_one(self, client: str) -> None:
        """Remove the longest unseen token without a vote: one that expired, or one of a client with more tokens."""
        now, listening = self._clock(), self._listening()
        held = Counter(one.client for one in self._students.values() if one.client)
        gone = {
            token: one.seen
            for token, one in self._students.items()
            if token not in listening and one.vote is None
            and (now - one.seen >= FORGOTTEN_SECONDS or (client and held[one.client] > held[client] + 1))
        }  # fmt: skip
        if not gone:
            raise RoomRefusedError("full")
        del self._students[min(gone, key=gone.__getitem__)]

    def knows(self, token: str) -> bool:
        """Whether a token was admitted."""
        return token in self._students

    def has_place(self, token: str) -> bool:
        """Whether there is space for a listener; a student's tabs and spectators are limited separately."""
        spectators = len(self.listeners) - self._streams.total()
        return self._streams[token] < MOST_OF_TOKEN if token else spectators < MOST_STREAMS

    def come(self, token: str) -> None:
        """Somebody who was let in listens here."""
        self._streams[token] += 1

    def leave(self, token: str) -> None:
        """A listener left."""
        self._streams -= Counter((token,))  # keeps those that are left

    def saw(self, tokens: Collection[str]) -> None:
        """Update when these students were last seen."""
        for token in self._students.keys() & set(tokens):
            self._students[token] = self._students[token]._replace(seen=self._clock())

    # ---------------------------------------------------------------- what its teacher does

    def move(self, page: str, parameters: Mapping[str, str]) -> bool:
        """Set the teacher's page; returns whether it changed. Raises `RoomRefusedError`: the URL is too long."""
        before = self.public
        self.used = self._clock()
        if (page, dict(parameters)) == (before.page, before.parameters):
            return False
        if len(page) + sum(len(name) + len(value) for name, value in parameters.items()) > MOST_ADDRESS:
            raise RoomRefusedError("too-long")
        self._change(moves=before.moves + 1, page=page, parameters=dict(parameters), at=time.time())
        return True

    def ask(self, question: Question | None) -> bool:
        """Ask a question and take votes, or end it with None; returns whether anything changed.

        Raises `RoomRefusedError`: the question has too few or too many choices.
        """
        self.used = self._clock()
        if question == self.public.question:
            return False
        if question is not None and not 2 <= len(question.choices) <= MOST_CHOICES:
            raise RoomRefusedError("no-choice")
        self._begin(question, ())
        return True

    def again(self) -> None:
        """Take new votes on the same question; the first votes stay for comparison.

        Raises `RoomRefusedError`: there is no question, its votes were not shown, or its answer was.
        """
        here = self.public
        if here.phase == "discuss":
            self._go_on()
            return
        if here.question is None or here.taken or here.answered:
            raise RoomRefusedError("no-question")
        self._begin(here.question, here.shown[-1:])

    def _begin(self, question: Question | None, shown: tuple[Round, ...]) -> None:
        if self.public.taken and self._votes():
            self._keep(self._counted())  # never shown, and not lost
        self._students = {token: one._replace(vote=None) for token, one in self._students.items()}
        self.ahead = ()
        taken = question is not None
        number = self.public.round + (1 if taken else 0)
        least = LEAST_OF_FEW if self.public.few else LEAST_VOTES
        self._change(
            question=question, round=number, taken=taken, shown=shown, answered=False, right=None, told="",
            least=least, phase="",
        )  # fmt: skip

    def show(self) -> None:
        """End the round, and show its votes. Raises `RoomRefusedError`: no votes are taken."""
        self.used = self._clock()
        if self.public.phase == "discuss":
            self.stop()
            return
        if self.public.question is None or not self.public.taken:
            raise RoomRefusedError("no-question")
        self._close()
        self.stop()

    def _close(self) -> None:
        latest = self._counted()
        self._keep(latest)
        self._change(taken=False, shown=(*self.public.shown, latest))

    def _counted(self) -> Round:
        here, chosen = self.public, list(self._votes().values())
        counts = tuple(chosen.count(choice) for choice in range(len(here.question.choices) if here.question else 0))
        return Round(len(chosen), counts if len(chosen) >= here.least else None)

    def _keep(self, latest: Round) -> None:
        question = self.public.question
        if question is not None:
            self.record = (*self.record, Kept(question, self.public.round, latest))[-MOST_KEPT:]

    def answer(self, right: int | None = None, told: str = "") -> None:
        """Show the answer and stop the votes.

        `right` is None where no choice is right; `told` is the answer where there are no choices. Raises
        `RoomRefusedError`: there is no question.
        """
        here = self.public
        if here.question is None:
            raise RoomRefusedError("no-question")
        if here.taken:
            self.show()
        self.stop()
        self._change(answered=True, right=right, told=told)
        self.record = tuple(replace(one, right=right) if one.question == here.question else one for one in self.record)

    def lock(self, locked: bool) -> None:
        """Lock or unlock the room; admitted students stay."""
        self.used = self._clock()
        self._change(locked=locked)

    def let_few(self, few: bool) -> None:
        """Have fewer votes counted by choice, or not, from the next round on: who has voted was told otherwise."""
        self.used = self._clock()
        between = not self.public.taken and not self.public.shown
        self._change(few=few, **({"least": LEAST_OF_FEW if few else LEAST_VOTES} if between else {}))

    def start(self, vote: float, discuss: float) -> None:
        """Take votes for `vote` seconds, then discuss for `discuss` seconds, then vote again for as long as before.

        With 0 seconds to discuss there is one vote, shown at its end. Raises `RoomRefusedError`: there is no question,
        or its answer was shown.
        """
        if not self.public.taken:
            self.again()
        self.used = self._clock()
        self.ahead = (("discuss", discuss), ("vote", vote)) if discuss else ()
        self._change(phase="vote", until=self._clock() + vote)

    def stop(self) -> None:
        """Stop the timer; the current phase lasts until the teacher ends it."""
        self.ahead = ()
        if self.public.phase:
            self._change(phase="")

    def is_due(self) -> bool:
        """Whether the time of something is up."""
        return bool(self.public.phase) and self._clock() >= self.public.until

    def tick(self) -> None:
        """Go on where the time of something is up."""
        if self.is_due():
            self._go_on()

    def _go_on(self) -> None:
        """Go from a vote to the discussion or end, and from a discussion to the second vote."""
        here, (next_one, *rest) = self.public, self.ahead or (("", 0.0),)
        if here.phase == "vote":
            self._close()
        else:
            self._begin(here.question, here.shown[-1:])
        self.ahead = tuple(rest)
        self._change(phase=next_one[0], until=self._clock() + next_one[1])

    def let_own(self, own: bool) -> bool:
        """Set whether students keep their own sentences; returns whether it changed.

        A lesson's question is withdrawn, because its votes would then mean something else.
        """
        self.used = self._clock()
        if own == self.public.own:
            return False
        if self.public.question is not None and not self.public.question.aloud:
            self._begin(None, ())
        self._change(own=own)
        return True

    def vote(self, token: str, *, round_: int, choice: int) -> None:
        """Take a vote. Raises `RoomRefusedError`: it is not taken."""
        here, student = self.public, self._students.get(token)
        if student is None:
            raise RoomRefusedError("no-token")
        rate = TokenBucket(VOTES_AT_ONCE, per_second=VOTES_A_SECOND, clock=self._clock, held=student.rate)
        taken = rate.take()
        self._students[token] = student = student._replace(rate=rate.held)
        if not taken:
            raise RoomRefusedError("too-often")
        if here.question is None:
            raise RoomRefusedError("no-question")
        if not here.taken or round_ != here.round:
            raise RoomRefusedError("over")
        if not 0 <= choice < len(here.question.choices):
            raise RoomRefusedError("no-choice")
        if student.vote is not None:
            raise RoomRefusedError("voted")
        self.used = self._clock()
        self._students[token] = student._replace(vote=choice, seen=self.used)

    def _change(self, **fields: object) -> None:
        self.public = replace(self.public, version=self.public.version + 1, **fields)  # type: ignore[arg-type]
