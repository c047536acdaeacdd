"""Long work for many visitors: begun once for all who want the same, watched, stopped, kept while there is room.

Files of sentences, many draws, measurements and examinations are such jobs. Each runs in a thread, so many at a time,
in the order in which they were asked for. What needs the model goes through the one queue in front of it
(`glassformer.server.model_runner`), a part after the other: whoever asks for a sentence meanwhile goes first, also within a
part, wherever that pauses.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Final, Generic, Literal, TypeVar

from glassformer.server.model_runner import BusyError, ModelRunner
from transformer.errors import SentenceError
from transformer.i18n import Sentence, say

SMALL: Final = 30_000_000
"""Parameters of a model that is measured and examined unasked, in seconds; the shipped ones have 8 million."""
ROWS: Final = 16  # that are decoded together: others wait until the sources of all of them have been read
AWAY_SECONDS: Final = 10.0  # who has not looked for so long has closed the page
_TRY_AGAIN_SECONDS: Final = 0.5

State = Literal["waiting", "running", "done", "cancelled", "failed"]
_LOG = logging.getLogger("glassformer.jobs")
_Key = TypeVar("_Key", bound=Hashable)
_Result = TypeVar("_Result")


class StoppedError(BaseException):
    """Ends a job where it pauses; no `Exception`, which would be taken for a line's, a draw's or a test's own."""


@dataclass(frozen=True)
class JobStatus:
    """How far a job is."""

    state: State  # what it does
    so_far: Any = None  # what it told last
    result: Any = None  # when it is done, what it came to
    problem: Sentence | None = None  # why it failed

    @property
    def is_under_way(self) -> bool:
        """Whether there is more to come."""
        return self.state in ("waiting", "running")


class Job:
    """One job: `work`, given it, does all of it and returns what it came to."""

    def __init__(self, work: Callable[[Job], Any], about: Any = None) -> None:
        self.about = about  # what whoever finds it is to know, besides how far it is
        self.began = 0.0  # by the clock of `time.monotonic`
        self.stopped, self.over = threading.Event(), threading.Event()
        self.watchers: dict[Hashable, float] = {}  # who wants it, and when they looked last
        self._work: Callable[[Job], Any] | None = work  # let go at the end, with the model that it holds
        self._seen = JobStatus("waiting")

    @property
    def seen(self) -> JobStatus:
        """How far it is; one that was stopped is over, though its thread may have to reach a pause."""
        seen = self._seen
        return replace(seen, state="cancelled") if seen.is_under_way and self.stopped.is_set() else seen

    def tell(self, so_far: Any) -> None:
        """Let those who look know what there is."""
        self._seen = replace(self._seen, so_far=so_far)

    def is_watched(self) -> bool:
        """Whether somebody who wants it has looked lately."""
        recently = time.monotonic() - AWAY_SECONDS
        return any(looked > recently for looked in list(self.watchers.values()))

    def pause(self) -> None:
        """Go on, unless it was stopped, or all who watched it have gone: then `StoppedError` ends it."""
        if self.watchers and not self.is_watched():
            self.stopped.set()
        if self.stopped.is_set():
            raise StoppedError

    def in_model(self, runner: ModelRunner, work: Callable[[Callable[[], None]], _Result], *, cost: float) -> _Result:
        """Do a part of it in the model's thread; `work` is given what to call where others may go first."""

        def let_others_go_first(let: Callable[[], None]) -> _Result:
            def pause() -> None:
                self.pause()
                let()
                self.pause()

            return work(pause)

        while True:
            self.pause()
            try:
                return runner.part(let_others_go_first, visitor=self, cost=cost)
            except BusyError:  # nobody waits in front of it
                self.stopped.wait(_TRY_AGAIN_SECONDS)

    def gather(self, runner: ModelRunner, results: Callable[..., Iterable[Any]], *, cost: float) -> None:
        """Do a part of it likewise that gives several things, and tell each of them, behind those before it."""

        def work(pause: Callable[[], None]) -> None:
            for one in results(pause=pause):
                self.tell((*(self._seen.so_far or ()), one))

        self.in_model(runner, work, cost=cost)

    def run(self) -> None:
        """Do it, in the thread at hand."""
        self.began, self._seen = time.monotonic(), JobStatus("running")
        try:
            result = self._work(self) if self._work is not None else None
            self._seen = replace(self._seen, state="done", result=result)
        except StoppedError:
            self._seen = replace(self._seen, state="cancelled")
        except SentenceError as error:
            self._seen = replace(self._seen, state="failed", problem=error.sentence)
        except BaseException:  # nobody waits for a thread that is gone
            _LOG.exception("a job failed")
            said = say("Something went wrong; see the server's log.")
            self._seen = replace(self._seen, state="failed", problem=said)
        self._work = None


