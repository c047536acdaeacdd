"""A run repeated at every training snapshot (`Growth`, `AtSnapshot`): outputs, losses, reduced maps, entropies.

Each snapshot writes its own output; that of an untrained one is nonsense. All snapshots also read the finished
checkpoint's output, which gives their maps the same rows and columns. Maps are stored small, as a strip draws them.
"""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Final

import numpy as np

from glassformer.charts.grid import block_size, pooled
from glassformer.runs.picture import PartEntry
from glassformer.runs.viewed_run import RunScene, ViewedRun, VisibleTrace
from glassformer.server.model_runner import MAP_BYTES, cost_of
from transformer.analysis.head_statistics import entropy_share
from transformer.checkpoint import snapshots
from transformer.checkpoint.listing import Signature, signature
from transformer.checkpoint.load import Checkpoint, load
from transformer.checkpoint.snapshots import SnapshotInfo
from transformer.errors import GlassformerError
from transformer.i18n import Sentence, say
from transformer.model.anatomy import EVERY_PART, Kind, anatomy
from transformer.runs.query import Greedy, Query
from transformer.runs.running import each_layer, run_together
from transformer.runs.trace import Trace

MOST: Final = 24  # snapshots that are run; of more, as many that lie evenly among them
MOST_CELLS: Final = 48 * 48  # of a map: larger ones are kept as blocks


@dataclass(frozen=True, eq=False)
class AtSnapshot:
    """A run at a snapshot."""

    problem: Sentence | None = None  # why it failed; then all else is empty
    pieces: tuple[str, ...] = ()  # what it writes itself
    ids: tuple[int, ...] = ()
    ended: bool = True  # whether it wrote the end piece
    loss: float | None = None  # of the finished checkpoint's output under it, in nats per piece
    # For the same output: maps [layer, head, row, column] in float16, large ones as blocks, and the mean entropies of
    # their rows, as a share of the maximum [layer, head].
    maps: Mapping[Kind, np.ndarray] = field(default_factory=dict)
    entropies: Mapping[Kind, np.ndarray] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        """Memory, about."""
        arrays = (*self.maps.values(), *self.entropies.values())
        return 1_000 + 100 * len(self.pieces) + sum(one.nbytes for one in arrays)


@dataclass(frozen=True, eq=False)
class Growth(RunScene):
    """A run, what the finished checkpoint makes of it, and what each snapshot does as far as that is known."""

    finished: VisibleTrace  # the finished checkpoint's run, seen as the run at hand
    moments: tuple[SnapshotInfo, ...]
    found: tuple[AtSnapshot | None, ...]  # of each

    @property
    def chosen(self) -> int | None:
        """The step of the selected snapshot; None for the finished checkpoint."""
        return step_of_name(self.run.checkpoint)

    def known(self) -> list[tuple[SnapshotInfo, AtSnapshot]]:
        """The results so far, without failed ones."""
        pairs = zip(self.moments, self.found, strict=True)
        return [(moment, one) for moment, one in pairs if one is not None and one.problem is None]


def hides(run: ViewedRun) -> bool:
    """Whether maps of the selected attention have rows for pieces to guess."""
    return run.view.guess and EVERY_PART.attention(run.view.kind).stack == "decoder"


def step_of_name(checkpoint: Checkpoint) -> int | None:
    """The step of which a checkpoint is a snapshot; None for a finished one."""
    named = snapshots.split(checkpoint.name)
    return named[1] if named and checkpoint.folder.name == named[0] else None


def has_snapshots(checkpoint: Checkpoint) -> bool:
    """Whether there are snapshots of a checkpoint's training."""
    return bool(snapshots.steps(checkpoint.folder))


PART: Final = PartEntry(
    "training",
    say("Over training"),
    "glassformer.extensions.snapshots.film_panel:draw",
    page="attention",
    still=True,
    is_there=lambda run: run.checkpoint is not None and has_snapshots(run.checkpoint),
)


def all_moments(checkpoint: Checkpoint) -> tuple[SnapshotInfo, ...]:
    """What the snapshots of a checkpoint's training say of themselves; those that cannot be read are left out."""
    folder, inside = checkpoint.folder, checkpoint.inside
    return _moments(folder, inside, signature(snapshots.folder_of(folder), ("",)))


@lru_cache(maxsize=64)
def _moments(folder: Path, inside: Path | None, sign: Signature) -> tuple[SnapshotInfo, ...]:
    return snapshots.moments(folder, inside=inside)[0]


def moments_of(checkpoint: Checkpoint) -> tuple[SnapshotInfo, ...]:
    """Those that are run: all, or of many `MOST` that lie evenly among them."""
    found = all_moments(checkpoint)
    if len(found) <= MOST:
        return found
    return tuple(found[round(place)] for place in np.linspace(0, len(found) - 1, MOST))


def opened(checkpoint: Checkpoint, step: int | None) -> Checkpoint:
    """A snapshot of a checkpoint, or with no step the finished one; a `CheckpointError` if it cannot be opened."""
    folder = checkpoint.folder
    name = folder if step is None else folder.with_name(snapshots.at_step(folder.name, step))
    return load(name, inside=checkpoint.inside, device=checkpoint.device)


