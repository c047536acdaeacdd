"""Files of sentences that are being run, or were: jobs in the background, a few lines at a time.

Knows nothing of Streamlit.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from transformer.analysis.line_file import Limits, Line
from transformer.analysis.many import LineResult, batches, check_can_run, run_batch_of_lines
from transformer.checkpoint.load import Checkpoint
from transformer.runs.query import Query
from ui.server.jobs import ROWS, Job, Jobs
from ui.server.queue import cost_of
from ui.server.work import BusyError, Runner
from ui.state.link import Link

LIMITS = Limits(n_bytes=1_000_000, lines=2_000, characters=1_000)
MOST_KEPT = 16  # of 2,000 lines each about 10 MB
AT_ONCE = 4


@dataclass(frozen=True)
class SentenceFile:
    """A file of sentences on one model, which its job is about."""

    id: str  # whoever knows it may see the results
    link: Link  # what opens a line of it elsewhere, but for the line itself
    checkpoint_name: str
    how: Query  # how each line is run; its source is none of them
    lines: tuple[Line, ...]

    def results(self, job: Job) -> tuple[LineResult, ...]:
        """What is there, in the order of the file."""
        return tuple(sorted(job.seen.so_far or (), key=lambda one: one.line.number))

    def rest(self, job: Job) -> float | None:
        """Seconds that the other lines will take, about; None if that cannot be said."""
        done = len(job.seen.so_far or ())
        if not done or job.seen.state != "running":
            return None
        return (time.monotonic() - job.began) * (len(self.lines) - done) / done


class SentenceRuns(Jobs[str]):
    """The files of a server; each job is about a `SentenceFile`, and tells the results that are there."""

    def __init__(self, runner: Runner, *, most: int = MOST_KEPT, at_once: int = AT_ONCE) -> None:
        super().__init__(_too_many, most=most, at_once=at_once, keeps_stopped=True)
        self._runner = runner

    def start(self, checkpoint: Checkpoint, lines: Sequence[Line], link: Link) -> Job:
        """Begin to run lines as a session asks for its sentence.

        Raises `QueryError`: the model has nothing to say of sentences, or cannot be changed as the link says. Raises
        `BusyError`: as many files as are kept have not ended yet.
        """
        check_can_run(checkpoint)
        for change in link.interventions:
            change.check(checkpoint.config)
        most = min(link.max_new, checkpoint.config.max_len)
        link = replace(link, max_new=most, forced=(), hypothesis=0, tried=(), companions=None)
        how = replace(link, source="").query(checkpoint.content_hash)
        file = SentenceFile(secrets.token_urlsafe(12), link, checkpoint.name, how, tuple(lines))
        return self.ask(file.id, partial(self._run, checkpoint, file), about=file)

    def _run(self, checkpoint: Checkpoint, file: SentenceFile, job: Job) -> None:
        """The lines, some together."""
        for batch in batches(checkpoint, file.lines, rows=ROWS):
            cost = sum(cost_of(replace(file.how, source=line.source)) for line in batch)
            job.gather(self._runner, partial(run_batch_of_lines, checkpoint, batch, file.how), cost=cost)


def _too_many(n: int) -> BusyError:
    return BusyError(
        "{n} files of sentences are running, the most this server allows. Try again when one has finished.",
        n=n,
    )
