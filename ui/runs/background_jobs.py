"""Long work in the background, some of it at a time, kept while there is room: files of sentences, many draws.

A job goes through the one queue in front of the model (`ui.server.work`), a part after the other: whoever asks for a
sentence meanwhile goes first, also between two steps of a part. Its results can be looked at while they come.

Knows nothing of Streamlit.
"""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from transformer.checkpoint.load import Checkpoint
from transformer.errors import GlassformerError
from ui.server.work import BusyError, Runner
from words import Sentence, say

ROWS = 16  # that are decoded together: others wait until the sources of all of them have been read
AT_ONCE = 4  # jobs that run; others wait for their turn
_TRY_AGAIN_SECONDS = 0.5

State = Literal["waiting", "running", "done", "cancelled", "failed"]
_LOG = logging.getLogger("glassformer.jobs")
_Result = TypeVar("_Result")


class _Cancelled(BaseException):
    """Ends a job between two steps; no `Exception`, which would be taken for a line's or a draw's own."""


@dataclass(frozen=True)
class Standing:
    """How far a job is."""

    state: State  # what it does
    problem: Sentence | None  # why it failed

    @property
    def over(self) -> bool:
        """Whether nothing will come any more."""
        return self.state not in ("waiting", "running")


@dataclass(frozen=True)
class Part(Generic[_Result]):
    """What a job does in one go."""

    cost: float  # how long it takes, about; see `ui.server.queue.cost_of`
    # Makes them one by one, given what it calls between two rounds of decoding.
    results: Callable[[Callable[[], None]], Iterator[_Result]]


class Job(ABC, Generic[_Result]):
    """One job, for a visitor as the queue knows them."""

    def __init__(self, visitor: Hashable, checkpoint: Checkpoint) -> None:
        self._visitor = visitor
        self._checkpoint: Checkpoint | None = checkpoint  # let go at the end
        self._results: list[_Result] = []
        self._standing = Standing("waiting", None)
        self._cancel, self._lock = threading.Event(), threading.Lock()

    @abstractmethod
    def parts(self, checkpoint: Checkpoint) -> Iterator[Part[_Result]]:
        """All that is to be done, in order."""

    @abstractmethod
    def progress(self) -> Standing:
        """How far it is, and what is there."""

    def cancel(self) -> None:
        """Have it end within the step that it is at; what is there stays."""
        self._cancel.set()

    def stands(self) -> tuple[Standing, tuple[_Result, ...]]:
        """How far it is, and the results in the order in which they came."""
        with self._lock:
            standing, results = self._standing, tuple(self._results)
        if standing.state == "waiting" and self._cancel.is_set():
            standing = Standing("cancelled", None)
        return standing, results

    def run(self, runner: Runner) -> None:
        """Run it to its end, in a thread of its own."""
        checkpoint = self._checkpoint
        self._stand("running")
        try:
            if checkpoint is not None:
                for part in self.parts(checkpoint):
                    self._do(runner, part)
            self._stand("done")
        except _Cancelled:
            self._stand("cancelled")
        except (GlassformerError, BusyError) as error:
            self._stand("failed", error.sentence)
        except Exception:
            _LOG.exception("a job failed: %s", type(self).__module__)
            self._stand("failed", say("Something went wrong; the server's log says what."))
        finally:
            self._checkpoint = None

    def _stand(self, state: State, problem: Sentence | None = None) -> None:
        with self._lock:
            self._standing = Standing(state, problem)

    def _do(self, runner: Runner, part: Part[_Result]) -> None:
        def work(let_others: Callable[[], None]) -> None:
            def pause() -> None:
                self._go_on()
                let_others()

            for result in part.results(pause):
                with self._lock:
                    self._results.append(result)

        while True:
            self._go_on()
            try:
                return runner.part(work, visitor=self._visitor, cost=part.cost)
            except BusyError:  # nobody waits in front of it
                self._cancel.wait(_TRY_AGAIN_SECONDS)

    def _go_on(self) -> None:
        if self._cancel.is_set():
            raise _Cancelled


_Key = TypeVar("_Key", bound=Hashable)
_AnyJob = TypeVar("_AnyJob", bound="Job[Any]")


class Kept(Generic[_Key, _AnyJob]):
    """The jobs of a server; of more than `most` the one looked at longest ago goes, and `at_once` of them run.

    `busy` makes the error where as many jobs as are kept have not ended yet, given their number.
    """

    def __init__(
        self, runner: Callable[[], Runner], busy: Callable[[int], BusyError], *, most: int, at_once: int
    ) -> None:
        self._runner, self._busy, self._most = runner, busy, most
        self._turns, self._lock = threading.Semaphore(at_once), threading.Lock()
        self._kept: OrderedDict[_Key, _AnyJob] = OrderedDict()  # the one looked at last at the end

    def find(self, key: _Key) -> _AnyJob | None:
        """A job that is kept."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def begin(self, key: _Key, make: Callable[[], _AnyJob]) -> _AnyJob:
        """Begin a job, unless one of this key is under way or done; BusyError if none that is kept has ended."""
        with self._lock:
            known = self._kept.get(key)
            if known is not None and known.progress().state not in ("cancelled", "failed"):
                return known
            self._kept.pop(key, None)
            self._make_room()
            job = self._kept[key] = make()
        # A daemon: a server that is stopped does not wait for it.
        threading.Thread(target=self._run, args=(job,), daemon=True).start()
        return job

    def _run(self, job: _AnyJob) -> None:
        with self._turns:
            job.run(self._runner())

    def _make_room(self) -> None:
        while len(self._kept) >= self._most:
            ended = next((key for key, job in self._kept.items() if job.progress().over), None)
            if ended is None:
                raise self._busy(len(self._kept))
            del self._kept[ended]
