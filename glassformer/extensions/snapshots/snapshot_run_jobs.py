"""Background jobs over training snapshots: a sentence run on all, progress bar; prefetch of the neighbours.

A sentence runs at one snapshot after the other; the model's queue caches each result, for all users.

Neighbours of the selected snapshot are opened and run when no page is being rendered, one at a time, behind all
requests in the model's queue. Only a user's newest request counts.
"""

import time
from collections.abc import Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, cast

from glassformer.extensions.snapshots.snapshot_runs import (
    AtSnapshot,
    Growth,
    cost,
    finished,
    key_of,
    look,
    moments_of,
    opened,
)
from glassformer.runs import loading
from glassformer.runs.error_boundary import attempt
from glassformer.runs.measurement_jobs import LOOK_SECONDS, begins_by_itself, studies, too_many
from glassformer.runs.open_run import OpenRun
from glassformer.runs.sources import Source
from glassformer.server.jobs import Job, JobRegistry, JobStatus
from glassformer.server.model_runner import BusyError
from glassformer.server.render_lock import RENDER_LOCK
from glassformer.shared import drawing
from glassformer.shared.i18n import st
from glassformer.state import session
from glassformer.state.link import Link
from glassformer.state.view import Slot
from transformer.checkpoint.listing import Entry
from transformer.checkpoint.load import Checkpoint
from transformer.checkpoint.snapshots import AT, SnapshotInfo, at_step
from transformer.errors import GlassformerError
from transformer.i18n import say
from transformer.runs.array_records import Progress
from transformer.runs.trace import Trace

PATIENCE_SECONDS: Final = 1.0  # that a page waits at first: the snapshots of a tiny model take no longer
WISH: Final = "growth_wish"  # in the session: the run last requested (True) or cancelled (False)


@dataclass(frozen=True, eq=False)
class All:
    """What a job came to."""

    found: tuple[AtSnapshot, ...]

    @property
    def nbytes(self) -> int:
        """Memory, about."""
        return sum(one.nbytes for one in self.found)


def growing(run: OpenRun) -> Growth | None:
    """The results so far, after starting the job if wanted; None without snapshots, or after an error message."""
    moments = moments_of(run.checkpoint)
    visible = attempt(partial(finished, run, partial(_finished_one, run.checkpoint))) if moments else None
    if visible is None:
        return None
    final, key = visible.trace, _job_of(run.checkpoint, visible.trace)
    found = _found(key, final, run.checkpoint, moments)
    if None in found and _shall(key, run.checkpoint):
        work, visitor = partial(_run_all, name_here(), run.checkpoint, final, moments), loading.visitor()
        if attempt(lambda: studies().ask(key, work, visitor=visitor)) is not None:
            studies().look(key, visitor, patience=0.0 if any(found) else PATIENCE_SECONDS)
        found = _found(key, final, run.checkpoint, moments)
    return Growth(run, visible, moments, found)


def progress(growth: Growth) -> None:
    """Draw how far it is, or the button that begins it; the page is drawn again as more comes."""
    if None not in growth.found:
        return
    run, final = growth.run, growth.finished.trace
    key, n_known = _job_of(run.checkpoint, final), sum(one is not None for one in growth.found)
    seen = studies().look(key, loading.visitor())
    if seen is not None and seen.is_under_way:
        st.fragment(_follow, run_every=LOOK_SECONDS)(key, n_known, run.key("growth_stop"))
        return
    if seen is not None and seen.problem is not None:
        st.error(drawing.with_code(seen.problem))
    label = say("Run the sentence at all {n} snapshots", n=len(growth.moments))
    st.button(label, key=run.key("growth_begin"), icon=":material/play_arrow:", on_click=_wish, args=(key, True))