def finished(run: ViewedRun, open_one: Callable[[], Checkpoint] | None = None) -> VisibleTrace:
    """The finished checkpoint's run with the current view; errors as of `ModelAccess` and of `opened`.

    `open_one` opens the finished checkpoint of a snapshot.
    """
    trace = run.trace
    if step_of_name(run.checkpoint) is not None:
        checkpoint = open_one() if open_one else opened(run.checkpoint, None)
        link = replace(run.link, forced=(), hypothesis=0)  # no forced pieces of the snapshot's run
        trace = run.work.run(checkpoint, link.query(checkpoint.content_hash))
    return VisibleTrace(trace, replace(run.view, step=0), run.visible.revealed, run.slot)


def key_of(final: Trace, checkpoint: Checkpoint, moment: SnapshotInfo) -> Hashable:
    """All that decides what a run comes to at a snapshot."""
    file = f"{moment.step}{snapshots.FILE}"
    sign = signature(snapshots.folder_of(checkpoint.folder), (file,))
    return "grown", final.query, final.read_ids, str(checkpoint.folder), sign


def look(snapshot: Checkpoint, final: Trace, pause: Callable[[], None]) -> AtSnapshot:
    """What a run comes to at a snapshot; `pause` is called wherever others may go first."""
    try:
        own, forced = _ran(snapshot, final, pause)
        kinds: dict[Kind, list[tuple[np.ndarray, np.ndarray]]] = {}
        for kind in forced.kinds:
            kinds[kind] = each_layer(snapshot, forced, kind, partial(_small, forced, kind))
            pause()
    except GlassformerError as error:
        return AtSnapshot(problem=error.sentence)
    return AtSnapshot(
        pieces=own.tgt_tokens,
        ids=own.tgt_ids,
        ended=own.stop_reason == "end of sentence",
        loss=_loss(forced),
        maps={kind: np.stack([maps for maps, _ in layers]) for kind, layers in kinds.items()},
        entropies={kind: np.stack([bits for _, bits in layers]) for kind, layers in kinds.items()},
    )


def _ran(snapshot: Checkpoint, final: Trace, pause: Callable[[], None]) -> tuple[Trace, Trace]:
    own = replace(final.query, checkpoint=snapshot.content_hash, hypothesis=0)
    queries = [own]
    if anatomy(snapshot.config).writes:
        most = max(own.max_new, len(final.tgt_ids))
        queries.append(replace(own, decoding=Greedy(), forced=final.tgt_ids, max_new=most))
    traces = list(run_together(snapshot, queries, most_map_bytes=MAP_BYTES, pause=pause))
    for one in traces:
        if isinstance(one, Exception):
            raise one
    good = [one for one in traces if isinstance(one, Trace)]
    return good[0], good[-1]


def _small(trace: Trace, kind: Kind, maps: np.ndarray, layer: int) -> tuple[np.ndarray, np.ndarray]:
    """A layer's maps as blocks [head, row, column], and the entropies [head]."""
    attention = EVERY_PART.attention(kind)
    n_queries, n_keys = trace.n_tokens(attention.stack), trace.n_tokens(attention.keys_from)
    seen, allowed = maps[:, :n_queries, :n_keys], trace.mask(kind, layer)[:n_queries, :n_keys]
    blocks = pooled(seen[None], allowed, block_of(n_queries, n_keys)).weights[0]
    shares = entropy_share(seen, allowed)  # [head, query]
    counted = ~np.isnan(shares).all(axis=0)
    means = shares[:, counted].mean(axis=1) if counted.any() else np.full(len(seen), np.nan)
    return blocks.astype(np.float16), means


def block_of(n_queries: int, n_keys: int) -> int:
    """How many queries and keys of a map of that size are one block."""
    return block_size((1, 1, n_queries, n_keys), MOST_CELLS)


def _loss(trace: Trace) -> float | None:
    if not trace.n_steps:
        return None
    return float(-np.mean(trace.log_probs[np.arange(trace.n_steps), list(trace.tgt_ids)]))


def growth(run: ViewedRun) -> Growth | None:
    """All of it, computed now; None without snapshots. Errors as of `finished`."""
    moments = moments_of(run.checkpoint)
    if not moments:
        return None
    visible = finished(run)
    return Growth(run, visible, moments, tuple(_now(run, visible.trace, moment) for moment in moments))


def _now(run: ViewedRun, final: Trace, moment: SnapshotInfo) -> AtSnapshot:
    def work(pause: Callable[[], None]) -> AtSnapshot:
        try:
            return look(opened(run.checkpoint, moment.step), final, pause)
        except GlassformerError as error:
            return AtSnapshot(problem=error.sentence)

    key = key_of(final, run.checkpoint, moment)
    return run.work.long(key, work, cost=cost(final.query), nbytes=lambda one: one.nbytes)


def cost(query: Query) -> float:
    """How long a run at a snapshot takes, about."""
    return 2 * cost_of(query)
