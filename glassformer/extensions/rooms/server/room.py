"""One room: where its teacher is, the question that is put, and who voted what, as long as it lasts.

All that is true of a room everywhere is its state, values that never change; who listens is known of this process,
and told to others by the store (`extensions/rooms/server/store.py`), which also holds a lock around every call.

Knows nothing of Streamlit, and nothing of threads.
"""

import copy
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple, Self

from glassformer.extensions.rooms.server.room_state import (
    LEAST_OF_FEW,
    LEAST_VOTES,
    MOST_CHOICES,
    Counted,
    Kept,
    Phase,
    Public,
    Question,
    RoomRefusedError,
    Round,
)

MOST_TOKENS: Final = 200
MOST_STREAMS: Final = 300  # open streams of events for teachers, projectors and whoever looks on
MOST_OF_TOKEN: Final = 3  # streams: a tab that comes again may be there twice for a while
MOST_ADDRESS: Final = 8000  # characters of a teacher's address
VOTES_AT_ONCE, VOTES_A_SECOND = 5, 0.5  # of one token
JOINS_AT_ONCE, JOINS_A_SECOND = 200, 10.0
MOST_KEPT: Final = 200  # rounds
FORGOTTEN_SECONDS: Final = 60.0  # a token that is needed for another may be dropped when unseen for so long
_STATE: Final = ("secret", "public", "used", "record", "joins", "ahead")
_OF_A_STUDENT: Final = "t."  # names of a state that begin so


class Bucket:
    """Tokens that refill, of which `most` may be taken at once; not locked, whoever holds it is."""

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
    client: str = ""  # tells who came from one address of the network, in this room alone


class Room:
    """A room, whose teacher knows the secret."""

    def __init__(self, code: str, secret: str, clock: Callable[[], float]) -> None:
        self.code, self.secret, self._clock = code, secret, clock
        self.rev = 0  # how often its state was changed in a store
        self.public = Public()
        self.used = clock()
        self.record: tuple[Kept, ...] = ()
        self.joins = Bucket(JOINS_AT_ONCE, per_second=JOINS_A_SECOND, clock=clock).held
        self.ahead: tuple[tuple[Phase, float], ...] = ()  # what is timed after what is timed now, and for how long
        self._students: dict[str, Student] = {}
        # What follows is of this process, and of what it heard of others.
        self.listeners: dict[Callable[[], None], bool] = {}
        self._streams: dict[str, int] = {}
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
        found._students, found._streams = dict(self._students), dict(self._streams)
        return found

    # ---------------------------------------------------------------- who is there

    @property
    def is_left(self) -> bool:
        """Whether nobody listens."""
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
        """Let somebody in. Raises `RefusedError`: the room is locked or full, or too many come at once."""
        if self.public.locked:
            raise RoomRefusedError("locked")
        joins = Bucket(JOINS_AT_ONCE, per_second=JOINS_A_SECOND, clock=self._clock, held=self.joins)
        taken, self.joins = joins.take(), joins.held
        if not taken:
            raise RoomRefusedError("too-often")
        if len(self._students) >= MOST_TOKENS:
            self._drop_one(client)
        self.used = self._clock()
        self._students[token] = Student(self.used, client=client)

    def _drop_one(self, client: str) -> None:
        """Forget the token that was not seen for longest, of those that did not vote.

        A client that has more tokens than the one that comes makes way at once.
        """
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
        """Whether somebody was let in."""
        return token in self._students

    def has_place(self, token: str) -> bool:
        """Whether somebody may listen here; those without a token keep no student out, nor does another student."""
        of_students = sum(self._streams.values())
        return (
            self._streams.get(token, 0) < MOST_OF_TOKEN if token else len(self.listeners) - of_students < MOST_STREAMS
        )

    def come(self, token: str) -> None:
        """Somebody who was let in listens here."""
        self._streams[token] = self._streams.get(token, 0) + 1

    def leave(self, token: str) -> None:
        """Somebody listens no more."""
        left = self._streams.get(token, 0) - 1
        if left > 0:
            self._streams[token] = left
        else:
            self._streams.pop(token, None)

    def saw(self, tokens: Collection[str]) -> None:
        """Somebody came or left, as the room shall know."""
        for token in self._students.keys() & set(tokens):
            self._students[token] = self._students[token]._replace(seen=self._clock())

    # ---------------------------------------------------------------- what its teacher does

    def move(self, page: str, parameters: Mapping[str, str]) -> bool:
        """The teacher is somewhere; whether that is news.

        Raises `RefusedError`: the address is too long to be sent.
        """
        before = self.public
        self.used = self._clock()
        if (page, dict(parameters)) == (before.page, before.parameters):
            return False
        if len(page) + sum(len(name) + len(value) for name, value in parameters.items()) > MOST_ADDRESS:
            raise RoomRefusedError("too-long")
        self._change(moves=before.moves + 1, page=page, parameters=dict(parameters), at=time.time())
        return True

    def ask(self, question: Question | None) -> bool:
        """Put a question, and take votes on it; None: no question any more. Whether that is news.

        Raises `RefusedError`: the question has too few choices, or too many.
        """
        self.used = self._clock()
        if question == self.public.question:
            return False
        if question is not None and not 2 <= len(question.choices) <= MOST_CHOICES:
            raise RoomRefusedError("no-choice")
        self._begin(question, ())
        return True

    def again(self) -> None:
        """Take new votes on the same question; those before stay to be compared with.

        Raises `RefusedError`: there is no question, its votes were not shown, or its answer was.
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
        """End the round, and show its votes. Raises `RefusedError`: no votes are taken."""
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
        """Let everybody see the answer; no votes are taken from then on.

        No choice is right where choices are not compared; what is right is told where there are no choices. Raises
        `RefusedError`: there is no question.
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
        """Let nobody else in, or somebody again; who is in stays."""
        self.used = self._clock()
        self._change(locked=locked)

    def let_few(self, few: bool) -> None:
        """Have fewer votes counted by choice, or not, from the next round on: who has voted was told otherwise."""
        self.used = self._clock()
        between = not self.public.taken and not self.public.shown
        self._change(few=few, **({"least": LEAST_OF_FEW if few else LEAST_VOTES} if between else {}))

    def start(self, vote: float, discuss: float) -> None:
        """Take votes for so many seconds; then have the class discuss for others, and vote again for as long.

        With 0 seconds to discuss there is one vote alone, which is shown at its end. Raises `RefusedError`: there is
        no question, or its answer was shown.
        """
        if not self.public.taken:
            self.again()
        self.used = self._clock()
        self.ahead = (("discuss", discuss), ("vote", vote)) if discuss else ()
        self._change(phase="vote", until=self._clock() + vote)

    def stop(self) -> None:
        """Time nothing any more; what goes on stays until its teacher ends it."""
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
        """From a vote to what follows, from discussing to the vote after it."""
        here, (next_one, *rest) = self.public, self.ahead or (("", 0.0),)
        if here.phase == "vote":
            self._close()
        else:
            self._begin(here.question, here.shown[-1:])
        self.ahead = tuple(rest)
        self._change(phase=next_one[0], until=self._clock() + next_one[1])

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
        """Take a vote. Raises `RefusedError`: it is not taken."""
        here, student = self.public, self._students.get(token)
        if student is None:
            raise RoomRefusedError("no-token")
        rate = Bucket(VOTES_AT_ONCE, per_second=VOTES_A_SECOND, clock=self._clock, held=student.rate)
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
