"""Background jobs that run files of sentences in small batches; requests that replicas share.

A folder that replicas share has the request of each file. A replica without its results runs it again.
"""

import secrets
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from glassformer.extensions.sentences.line_runs import LineResult, batches, check_can_run, run_batch_of_lines
from glassformer.server import replicas
from glassformer.server.jobs import ROWS, Job, JobRegistry
from glassformer.server.model_runner import BusyError, ModelRunner, cost_of
from glassformer.server.replicas import read, written
from glassformer.state.link import Link, read_link, write_link
from transformer.checkpoint.load import Checkpoint
from transformer.runs.query import Query
from transformer.runs.sentence_files import FileLimits, SentenceLine

LIMITS = FileLimits(n_bytes=1_000_000, lines=2_000, characters=1_000)
MOST_KEPT = 16  # of 2,000 lines each about 10 MB
AT_ONCE = 4
SHARED_SECONDS = 3 * 3600.0  # that what a file asks for stays in a shared folder, without being asked for


@dataclass(frozen=True)
class SentenceFile:
    """A file of sentences on one model, which its job is about."""

    id: str  # anyone who knows it may see the results
    link: Link  # opens a line on another page, once its source is set
    checkpoint_name: str
    how: Query  # options of every line; its source is unused
    lines: tuple[SentenceLine, ...]

    def results(self, job: Job) -> tuple[LineResult, ...]:
        """The results so far, in the order of the file."""
        return tuple(sorted(job.seen.so_far or (), key=lambda one: one.line.number))

    def rest(self, job: Job) -> float | None:
        """Seconds that the other lines will take, about; None if that cannot be said."""
        done = len(job.seen.so_far or ())
        if not done or job.seen.state != "running":
            return None
        return (time.monotonic() - job.began) * (len(self.lines) - done) / done


class SentenceRuns(JobRegistry[str]):
    """The files of a server; each job is about a `SentenceFile`, and reports its results so far."""

    def __init__(self, runner: ModelRunner, *, shared: Path | None = None) -> None:
        super().__init__(_too_many, most=MOST_KEPT, at_once=AT_ONCE, keeps_stopped=True)
        self._runner, self._shared = runner, shared

    def start(self, checkpoint: Checkpoint, lines: Sequence[SentenceLine], link: Link, *, id: str = "") -> Job:
        """Run lines with the options of a link; `id` is that of a file which is run again.

        Raises `QueryError`: the model cannot run sentences, or cannot be changed as the link says. Raises `BusyError`:
        too many files are running.
        """
        check_can_run(checkpoint)
        for change in link.interventions:
            change.check(checkpoint.config)
        most = min(link.max_new, checkpoint.config.max_len)
        link = replace(link, max_new=most, forced=(), hypothesis=0, tried=(), companions=None)
        how = replace(link, source="").query(checkpoint.content_hash)
        file = SentenceFile(id or secrets.token_urlsafe(12), link, checkpoint.name, how, tuple(lines))
        job = self.ask(file.id, partial(self._run, checkpoint, file), about=file)
        if self._shared is not None and not id:
            self._share(self._shared, file)
        return job

    def again(self, id: str, checkpoint: Checkpoint) -> Job | None:
        """Run a file of another replica, or from before a restart; None if it is unknown or of another checkpoint.

        Raises as `start`.
        """
        kept = None if self._shared is None else replicas.named(self._shared, id)
        try:
            said, content_hash, rows = read("" if kept is None else kept.read_text(encoding="utf-8"))
            link, lines = (
                read_link({name: [value] for name, value in said.items()})[0],
                [SentenceLine(*row) for row in rows],
            )
        except (OSError, ValueError, KeyError, TypeError):
            return None
        if kept is None or content_hash != checkpoint.content_hash:
            return None
        replicas.touch(kept)
        return self.start(checkpoint, lines, link, id=id)

    def _share(self, folder: Path, file: SentenceFile) -> None:
        """Write a file's request for other replicas, and remove old ones; if that fails, nothing is shared."""
        with suppress(OSError):
            for old in map(folder.joinpath, replicas.names(folder)):
                if replicas.seconds_since(old) > SHARED_SECONDS:
                    old.unlink(missing_ok=True)
            rows = tuple((one.number, one.source, one.reference, one.problem) for one in file.lines)
            text = written((write_link(file.link), file.how.checkpoint, rows))
            part = folder / f".{file.id}"  # not a valid id
            part.write_text(text, encoding="utf-8")
            part.replace(folder / file.id)

    def _run(self, checkpoint: Checkpoint, file: SentenceFile, job: Job) -> None:
        for batch in batches(checkpoint, file.lines, rows=ROWS):
            cost = sum(cost_of(replace(file.how, source=line.source)) for line in batch)
            job.gather(self._runner, partial(run_batch_of_lines, checkpoint, batch, file.how), cost=cost)


def _too_many(n: int) -> BusyError:
    return BusyError(
        "{n} files of sentences are running, the most this server allows. Try again when one has finished.", n=n
    )
