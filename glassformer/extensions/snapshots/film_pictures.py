"""Picture "Over training": the map of the chosen or sharpest head at each snapshot; names of tiles, alt text.

All snapshots read the finished checkpoint's output (`extensions.snapshots.snapshot_runs`), so tiles have equal axes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from glassformer.attention.drawn_maps import ATTENTION
from glassformer.charts.grid import HOW_TO_READ_CLOSED, open_blocks
from glassformer.extensions.snapshots.charts import HOW_TO_READ, film_spec, moment_in_film
from glassformer.extensions.snapshots.snapshot_runs import Growth, block_of, growth, hides
from glassformer.runs.map_axes import KIND_NAMES, mask_reason, sides
from glassformer.runs.picture import Plot
from glassformer.runs.viewed_run import RunScene, ViewedRun
from glassformer.state.view import Click
from transformer.analysis.head_statistics import entropy_share
from transformer.checkpoint.snapshots import SnapshotInfo
from transformer.i18n import Sentence, joined, say
from transformer.model.anatomy import EVERY_PART

READS_THE_FINISHED: Final = say(
    "Every snapshot reads the output of the finished checkpoint, so all tiles have the same rows; what a snapshot "
    "writes itself is on the page Watch it learn."
)
OWN_CHOICE: Final = say("You have not chosen a head yet, so the one that ends up sharpest is shown.")
CLICK: Final = say("Click a tile to open that snapshot.")


@dataclass(frozen=True, eq=False)
class Film(RunScene):
    """One head over training."""

    growth: Growth
    layer: int
    head: int


def film_of(found: Growth) -> Film:
    """The head that is chosen, else the one of the chosen layer, or of all, that ends up sharpest."""
    view, trace = found.run.view, found.finished.trace
    if view.layer is not None and view.head is not None:
        return Film(found.run, found, view.layer, view.head)
    maps = trace.maps(view.kind)
    if not trace.keeps_maps:
        return Film(found.run, found, view.layer or 0, 0)
    layers = range(len(maps)) if view.layer is None else [view.layer]
    shares = np.stack([np.nanmean(entropy_share(maps[one], trace.mask(view.kind, one)), axis=-1) for one in layers])
    layer, head = divmod(int(np.nanargmin(shares)), maps.shape[1])
    return Film(found.run, found, layers[layer], head)


def _scene(run: ViewedRun) -> Film | None:
    found = None if hides(run) else growth(run)
    return None if found is None else film_of(found)


OVER_TRAINING = ATTENTION.part("training", _scene)


@OVER_TRAINING.picture("over_training", say("One head over training"), follows="still")
def strip(film: Film) -> Plot | None:
    """The head at each snapshot; an empty tile where a snapshot could not be run, or has not been yet."""
    found, kind, moments = film.growth, film.run.view.kind, film.growth.moments
    known = {moment.step: one.maps[kind][film.layer, film.head] for moment, one in found.known()}
    if not known:
        return None
    empty = np.full_like(next(iter(known.values())), np.nan)
    axes, trace = sides(found.finished, kind), found.finished.trace
    size = (len(axes.queries), len(axes.keys))
    allowed = trace.mask(kind, film.layer)[: size[0], : size[1]]
    block = block_of(*size)
    head = say("layer {layer}, head {head}", layer=film.layer + 1, head=film.head + 1)
    steps = [moment.step for moment in moments]
    spec = film_spec(
        np.stack([known.get(step, empty) for step in steps]),
        names=[named(moment) for moment in moments],
        queries=axes.queries[::block],
        keys=axes.keys[::block],
        title=say("{attention} over training, {head}", attention=KIND_NAMES[kind], head=head),
        query_axis=axes.query_axis,
        key_axis=axes.key_axis,
        allowed=open_blocks(allowed, block)[0],
        mask_reason=mask_reason(film.run.checkpoint, kind),
        chosen=steps.index(found.chosen) if found.chosen in steps else None,
        colour=axes.key_side,
        block=block,
    )
    alt = _alt(film, head, moments)
    read = _how_to_read(film, closed=not allowed.all())
    return Plot(spec=spec, alt=alt, how_to_read=read, clicked=partial(_step_of, steps, len(axes.queries[::block])))


def named(moment: SnapshotInfo) -> tuple[Sentence, Sentence | str]:
    """The two lines of a snapshot's name: its step, and its loss."""
    step = say("Step {n:,}", n=moment.step)
    if moment.dev_loss is not None:
        return step, say("dev loss {loss:.2f}", loss=moment.dev_loss)
    return step, "" if moment.loss is None else say("Loss {loss:.2f}", loss=moment.loss)


def _step_of(steps: list[int], n_queries: int, click: Click) -> int | None:
    moment = moment_in_film(click.index, n_queries)
    return None if moment is None or moment >= len(steps) else steps[moment]


def _how_to_read(film: Film, *, closed: bool) -> str:
    view = film.run.view
    said = [HOW_TO_READ, *[HOW_TO_READ_CLOSED] * closed]
    said += [OWN_CHOICE] * (view.layer is None or view.head is None)
    said += [READS_THE_FINISHED] * (EVERY_PART.attention(view.kind).stack == "decoder")
    return joined(" ", [*said, CLICK])


def _alt(film: Film, head: Sentence, moments: Sequence[SnapshotInfo]) -> str:
    return say(
        "{attention}, {head}, as {n} small maps, one for each snapshot from step {first:,} to step {last:,}. The "
        "slider over training opens a snapshot by keyboard.",
        attention=KIND_NAMES[film.run.view.kind],
        head=head,
        n=len(moments),
        first=moments[0].step,
        last=moments[-1].step,
    )
