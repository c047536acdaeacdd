"""Many draws of a sentence that are being made, or were: in the background, some at a time, kept while there is room.

They go through the one queue in front of the model (`ui.runs.work`), a few draws after the other: whoever asks for a
sentence meanwhile goes first, also between two steps. What is there can be looked at while the rest comes.

Knows nothing of Streamlit.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Literal

from transformer.analysis.draws import Draw, draws
from transformer.checkpoint.load import Checkpoint
from transformer.errors import GlassformerError
from transformer.runs.query import Query
from ui.runs.queue import cost_of
from ui.runs.work import BusyError, Runner
from words import Sentence, say

ROWS = 16  # that are drawn together
MOST_KEPT = 64  # of 200 draws each about 100 kB
AT_ONCE = 4
_TRY_AGAIN_SECONDS = 0.5

State = Literal["waiting", "running", "done", "cancelled", "failed"]
_LOG = logging.getLogger("glassformer.draws")


class _Cancelled(BaseException):
    """Ends a job between two steps; no `Exception`, which would be taken for a draw's own."""


@dataclass(frozen=True)
class Wanted:
    """What is drawn; whoever wants the same gets the same.

    Attributes:
        visitor: Who asks: whoever cancels, cancels for nobody else.
        query: A query that samples, with seed 0.
        first_seed: Of the first draw; the others count up from it.
        n: How many draws.
    """

    visitor: Hashable
    query: Query
    first_seed: int
    n: int


@dataclass(frozen=True)
class Progress:
    """How far a job is: what it does, the draws that are there, and why it failed."""

    state: State
    found: tuple[Draw, ...]
    problem: Sentence | None = None

    @property
    def over(self) -> bool:
        """Whether nothing will come any more."""
        return self.state not in ("waiting", "running")


class Job:
    """Many draws of one sentence."""

    def __init__(self, wanted: Wanted, checkpoint: Checkpoint) -> None:
        self.wanted = wanted
        self._checkpoint: Checkpoint | None = checkpoint  # let go at the end
        self._found: list[Draw] = []
        self._state: State = "waiting"
        self._problem: Sentence | None = None
        self._cancel, self._lock = threading.Event(), threading.Lock()

    def cancel(self) -> None:
        """Have it end within the step that it is at; what is there stays."""
        self._cancel.set()

    def progress(self) -> Progress:
        """How far it is."""
        with self._lock:
            state = "cancelled" if self._state == "waiting" and self._cancel.is_set() else self._state
            return Progress(state, tuple(self._found), self._problem)

    def run(self, runner: Runner) -> None:
        """Run it to its end, in a thread of its own."""
        self._end("running")
        seeds = range(self.wanted.first_seed, self.wanted.first_seed + self.wanted.n)
        try:
            for start in range(0, len(seeds), ROWS):
                self._do(runner, seeds[start : start + ROWS])
            self._end("done")
        except _Cancelled:
            self._end("cancelled")
        except (GlassformerError, BusyError) as error:
            self._end("failed", error.sentence)
        except Exception:
            _LOG.exception("draws failed")
            self._end("failed", say("Something went wrong; the server's log says what."))
        finally:
            self._checkpoint = None

    def _end(self, state: State, problem: Sentence | None = None) -> None:
        with self._lock:
            self._state, self._problem = state, problem

    def _do(self, runner: Runner, seeds: range) -> None:
        checkpoint, query = self._checkpoint, self.wanted.query
        if checkpoint is None:
            return None

        def work(let_others: Callable[[], None]) -> None:
            def pause() -> None:
                self._go_on()
                let_others()

            for one in draws(checkpoint, query, seeds, pause=pause):
                with self._lock:
                    self._found.append(one)

        while True:
            self._go_on()
            try:
                return runner.part(work, visitor=self.wanted, cost=cost_of(query) * len(seeds))
            except BusyError:  # nobody waits in front of it
                self._cancel.wait(_TRY_AGAIN_SECONDS)

    def _go_on(self) -> None:
        if self._cancel.is_set():
            raise _Cancelled


class Jobs:
    """The jobs of a server.

    Args:
        runner: Gets the queue in front of the model.
        most: Jobs that are kept; the one looked at longest ago goes first.
        at_once: Jobs that run at the same time.
    """

    def __init__(self, runner: Callable[[], Runner], *, most: int = MOST_KEPT, at_once: int = AT_ONCE) -> None:
        self._runner, self._most = runner, most
        self._turns, self._lock = threading.Semaphore(at_once), threading.Lock()
        self._kept: OrderedDict[Wanted, Job] = OrderedDict()  # the one looked at last at the end

    def start(self, wanted: Wanted, checkpoint: Checkpoint) -> Job:
        """Begin a job, unless the same is under way or done.

        Args:
            wanted: What is drawn.
            checkpoint: What to draw with.

        Raises:
            BusyError: As many jobs as are kept have not ended yet.
        """
        with self._lock:
            known = self._kept.get(wanted)
            if known is not None and known.progress().state not in ("cancelled", "failed"):
                return known
            self._kept.pop(wanted, None)
            self._make_room()
            job = self._kept[wanted] = Job(wanted, checkpoint)
        # A daemon: a server that is stopped does not wait for draws.
        threading.Thread(target=self._run, args=(job,), daemon=True).start()
        return job

    def find(self, wanted: Wanted) -> Job | None:
        """A job that is kept."""
        with self._lock:
            if wanted in self._kept:
                self._kept.move_to_end(wanted)
            return self._kept.get(wanted)

    def _run(self, job: Job) -> None:
        with self._turns:
            job.run(self._runner())

    def _make_room(self) -> None:
        while len(self._kept) >= self._most:
            ended = next((wanted for wanted, job in self._kept.items() if job.progress().over), None)
            if ended is None:
                raise BusyError("{n} visitors are drawing many times. Try again in a moment.", n=len(self._kept))
            del self._kept[ended]
