"""Files of sentences that are being run, or were: in the background, a few lines at a time, kept while there is room.

A job goes through the one queue in front of the model (`ui.runs.work`), a batch of lines after the other: whoever
asks for a sentence meanwhile goes first, also between two steps of a batch. Its results can be looked at while they
come.

Knows nothing of Streamlit.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from transformer.analysis.line_file import Limits, Line
from transformer.analysis.many import LineResult, batches, check_can_run, run_batch_of_lines
from transformer.checkpoint.load import Checkpoint
from transformer.errors import GlassformerError
from ui.runs.queue import cost_of
from ui.runs.work import BusyError, Runner
from ui.state.link import Link
from words import Sentence, say

LIMITS = Limits(n_bytes=1_000_000, lines=2_000, characters=1_000)
MOST_KEPT = 16  # jobs; of 2,000 lines each about 10 MB
ROWS = 16  # that are decoded together: others wait until the sources of all of them have been read
AT_ONCE = 4  # that run; others wait for their turn
_TRY_AGAIN_SECONDS = 1.0

State = Literal["waiting", "running", "done", "cancelled", "failed"]
_LOG = logging.getLogger("glassformer.sentences")


class _Cancelled(BaseException):
    """Ends a job between two steps; no `Exception`, which would be taken for a line's own."""


@dataclass(frozen=True)
class Progress:
    """How far a job is.

    Attributes:
        state: What it does.
        results: What is there, in the order of the file.
        n_lines: How many there will be.
        rest: Seconds that the others will take, about; None if that cannot be said.
        problem: Why it failed.
    """

    state: State
    results: tuple[LineResult, ...]
    n_lines: int
    rest: float | None
    problem: Sentence | None

    @property
    def over(self) -> bool:
        """Whether nothing will come any more."""
        return self.state not in ("waiting", "running")


class Job:
    """A file of sentences on one model.

    Attributes:
        id: Whoever knows it may see the results.
        link: What opens a line of it elsewhere, but for the line itself.
        checkpoint_name: Name of the model.
        how: How each line is run; its source is none of them.
        lines: The file.
    """

    def __init__(self, checkpoint: Checkpoint, lines: Sequence[Line], link: Link) -> None:
        self.id = secrets.token_urlsafe(12)
        most = min(link.max_new, checkpoint.config.max_len)
        self.link = replace(link, max_new=most, forced=(), hypothesis=0, tried=(), companions=None)
        self.checkpoint_name = checkpoint.name
        self.how = replace(self.link, source="").query(checkpoint.content_hash)
        self.lines = tuple(lines)
        self._checkpoint: Checkpoint | None = checkpoint  # let go at the end
        self._results: dict[int, LineResult] = {}
        self._state: State = "waiting"
        self._problem: Sentence | None = None
        self._began, self._cancel, self._lock = 0.0, threading.Event(), threading.Lock()

    def cancel(self) -> None:
        """Have it end within the step that it is at; what is there stays."""
        self._cancel.set()

    def progress(self) -> Progress:
        """How far it is."""
        with self._lock:
            results = tuple(self._results[number] for number in sorted(self._results))
            state, problem, began = self._state, self._problem, self._began
        if state == "waiting" and self._cancel.is_set():
            state = "cancelled"
        left = len(self.lines) - len(results)
        rest = (time.monotonic() - began) * left / len(results) if results and state == "running" else None
        return Progress(state, results, len(self.lines), rest, problem)

    def run(self, runner: Runner) -> None:
        """Run it to its end, in a thread of its own."""
        checkpoint, self._began = self._checkpoint, time.monotonic()
        self._state = "running"
        try:
            if checkpoint is not None:
                for batch in batches(checkpoint, self.lines, rows=ROWS):
                    self._do(runner, checkpoint, batch)
            self._state = "done"
        except _Cancelled:
            self._state = "cancelled"
        except (GlassformerError, BusyError) as error:
            self._problem, self._state = error.sentence, "failed"
        except Exception:
            _LOG.exception("a file of sentences failed")
            self._problem, self._state = say("Something went wrong; the server's log says what."), "failed"
        finally:
            self._checkpoint = None

    def _do(self, runner: Runner, checkpoint: Checkpoint, batch: Sequence[Line]) -> None:
        def work(let_others: Callable[[], None]) -> None:
            def pause() -> None:
                self._go_on()
                let_others()

            for result in run_batch_of_lines(checkpoint, batch, self.how, pause=pause):
                with self._lock:
                    self._results[result.line.number] = result

        cost = sum(cost_of(replace(self.how, source=line.source)) for line in batch)
        while True:
            self._go_on()
            try:
                return runner.part(work, visitor=self.id, cost=cost)
            except BusyError:  # nobody waits in front of it
                self._cancel.wait(_TRY_AGAIN_SECONDS)

    def _go_on(self) -> None:
        if self._cancel.is_set():
            raise _Cancelled


class Jobs:
    """The jobs of a server.

    Args:
        runner: The queue in front of the model.
        most: Jobs that are kept; the one looked at longest ago goes first.
        at_once: Jobs that run at the same time.
    """

    def __init__(self, runner: Runner, *, most: int = MOST_KEPT, at_once: int = AT_ONCE) -> None:
        self._runner, self._most = runner, most
        self._turns, self._lock = threading.Semaphore(at_once), threading.Lock()
        self._kept: OrderedDict[str, Job] = OrderedDict()  # the one looked at last at the end

    def start(self, checkpoint: Checkpoint, lines: Sequence[Line], link: Link) -> Job:
        """Begin a job.

        Args:
            checkpoint: What to run the lines on.
            lines: The file.
            link: How: what the session asks for.

        Raises:
            QueryError: The model has nothing to say of sentences, or cannot be changed as the link says.
            BusyError: As many jobs as are kept have not ended yet.
        """
        check_can_run(checkpoint)
        for change in link.interventions:
            change.check(checkpoint.config)
        job = Job(checkpoint, lines, link)
        with self._lock:
            self._make_room()
            self._kept[job.id] = job
        # A daemon: a server that is stopped does not wait for a file of sentences.
        threading.Thread(target=self._run, args=(job,), daemon=True).start()
        return job

    def find(self, job_id: str) -> Job | None:
        """A job that is kept."""
        with self._lock:
            if job_id in self._kept:
                self._kept.move_to_end(job_id)
            return self._kept.get(job_id)

    def _run(self, job: Job) -> None:
        with self._turns:
            job.run(self._runner)

    def _make_room(self) -> None:
        while len(self._kept) >= self._most:
            ended = next((job_id for job_id, job in self._kept.items() if job.progress().over), None)
            if ended is None:
                raise BusyError(
                    "{n} files of sentences are being run, which is all that this server takes. Try again when one "
                    "has ended.",
                    n=len(self._kept),
                )
            del self._kept[ended]
