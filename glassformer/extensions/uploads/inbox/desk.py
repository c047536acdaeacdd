"""Who reads what was handed in: one after the other, as many waiting as there is room for.

One at a time, as whoever decodes meanwhile shares the processor. The reading itself is done by another process, see
`extensions.uploads.library`; here is a thread that waits for it.

Knows nothing of Streamlit.
"""

import contextlib
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from glassformer.extensions.uploads.library.handed_folder import Read, Received
from glassformer.extensions.uploads.library.workers import Done, Worker
from transformer.errors import CheckpointError, GlassformerError
from transformer.i18n import Sentence, say

MOST_WAITING = 100
IDLE_SECONDS = 60.0  # until the process that reads is ended


@dataclass(eq=False)
class Job:
    """One upload on its way."""

    received: Sequence[Received]
    folder: Path
    title: str
    pickles: bool
    done: Done = field(default_factory=Done)  # how far it is
    read: Read | None = None  # what came of it
    refused: Sentence | None = None  # why nothing did
    stopped: bool = False  # nobody waits for it any more
    over: threading.Event = field(default_factory=threading.Event)


class Desk:
    """The queue in front of the process that reads, which is ended after so many `idle` seconds."""

    def __init__(self, *, most: int = MOST_WAITING, idle: float = IDLE_SECONDS, worker: Worker | None = None) -> None:
        self._most, self._idle = most, idle
        self._worker, self._changed = worker or Worker(), threading.Condition()
        self._soon = False
        self._waiting: deque[Job] = deque()
        self._closed = False
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def submit(self, received: Sequence[Received], folder: Path, *, title: str, pickles: bool) -> Job:
        """Have files read; returns at once. Raises `CheckpointError`: too many wait already."""
        job = Job(received, folder, title, pickles)
        with self._changed:
            if len(self._waiting) >= self._most:
                raise CheckpointError(
                    "{n} uploads are already waiting to be read, the most that this server allows; try again in a "
                    "minute.",
                    n=len(self._waiting),
                )
            self._waiting.append(job)
            self._changed.notify()
        return job

    def expect(self) -> None:
        """Something will be handed in soon: start the process, which takes a few seconds."""
        with self._changed:
            self._soon = True
            self._changed.notify()

    def before(self, job: Job) -> int | None:
        """How many wait before a job; None if it is being read, or over."""
        with self._changed:
            return self._waiting.index(job) + 1 if job in self._waiting else None

    def stop(self, job: Job) -> None:
        """Nobody waits for a job any more: end it. Returns when nothing of it is under way."""
        with self._changed:
            job.stopped = True
            if job in self._waiting:
                self._waiting.remove(job)
                job.over.set()
        job.over.wait()

    def close(self) -> None:
        """End the process and the thread."""
        with self._changed:
            self._closed = True
            for job in self._waiting:
                job.stopped = True
                job.over.set()
            self._changed.notify()
        self._worker.end()

    @property
    def pid(self) -> int | None:
        """Of the process that reads."""
        return self._worker.pid

    def _serve(self) -> None:
        while not self._closed:
            with self._changed:
                if not self._changed.wait_for(lambda: self._waiting or self._closed or self._soon, self._idle):
                    self._worker.end()
                    continue
                if self._closed:
                    return
                job, self._soon = self._waiting.popleft() if self._waiting else None, False
            if job is not None:
                self._do(job)
                continue
            with contextlib.suppress(GlassformerError):  # who hands something in is told
                self._worker.warm()

    def _do(self, job: Job) -> None:
        def see(done: Done) -> None:
            job.done = done

        try:
            job.read = self._worker.read(
                job.received, job.folder, title=job.title, pickles=job.pickles, progress=see, stop=lambda: job.stopped
            )
        except GlassformerError as error:
            job.refused = error.sentence
        except Exception:  # a full disk, a process that cannot be started: whoever waits is told
            self._worker.end()
            job.refused = say("The files could not be read on this server; try again later.")
        finally:
            job.over.set()
