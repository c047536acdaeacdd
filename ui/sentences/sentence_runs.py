"""Files of sentences that are being run, or were: in the background, a few lines at a time (`background_jobs`).

Knows nothing of Streamlit.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from transformer.analysis.line_file import Limits, Line
from transformer.analysis.many import LineResult, batches, check_can_run, run_batch_of_lines
from transformer.checkpoint.load import Checkpoint
from transformer.runs.query import Query
from ui.runs.background_jobs import AT_ONCE, ROWS, Kept, Part, Standing
from ui.runs.background_jobs import Job as AnyJob
from ui.server.queue import cost_of
from ui.server.work import BusyError, Runner
from ui.state.link import Link

LIMITS = Limits(n_bytes=1_000_000, lines=2_000, characters=1_000)
MOST_KEPT = 16  # jobs; of 2,000 lines each about 10 MB


@dataclass(frozen=True)
class Progress(Standing):
    """How far a job is."""

    results: tuple[LineResult, ...]  # what is there, in the order of the file
    n_lines: int  # how many there will be
    rest: float | None  # seconds that the others will take, about; None if that cannot be said


class Job(AnyJob[LineResult]):
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
        super().__init__(self.id, checkpoint)
        most = min(link.max_new, checkpoint.config.max_len)
        self.link = replace(link, max_new=most, forced=(), hypothesis=0, tried=(), companions=None)
        self.checkpoint_name = checkpoint.name
        self.how = replace(self.link, source="").query(checkpoint.content_hash)
        self.lines = tuple(lines)
        self._began = 0.0

    def progress(self) -> Progress:
        """How far it is."""
        standing, found = self.stands()
        results = tuple(sorted(found, key=lambda one: one.line.number))
        left = len(self.lines) - len(results)
        running = results and standing.state == "running"
        rest = (time.monotonic() - self._began) * left / len(results) if running else None
        return Progress(standing.state, standing.problem, results, len(self.lines), rest)

    def parts(self, checkpoint: Checkpoint) -> Iterator[Part[LineResult]]:
        """The lines, some together."""
        self._began = time.monotonic()
        for batch in batches(checkpoint, self.lines, rows=ROWS):
            cost = sum(cost_of(replace(self.how, source=line.source)) for line in batch)
            yield Part(cost, partial(_lines, checkpoint, batch, self.how))


def _lines(
    checkpoint: Checkpoint, batch: Sequence[Line], how: Query, pause: Callable[[], None]
) -> Iterator[LineResult]:
    return iter(run_batch_of_lines(checkpoint, batch, how, pause=pause))


class Jobs(Kept[str, Job]):
    """The jobs of a server.

    Args:
        runner: The queue in front of the model.
        most: Jobs that are kept; the one looked at longest ago goes first.
        at_once: Jobs that run at the same time.
    """

    def __init__(self, runner: Runner, *, most: int = MOST_KEPT, at_once: int = AT_ONCE) -> None:
        super().__init__(lambda: runner, _too_many, most=most, at_once=at_once)

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
        return self.begin(job.id, lambda: job)


def _too_many(n: int) -> BusyError:
    return BusyError(
        "{n} files of sentences are being run, which is all that this server takes. Try again when one has ended.",
        n=n,
    )