class JobRegistry(Generic[_Key]):
    """The jobs of a server of one kind."""

    def __init__(
        self,
        busy: Callable[[int], BusyError],
        *,
        most: int,
        at_once: int,
        room: int | None = None,
        size: Callable[[Job], int] = lambda job: 1,
        keeps_stopped: bool = False,
        begin: Callable[[], None] = lambda: None,
    ) -> None:
        """Begin with none.

        Args:
            busy: The error where `most` are under way, given their number.
            most: Jobs under way.
            at_once: Jobs that run at the same time.
            room: For all that are kept, those under way included: the one looked at longest ago goes first; `most`
                if it is not given.
            size: What one takes of it; it grows at its end at most.
            keeps_stopped: Whether one that was stopped can be found, with what it had told by then.
            begin: Called at the start of each thread.
        """
        self._busy, self._most, self._at_once, self._begin = busy, most, at_once, begin
        self._room, self._size, self._keeps_stopped = most if room is None else room, size, keeps_stopped
        self._lock = threading.RLock()
        self._kept: OrderedDict[_Key, Job] = OrderedDict()  # the one looked at last at the end
        self._waiting: deque[tuple[_Key, Job]] = deque()
        self._threads: set[threading.Thread] = set()

    def ask(self, key: _Key, work: Callable[[Job], Any], *, visitor: Hashable = None, about: Any = None) -> Job:
        """Have something done, unless it was or is already.

        The key says all that decides what it comes to. A visitor watches it; None wants it to its end. Raises
        `BusyError`: too many jobs are under way.
        """
        with self._lock:
            known = self.find(key, visitor)
            if known is not None and known.seen.state not in ("cancelled", "failed"):
                return known
            under_way = self.n_under_way()
            if under_way >= self._most:
                raise self._busy(under_way)
            job = Job(work, about)
            self._kept.pop(key, None)
            self._kept[key] = job
            self._look_at(job, visitor)
            self._make_room()
            self._waiting.append((key, job))
            if len(self._threads) < self._at_once:
                # A daemon: a server that is stopped does not wait for it.
                thread = threading.Thread(target=self._serve, daemon=True)
                thread.start()
                self._threads.add(thread)
        return job

    def find(self, key: _Key, visitor: Hashable = None) -> Job | None:
        """A job that is kept; None if nobody asked for it, or it was stopped or forgotten. A visitor watches it."""
        with self._lock:
            job = self._kept.get(key)
            if job is None or (job.seen.state == "cancelled" and not self._keeps_stopped):
                return None
            self._kept.move_to_end(key)
            self._look_at(job, visitor)
        return job

    def look(self, key: _Key, visitor: Hashable = None, *, patience: float = 0.0) -> JobStatus | None:
        """How far a job is, as `find` finds it; waits for its end so many seconds at most."""
        job = self.find(key, visitor)
        if job is not None and patience > 0:
            job.over.wait(patience)
            job = self.find(key, visitor)
        return None if job is None else job.seen

    def before(self, key: _Key) -> int:
        """How many come before one that waits."""
        with self._lock:
            waiting = [other for other, job in self._waiting if not job.stopped.is_set()]
            ahead = waiting.index(key) if key in waiting else 0
            return ahead + self.n_under_way() - len(waiting)

    def withdraw(self, key: _Key, visitor: Hashable = None) -> None:
        """Want a job no more; it ends at its next pause, unless somebody else watches it. What it told stays."""
        with self._lock:
            job = self._kept.get(key)
            if job is not None and job.seen.is_under_way:
                job.watchers.pop(visitor, None)
                if not job.is_watched():
                    job.stopped.set()

    def end(self, seconds: float) -> None:
        """Stop all of them, as the process ends, and wait so long for their threads at most."""
        with self._lock:
            threads = list(self._threads)
            for _, job in [*self._kept.items(), *self._waiting]:
                job.stopped.set()
        for thread in threads:
            thread.join(seconds)

    def n_under_way(self) -> int:
        """How many wait or run."""
        with self._lock:
            return sum(job.seen.is_under_way for job in self._kept.values())

    def _look_at(self, job: Job, visitor: Hashable) -> None:
        if visitor is not None and job.seen.is_under_way:
            job.watchers[visitor] = time.monotonic()

    def _serve(self) -> None:
        """Do what waits, one after the other, until nothing does."""
        self._begin()
        while True:
            with self._lock:
                if not self._waiting:
                    self._threads.discard(threading.current_thread())
                    return
                key, job = self._waiting.popleft()
            if not job.stopped.is_set():
                job.run()
            with self._lock:
                if self._kept.get(key) is job:  # else it was stopped, and asked for once more
                    self._settle(key, job)
            job.over.set()

    def _settle(self, key: _Key, job: Job) -> None:
        """Keep what became of a job, if it shall be kept and fits."""
        dropped = job.seen.state == "cancelled" and not self._keeps_stopped
        if dropped or self._size(job) > self._room:
            del self._kept[key]
        else:
            self._kept.move_to_end(key)
            self._make_room()

    def _make_room(self) -> None:
        while sum(map(self._size, self._kept.values())) > self._room:
            ended = next((key for key, job in self._kept.items() if not job.seen.is_under_way), None)
            if ended is None:
                return
            del self._kept[ended]
