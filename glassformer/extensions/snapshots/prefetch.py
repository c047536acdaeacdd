"""Prefetcher of neighbouring training snapshots: background jobs that open and run them before they are requested.

Prefetching starts when no page is being rendered, one snapshot at a time, behind all requests in the model's queue.
Only a user's newest request counts.
"""

import time
from collections.abc import Hashable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Final

from glassformer.runs import loading
from glassformer.runs.measurement_jobs import too_many
from glassformer.runs.sources import Source
from glassformer.server.jobs import Job, JobRegistry
from glassformer.server.model_runner import BusyError
from glassformer.server.render_lock import RENDER_LOCK
from glassformer.state.link import Link
from glassformer.state.view import Slot
from transformer.checkpoint.listing import Entry
from transformer.checkpoint.snapshots import AT, at_step
from transformer.errors import GlassformerError

MOST: Final = 64  # users whose requests wait
REST_SECONDS: Final = 0.05  # for which nothing was drawn
LONGEST_SECONDS: Final = 2.0  # that a request waits for that
_LOOK_SECONDS: Final = 0.02
JOBS: Final[JobRegistry[Hashable]] = JobRegistry(too_many, most=MOST, at_once=1, room=0)  # nothing done is kept


def neighbours(name: str) -> list[Entry]:
    """The snapshots beside one, the next first; of a checkpoint, the last one."""
    whole = loading.whole(name)
    if whole is None:
        return []
    names = [*(at_step(whole.name, moment.step) for moment in loading.moments(whole)[0]), whole.name]
    at = names.index(name) if name in names else len(names)
    near = [names[place] for place in (at + 1, at - 1) if 0 <= place < len(names)]
    return [entry for one in near if (entry := loading.found(one)) is not None]


def _run(entry: Entry, link: Link) -> None:
    checkpoint = loading.open_ahead(entry)
    link = replace(link, max_new=min(link.max_new, checkpoint.config.max_len))
    loading.runner().trace(checkpoint, link.query(checkpoint.content_hash), ahead=True)


def _ahead(entries: Sequence[Entry], link: Link, job: Job) -> None:
    """The work of a job: run a link on some snapshots, until a newer request has taken its place."""
    began = time.monotonic()
    while RENDER_LOCK.rest_seconds() < REST_SECONDS and time.monotonic() - began < LONGEST_SECONDS:
        time.sleep(_LOOK_SECONDS)
    for entry in entries:
        job.pause()
        with suppress(GlassformerError, BusyError, OSError):  # shown when a user opens it
            _run(entry, link)


class SnapshotSource(Source):
    """What comes next of any checkpoint's snapshots."""

    def ran(self, slot: Slot, link: Link) -> None:
        """Prefetch the runs of the snapshots next to the selected one."""
        if AT in link.model:
            who = loading.visitor(), slot
            JOBS.withdraw(who)
            with suppress(BusyError):
                JOBS.ask(who, partial(_ahead, neighbours(link.model), link))


SOURCE = SnapshotSource()
