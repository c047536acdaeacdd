"""One room: where its teacher is, the question that is put, and who voted what, as long as it lasts.

Knows nothing of Streamlit, and nothing of threads: the registry holds a lock around every call.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from ui.server.public import (
    LEAST_OF_FEW,
    LEAST_VOTES,
    MOST_CHOICES,
    Counted,
    Kept,
    Phase,
    Public,
    Question,
    RefusedError,
    Round,
)

MOST_TOKENS: Final = 200
MOST_STREAMS: Final = 300  # open streams of events: one for each token, some for teachers and projectors
MOST_ADDRESS: Final = 8000  # characters of a teacher's address
VOTES_AT_ONCE, VOTES_A_SECOND = 5, 0.5  # of one token
JOINS_AT_ONCE, JOINS_A_SECOND = 200, 10.0
MOST_KEPT: Final = 200  # rounds
FORGOTTEN_SECONDS: Final = 60.0  # a token that is needed for another may be dropped when unseen for so long


class Bucket:
    """Tokens that refill, of which `most` may be taken at once; not locked, whoever holds it is."""

    def __init__(self, most: float, *, per_second: float, clock: Callable[[], float]) -> None:
        self._most, self._per_second, self._clock = most, per_second, clock
        self._left, self._since = most, clock()

    def take(self) -> bool:
        """Take one; whether there was one."""
        now = self._clock()
        self._left = min(self._most, self._left + (now - self._since) * self._per_second)
        self._since = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


class Room:
    """A room, whose teacher knows the secret."""

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
        self._ahead: list[tuple[Phase, float]] = []  # what is timed after what is timed now, and for how long
        self.record: tuple[Kept, ...] = ()

    def counted(self) -> Counted:
        """How many listen now, voted in this round, and could have: who listens, and who voted and left."""
        return Counted(len(self._streams), len(self._votes), len({*self._streams, *self._votes}))

    def join(self, token: str) -> None:
        """Let somebody in. Raises `RefusedError`: the room is full, or too many come at once."""
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

        Raises `RefusedError`: the address is too long to be sent.
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

        Raises `RefusedError`: the question has too few choices, or too many.
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

        Raises `RefusedError`: there is no question, its votes were not shown, or its answer was.
        """
        here = self.public
        if here.phase == "discuss":
            self._go_on()
            return
        if here.question is None or here.taken or here.answered:
            raise RefusedError("no-question")
        self._begin(here.question, here.shown[-1:])

    def _begin(self, question: Question | None, shown: tuple[Round, ...]) -> None:
        if self.public.taken and self._votes:
            self._keep(self._counted())  # never shown, and not lost
        self._votes, self._ahead = {}, []
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
            raise RefusedError("no-question")
        self._close()
        self.stop()

    def _close(self) -> None:
        latest = self._counted()
        self._keep(latest)
        self._change(taken=False, shown=(*self.public.shown, latest))

    def _counted(self) -> Round:
        here, chosen = self.public, list(self._votes.values())
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
            raise RefusedError("no-question")
        if here.taken:
            self.show()
        self.stop()
        self._change(answered=True, right=right, told=told)
        self.record = tuple(
            replace(one, right=right) if one.question == here.question else one for one in self.record
        )

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
        self._ahead = [("discuss", discuss), ("vote", vote)] if discuss else []
        self._change(phase="vote", until=self._clock() + vote)

    def stop(self) -> None:
        """Time nothing any more; what goes on stays until its teacher ends it."""
        self._ahead = []
        if self.public.phase:
            self._change(phase="")

    def tick(self) -> None:
        """Go on where the time of something is up."""
        if self.public.phase and self._clock() >= self.public.until:
            self._go_on()

    def _go_on(self) -> None:
        """From a vote to what follows, from discussing to the vote after it."""
        here, (next_one, *rest) = self.public, self._ahead or [("", 0.0)]
        if here.phase == "vote":
            self._close()
        else:
            self._begin(here.question, here.shown[-1:])
        self._ahead = rest
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