def _follow(key: Hashable, n_drawn: int, stop: str) -> None:
    """Draw the job's progress, in a fragment that reruns."""
    seen: JobStatus | None = studies().look(key, loading.visitor())
    step: Progress | None = None if seen is None else seen.so_far
    if seen is None or not seen.is_under_way or (step and step.done >= max(1, 2 * n_drawn)):
        st.rerun()  # the page once more, with what has come
        return
    done, whole = (step.done, step.whole) if step else (0, 0)
    said = say("Running the sentence at each snapshot: {done} of {whole}", done=done, whole=whole)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.progress(done / whole if whole else 0.0, text=said)
        st.button(say("Stop"), key=stop, icon=":material/stop:", on_click=_wish, args=(key, False))


def _wish(key: Hashable, wanted: bool) -> None:
    """Callback: run the snapshots, or cancel it."""
    if not wanted:
        studies().withdraw(key, loading.visitor())
    st.session_state[WISH] = key, wanted


def _shall(key: Hashable, checkpoint: Checkpoint) -> bool:
    """Whether to run it: small models automatically, unless it was cancelled or has failed."""
    whose, wanted = cast(tuple[Hashable, bool], st.session_state.get(WISH, (None, False)))
    seen = studies().look(key, loading.visitor())
    if seen is not None and seen.state == "failed":
        st.session_state.pop(WISH, None)  # it is tried once more only when it is asked for once more
        return wanted and whose == key
    return wanted if whose == key else begins_by_itself(checkpoint)


def _finished_one(snapshot: Checkpoint) -> Checkpoint:
    whole = loading.whole(str(st.session_state.get(session.MODEL)))
    return opened(snapshot, None) if whole is None else loading.open_checkpoint(whole)


def snapshot_of(name: str, of: Checkpoint, step: int) -> Checkpoint:
    """A snapshot of the checkpoint of that name, as other pages have it. Errors as of `opened`."""
    entry = loading.found(at_step(name, step))
    return opened(of, step) if entry is None else loading.open_ahead(entry)


def name_here() -> str:
    """The name of the checkpoint that is chosen, or of whose snapshot it is."""
    name = str(st.session_state.get(session.MODEL))
    whole = loading.whole(name)
    return name if whole is None else whole.name


def _job_of(of: Checkpoint, final: Trace) -> Hashable:
    return "growth", str(of.folder), final.query, final.read_ids


def _found(
    key: Hashable, final: Trace, of: Checkpoint, moments: tuple[SnapshotInfo, ...]
) -> tuple[AtSnapshot | None, ...]:
    """The results of a finished job; else those in the cache of the model's queue."""
    job = studies().find(key)
    if job is not None and job.seen.state == "done":
        return cast("All", job.seen.result).found
    return tuple(loading.runner().kept(key_of(final, of, moment)) for moment in moments)


def _run_all(name: str, of: Checkpoint, final: Trace, moments: tuple[SnapshotInfo, ...], job: Job) -> All:
    """The work of a job: each snapshot is opened in the job's thread, and run in the model's."""
    every = list[AtSnapshot]()
    for moment in moments:
        job.tell(Progress(len(every), len(moments)))
        key = key_of(final, of, moment)
        found: AtSnapshot | None = loading.runner().kept(key)
        if found is None:
            found = _at(name, of, final, moment, job)
            loading.compute(key, [found].pop, nbytes=lambda one: one.nbytes)
        every.append(found)
    return All(tuple(every))


def _at(name: str, of: Checkpoint, final: Trace, moment: SnapshotInfo, job: Job) -> AtSnapshot:
    try:
        snapshot = snapshot_of(name, of, moment.step)
    except GlassformerError as error:
        return AtSnapshot(problem=error.sentence)
    return job.in_model(loading.runner(), partial(look, snapshot, final), cost=cost(final.query))


# ------------------------------------------------------------------------------------------------ the next ones

MOST_ASKING: Final = 64  # users whose requests wait
REST_SECONDS: Final = 0.05  # for which nothing was drawn
LONGEST_SECONDS: Final = 2.0  # that a request waits for that
_LOOK_SECONDS: Final = 0.02
JOBS: Final[JobRegistry[Hashable]] = JobRegistry(too_many, most=MOST_ASKING, at_once=1, room=0)  # nothing done is kept


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
