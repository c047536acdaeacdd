"""Shared by all sessions: the list of checkpoints, an LRU cache of loaded ones, runs, replays, the model queue.

Checkpoints are looked for in the folder `checkpoints/` of the project, in the folders of the environment variable
`GLASSFORMER_CHECKPOINTS` (separated as in `PATH`), and in those given as `--checkpoints DIR` after `--` on the
command line. All are opened on the device of `glassformer.server.server_options`.

Each is loaded once, in a thread of its own. Waiting threads see the progress and may leave; the load goes on. The least
recently used checkpoints are evicted when there are many, or when the next one would not fit into memory with them.

Whatever asks the model raises `BusyError` where it has too much to do, and QueryError for what does not fit the
checkpoint; what opens a folder, a GlassformerError if that cannot be done.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import numpy as np

from glassformer import SHIPPED
from glassformer.runs import sources
from glassformer.runs.viewed_run import Work
from glassformer.server import render_lock, server_options
from glassformer.server.model_runner import ModelRunner
from glassformer.server.streamlit_private import session_id
from glassformer.shared.drawing import plain
from glassformer.shared.i18n import st
from transformer.checkpoint import free_memory
from transformer.checkpoint import snapshot_names as snapshots
from transformer.checkpoint.free_memory import CPU, Progress
from transformer.checkpoint.listing import Entry, ListingCache, LoadOptions, Signature, listing, own_format, signature
from transformer.errors import QueryError, shown
from transformer.i18n import Sentence, say
from transformer.model.anatomy import Kind
from transformer.runs.query import Query
from transformer.runs.trace import LabelledMaps, Trace

if TYPE_CHECKING:
    from transformer.checkpoint.load import Checkpoint

MOST = 8  # checkpoints that are kept
Open: TypeAlias = "Callable[[Progress], Checkpoint]"


class PendingCheckpoint:
    """A checkpoint on its way into memory: `done` of `whole` bytes of its values are there; 0 if not known."""

    def __init__(self) -> None:
        self.done, self.whole = 0, 0
        self._future: Future[Checkpoint] = Future()

    def wait(self, seconds: float) -> bool:
        """Wait until it is there, or for so long; whether it is."""
        try:
            self._future.exception(timeout=seconds)
        except FutureTimeoutError:
            return False
        return True

    def result(self) -> Checkpoint:
        """The checkpoint, when it is there; raises what opening it raised."""
        return self._future.result()

    def run(self, work: Open) -> Checkpoint | None:
        """Open it; None if that fails."""
        try:
            checkpoint = work(self._see)
        except BaseException as error:  # raised in the threads that wait
            self._future.set_exception(error)
            return None
        self._future.set_result(checkpoint)
        return checkpoint

    def _see(self, done: int, whole: int) -> None:
        self.done, self.whole = done, whole


class CheckpointCache:
    """What is in memory."""

    def __init__(self, most: int = MOST, *, most_bytes: int = sys.maxsize) -> None:
        """Begin with nothing; so many are kept, and of more than one so many bytes."""
        self._most, self._most_bytes, self._lock = most, most_bytes, threading.Lock()
        self._open: OrderedDict[Hashable, Checkpoint] = OrderedDict()  # the one used last at the end
        self._n_bytes: dict[Hashable, int] = {}  # of each, about
        self._under_way: dict[Hashable, PendingCheckpoint] = {}

    def find(self, which: Hashable) -> Checkpoint | None:
        """A checkpoint that is open."""
        with self._lock:
            if which in self._open:
                self._open.move_to_end(which)
            return self._open.get(which)

    def open(self, which: Hashable, work: Open, *, n_bytes: int) -> PendingCheckpoint:
        """Open a checkpoint, unless somebody does already; `which` identifies it, `n_bytes` estimates its memory."""
        with self._lock:
            if which in self._under_way:
                return self._under_way[which]
            opening = self._under_way[which] = PendingCheckpoint()
        threading.Thread(target=self._run, args=(which, opening, work, n_bytes), daemon=True).start()
        return opening

    def let_go(self, gone: Callable[[Hashable], bool]) -> None:
        """Let go of the checkpoints that are `gone`, by what says what each is; who runs one now still has it."""
        with self._lock:
            for which in [one for one in self._open if gone(one)]:
                del self._open[which]

    def _run(self, which: Hashable, opening: PendingCheckpoint, work: Open, n_bytes: int) -> None:
        self._make_room(n_bytes)
        checkpoint = opening.run(work)
        with self._lock:
            del self._under_way[which]
            if checkpoint is not None:
                self._open[which], self._n_bytes[which] = checkpoint, n_bytes
            while len(self._open) > self._most or (len(self._open) > 1 and self._takes() > self._most_bytes):
                self._open.popitem(last=False)
            self._n_bytes = {one: self._n_bytes[one] for one in self._open}

    def _takes(self) -> int:
        return sum(self._n_bytes[one] for one in self._open)

    def _make_room(self, n_bytes: int) -> None:
        """Let go of what was used longest ago, until the next one fits; a visitor may still hold it for a moment."""
        while not all(free_memory.fits(n_bytes, place) for place in {CPU, server_options.device()}):
            with self._lock:
                if not self._open:
                    return
                self._open.popitem(last=False)
            render_lock.collect()


# ------------------------------------------------------------------------------------------------ shared by all

_Result = TypeVar("_Result")

ENVIRONMENT = "GLASSFORMER_CHECKPOINTS"
OPTION = "--checkpoints"
DEFAULT_NAME = "zh-en"
LOOK_AGAIN_SECONDS = 10
PATIENCE_SECONDS = 0.3  # that a visitor waits for a newer list, and for a checkpoint before he sees a bar
DRAW_AGAIN_SECONDS = 0.2
MOST_SNAPSHOTS, SNAPSHOT_BYTES = 32, 256_000_000  # that stay in memory
WIDENS = 2.2  # what a file of 16 bits a number becomes, and what lies in memory beside it


def folders(arguments: Sequence[str] | None = None) -> list[Path]:
    """The folders that hold checkpoint folders, the project's own first, by the app's command line."""
    from_environment = [part for part in os.environ.get(ENVIRONMENT, "").split(os.pathsep) if part]
    named = (*from_environment, *server_options.values(OPTION, arguments))
    return list(dict.fromkeys([SHIPPED, *(Path(part).expanduser() for part in named)]))


class _Listed:
    """What some folders hold, looked at in the background: only the very first to ask waits for all of it."""

    def __init__(self, where: Sequence[Path]) -> None:
        self._where, self._seen = where, ListingCache()
        self._found: tuple[Entry, ...] | None = None
        self._looked_at, self._looking = 0.0, threading.Thread()
        self._lock = threading.Lock()

    def entries(self) -> tuple[Entry, ...]:
        """What was found last; what is there now, if that takes no more than a moment to see."""
        with self._lock:
            old = time.monotonic() - self._looked_at >= LOOK_AGAIN_SECONDS
            if not self._looking.is_alive() and (old or self._found is None):
                self._looking = threading.Thread(target=self._look, daemon=True)
                self._looking.start()
            looking = self._looking
        if looking.is_alive():
            looking.join(None if self._found is None else PATIENCE_SECONDS)
        return self._found or ()

    def _look(self) -> None:
        self._found = tuple(listing(self._where, seen=self._seen))
        self._looked_at = time.monotonic()


@lru_cache(maxsize=8)  # a page asks often, and a cache of Streamlit's takes longer to answer
def _listed(where: tuple[Path, ...]) -> _Listed:
    return _Listed(where)


def entries() -> tuple[Entry, ...]:
    """Every checkpoint folder that is there, the broken ones with their error; new ones appear after a moment."""
    return _listed(tuple(folders())).entries()


def look_again() -> None:
    """Clear the cached list of checkpoints, as a folder has changed."""
    _listed.cache_clear()


def usable() -> dict[str, Entry]:
    """The checkpoint folders that can be opened, by name, the default first."""
    found = {entry.name: entry for entry in entries() if entry.error is None and entry.holds == "model"}
    if DEFAULT_NAME in found:
        return {DEFAULT_NAME: found.pop(DEFAULT_NAME), **found}
    return found


def choosable(asked: str = "") -> dict[str, Entry]:
    """All that can be chosen, by name: checkpoint folders, what sources open of the others, and what a name means."""
    found, others = usable(), [entry for entry in entries() if entry.error is None]
    for source in sources.sources():
        found |= {entry.name: entry for entry in others if entry.holds == source.holds}
    for source in sources.sources():
        found |= source.own()
    if (folder := sources.folder(asked)) is not None:
        found[folder.name] = folder
    first = server_options.opens_first()
    for name in filter(None, (asked, first)):
        if name not in found and (typed := sources.at(name)) is not None:
            found[name] = typed
    return {first: found[first], **found} if first in found else found


def found(name: str) -> Entry | None:
    """A checkpoint folder that can be opened, or a snapshot, such as `reverse@1200`; None if it is not there."""
    entry, named = whole(name), snapshots.split(name)
    if entry is None or named is None or entry.name == name:
        return entry
    if all(moment.step != named[1] for moment in moments(entry)[0]):
        return None
    return replace(entry, name=name, folder=entry.folder.with_name(f"{entry.folder.name}{snapshots.AT}{named[1]}"))


def whole(name: str) -> Entry | None:
    """The checkpoint folder of that name, or of whose snapshot it is the name; None if there is none."""
    there, named = usable(), snapshots.split(name)
    return there.get(name) or sources.folder(name) or (None if named is None else there.get(named[0]))


def moments(entry: Entry) -> tuple[tuple[snapshots.SnapshotInfo, ...], tuple[Sentence, ...]]:
    """The snapshots of a checkpoint folder as of now, and a note on each that cannot be read."""
    sign = signature(snapshots.folder_of(entry.folder), ("",))
    return _moments(str(entry.folder), str(entry.root), sign) if any(sign) else ((), ())


@st.cache_resource(max_entries=64, show_spinner=False)
def _moments(
    folder: str, root: str, sign: Signature
) -> tuple[tuple[snapshots.SnapshotInfo, ...], tuple[Sentence, ...]]:
    return own_format().moments(Path(folder), inside=Path(root))


def open_maps(name: str) -> LabelledMaps:
    """The maps of that name. Raises GlassformerError if none can be shown."""
    for entry in entries():
        if entry.name == name and entry.error is None and not sources.has_model(entry):
            return sources.maps(entry)
    raise QueryError("{name} is no longer a file of attention maps.", name=shown(name))


def open_checkpoint(entry: Entry) -> Checkpoint:
    """The checkpoint of a folder; loaded once, and again when its files change. Who waits long sees how far it is."""
    opening = _opening(entry)
    return _waited(entry.folder.name, opening) if isinstance(opening, PendingCheckpoint) else opening


def open_ahead(entry: Entry) -> Checkpoint:
    """The same where nobody waits for it yet."""
    opening = _opening(entry)
    return opening.result() if isinstance(opening, PendingCheckpoint) else opening


def _opening(entry: Entry) -> Checkpoint | PendingCheckpoint:
    folder, step = snapshots.meant(entry.folder)
    if step is None:
        which = str(folder), str(entry.root), signature(folder)
        return _in_memory(_shelf(), which, folder, partial(_load, folder, entry.root))
    beside = snapshots.folder_of(folder)  # a training changes the checkpoint meanwhile, and not its snapshots
    which = str(entry.folder), str(entry.root), signature(beside, (f"{step}{snapshots.FILE}",))
    return _in_memory(_of_snapshots(), which, folder, partial(_load, entry.folder, entry.root))


def in_memory(which: Hashable, source: Path, work: Open) -> Checkpoint:
    """A checkpoint that is in memory, or will be when this returns; `which` decides all that `work` opens."""
    opening = _in_memory(_shelf(), which, source, work)
    return _waited(source.name, opening) if isinstance(opening, PendingCheckpoint) else opening


def _in_memory(shelf: CheckpointCache, which: Hashable, source: Path, work: Open) -> Checkpoint | PendingCheckpoint:
    return shelf.find(which) or shelf.open(which, work, n_bytes=int(WIDENS * _size(source)))


def _waited(name: str, opening: PendingCheckpoint) -> Checkpoint:
    if not opening.wait(PATIENCE_SECONDS):
        _show_progress(name, opening)
    return opening.result()


def let_go(gone: Callable[[Hashable], bool]) -> None:
    """Let go of the checkpoints in memory whose `which` (as of `in_memory`) is of what is gone."""
    _shelf().let_go(gone)


def _load(folder: Path, root: Path, progress: Progress) -> Checkpoint:
    return own_format().load(folder, LoadOptions(inside=root, progress=progress, device=server_options.device()))


def _size(folder: Path) -> int:
    """Bytes of the files of a folder, or of a file; 0 if that cannot be said."""
    try:
        found = [folder] if folder.is_file() else list(folder.iterdir())
        return sum(file.stat().st_size for file in found)
    except OSError:
        return 0


def _show_progress(name: str, opening: PendingCheckpoint) -> None:
    """Say how far a checkpoint is, until it is there."""
    place = st.empty()
    while not opening.wait(DRAW_AGAIN_SECONDS):
        done, whole = (round(n / 1e6) for n in (opening.done, opening.whole))
        text = say("Opening {name}", name=plain(name))
        if opening.whole:
            text = say("Opening {name}: {done:,} of {whole:,} MB", name=plain(name), done=done, whole=whole)
        place.progress(opening.done / max(opening.whole, 1), text)
    place.empty()


@st.cache_resource(show_spinner=False)
def _shelf() -> CheckpointCache:
    """The checkpoints in memory."""
    return CheckpointCache()


@st.cache_resource(show_spinner=False)
def _of_snapshots() -> CheckpointCache:
    """The snapshots in memory; a cache of their own, so they evict no other checkpoint."""
    return CheckpointCache(MOST_SNAPSHOTS, most_bytes=SNAPSHOT_BYTES)


@st.cache_resource(show_spinner=False)
def runner() -> ModelRunner:
    """The one queue in front of the model."""
    return ModelRunner(visitor=visitor)


def visitor() -> str | None:
    """Whose script this thread runs: a session, which is a tab; None outside of scripts."""
    return session_id()


def compute(key: Hashable, work: Callable[[], _Result], *, nbytes: Callable[[_Result], int]) -> _Result:
    """The result of any work with the model, made once; see `ModelRunner.compute`."""
    return runner().compute(key, work, nbytes=nbytes)


def long(
    key: Hashable, work: Callable[[Callable[[], None]], _Result], *, cost: float, nbytes: Callable[[_Result], int]
) -> _Result:
    """The same of work that is too long to be one request; see `ModelRunner.part`."""
    kept: _Result | None = runner().kept(key)
    if kept is not None:
        return kept
    found: list[_Result] = []
    runner().part(lambda pause: found.append(work(pause)), visitor=visitor(), cost=cost)
    return compute(key, found.pop, nbytes=nbytes)


def run(checkpoint: Checkpoint, query: Query) -> Trace:
    """The trace of a query, made once; see `ModelRunner.trace`. Raises QueryError if it does not fit the checkpoint."""
    return runner().trace(checkpoint, query)


def replay(checkpoint: Checkpoint, trace: Trace, sites: Sequence[str]) -> dict[str, np.ndarray]:
    """What a run had at some sites; see `transformer.runs.running.replay`, also for errors."""
    return runner().compute(
        ("replay", trace.query, trace.src_ids, trace.read_ids, tuple(sites)),  # a batch adds padding
        lambda: checkpoint.replay(trace, sites),
        nbytes=lambda values: sum(value.nbytes for value in values.values()),
    )


def by_layer(
    checkpoint: Checkpoint, trace: Trace, kind: Kind, work: Work, *, key: Hashable, layers: tuple[int, ...] | None
) -> list[np.ndarray]:
    """What some work makes of each layer's maps of a run that keeps none; see `glassformer.runs.viewed_run`."""
    return runner().compute(
        ("by_layer", trace.query, trace.src_ids, trace.read_ids, kind, key, layers),
        lambda: checkpoint.each_layer(trace, kind, work, layers=layers),
        nbytes=lambda found: sum(array.nbytes for array in found),
    )


def trace_again(checkpoint: str, query: Query) -> Trace:
    """The trace of a query that was run before, for later work that must not hold the run until then.

    Raises QueryError if the checkpoint of that name has changed.
    """
    if (foreign := sources.opened(query.checkpoint)) is not None:
        return runner().trace(foreign, query)
    entry = found(checkpoint)
    if entry is None:
        raise QueryError("The checkpoint {name} is no longer available here.", name=checkpoint)
    return runner().trace(open_checkpoint(entry), query)


def batch(checkpoint: Checkpoint, queries: Sequence[Query]) -> tuple[Trace, ...]:
    """Several queries run as one padded batch, without their maps; see `transformer.runs.running.run_batch`."""
    return runner().compute(
        ("batch", *queries),
        lambda: checkpoint.run_batch(queries, maps=False),
        nbytes=lambda traces: sum(trace.nbytes for trace in traces),
    )


def warm_up() -> None:
    """Do what the first visitor would otherwise wait for: load the default checkpoint and run it once."""
    for entry in list(usable().values())[:1]:
        checkpoint = open_ahead(entry)
        for example in checkpoint.card.examples[:1]:
            runner().trace(checkpoint, checkpoint.query(example))
