"""Pictures and view state of the page Training: losses, scores, learning rate, head entropies by snapshot."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal

import numpy as np

from glassformer.charts.heatmap import heatmap_spec
from glassformer.charts.marks import Scale
from glassformer.charts.theme import Spec
from glassformer.extensions.snapshots.snapshot_runs import Growth, all_moments, growth, hides, step_of_name
from glassformer.extensions.training_page.charts import (
    HOW_TO_READ_EXACT,
    HOW_TO_READ_LOSSES,
    HOW_TO_READ_RATES,
    HOW_TO_READ_SCORES,
    HOW_TO_READ_SNAPSHOTS,
    KEPT,
    Columns,
    Snapshots,
    by_epoch_spec,
    losses_spec,
)
from glassformer.runs.map_axes import KIND_NAMES
from glassformer.runs.picture import Page, PartEntry, Plot
from glassformer.shared.model_notes import effort_of
from glassformer.state.fields import Look, choice, either
from glassformer.state.view import MAIN, Slot, View, cell_of, fields, place_of
from transformer.checkpoint.curve import Curve, load_curve
from transformer.checkpoint.load import Checkpoint
from transformer.checkpoint.snapshots import SnapshotInfo
from transformer.i18n import joined, say
from transformer.model.anatomy import EVERY_PART


class TrainingLook(Look):
    """View state of the Training page."""

    training_panel: Literal["watch", "curves", "sentence"] = choice("training", "curves")  # which part of the page
    by_step: bool | None = either("steps")  # its curves go by the step, not by the epoch; None where that helps


BLEU_LEFT_OUT: Final = say("BLEU is not shown because it is 0 in every epoch: the outputs have fewer than four words.")


@dataclass(frozen=True)
class Curves:
    """How a checkpoint was trained, epoch by epoch."""

    curve: Curve
    kept: int | None  # the epoch that is marked
    kept_name: str  # why
    moments: tuple[SnapshotInfo, ...] = ()  # its snapshots
    chosen: int | None = None  # the selected snapshot's step; None for the checkpoint itself
    by_step: bool = False  # whether the axis is of steps
    slot: Slot = MAIN

    def values(self, *names: str) -> list[Sequence[float] | None]:
        """The values of some columns of the file."""
        return [self.curve.columns.get(name) for name in names]

    def drawn(self, *marked: tuple[str, str]) -> dict[str, Any]:
        """The common options of all charts: hover of the epochs, marked snapshots, and the axis.

        A snapshot is marked at the first of the columns, each with its name, that any snapshot has.
        """
        labels = [_label(self.curve, row) for row in range(len(self.curve.epochs))]
        found = {"labels": labels, "kept": self.kept, "kept_name": self.kept_name}
        steps = self.curve.columns.get("step", ()) if self.by_step else None
        return found | {"steps": steps, "snapshots": self._marks(marked)}

    def _marks(self, marked: Sequence[tuple[str, str]]) -> Snapshots | None:
        for column, name in marked:
            values = [getattr(one, column) for one in self.moments]
            if any(value is not None for value in values):
                scale = 100 if column == "dev_exact" else 1
                return Snapshots(
                    name=name,
                    steps=[one.step for one in self.moments],
                    epochs=epochs_of(self.curve, self.moments),
                    values=[math.nan if value is None else scale * value for value in values],
                    labels=[_named(one) for one in self.moments],
                    chosen=self.chosen,
                )
        return None


def curves(checkpoint: Checkpoint, view: View | None = None) -> Curves | None:
    """The learning curves of a checkpoint and its snapshots; None if its folder has neither.

    Raises `CheckpointError`: their file cannot be read.
    """
    view = view or View()
    moments = all_moments(checkpoint)
    curve = load_curve(checkpoint.folder, inside=checkpoint.inside)
    if curve is None and not moments:
        return None
    has_steps = curve is None or "step" in curve.columns
    asked = view.of(TrainingLook).by_step
    by_step = has_steps and (bool(moments) if asked is None else asked)
    curve, said = curve or Curve((), {}), checkpoint.card.training.get("epochs")
    marked: tuple[int | None, str] = (curve.best_epoch(), say("best on dev"))
    if isinstance(said, int) and said in curve.epochs:
        marked = (said, KEPT)
    return Curves(curve, *marked, moments, step_of_name(checkpoint), by_step)


def epochs_of(curve: Curve, moments: Sequence[SnapshotInfo]) -> list[float]:
    """How many epochs had passed at each snapshot, with a fraction; NaN where the curve does not say it."""
    steps = curve.columns.get("step")
    if steps is None or not np.isfinite(steps).all() or (np.diff([0, *steps]) <= 0).any():
        return [math.nan] * len(moments)
    before = curve.epochs[0] - 1
    return np.interp([one.step for one in moments], [0, *steps], [before, *curve.epochs], right=math.nan).tolist()


ARRIVED = "watch_arrived"  # in the session: the training that the user has just opened
TRAINING = Page(
    "training",
    say("Watch it learn"),
    panel="training_panel",
    entries=(
        PartEntry("curves", say("Curves"), "glassformer.extensions.training_page.training_panels:curves"),
        PartEntry(
            "sentence", say("Your sentence"), "glassformer.extensions.training_page.training_panels:your_sentence"
        ),
        PartEntry("watch", say("Train a small model"), "glassformer.extensions.training_page.watch_panels:watch"),
    ),
)
CURVES = TRAINING.part("curves", lambda run: curves(run.checkpoint, run.view), of_sentence=False)


@CURVES.picture("training_losses", say("Loss by epoch"), follows="still")
def losses(scene: Curves) -> Plot | None:
    """The loss in training and on the dev file."""
    training, dev = scene.values("loss", "dev_loss")
    draw = partial(losses_spec, scene.curve.epochs, training=training, dev=dev)
    marked = ("dev_loss", say("Dev loss")), ("loss", say("Training loss"))
    return _plot(scene, draw, {say("Training loss"): training, say("Dev loss"): dev}, [HOW_TO_READ_LOSSES], *marked)


@CURVES.picture("training_scores", say("Dev scores by epoch"), follows="still")
def scores(scene: Curves) -> Plot | None:
    """The scores on the dev file."""
    bleu, chrf, exact = scene.values("dev_bleu", "dev_chrf", "dev_exact")
    bleus = [*(bleu or ()), *(one.dev_bleu or 0 for one in scene.moments)]
    left_out = bleu is not None and not any(value > 0 for value in bleus) and bool(chrf or exact)
    bleu = None if left_out else bleu
    written = chrf is not None or any(one.dev_chrf for one in scene.moments)  # an encoder-only model writes nothing
    marked = [("dev_bleu", "BLEU")] * (not left_out and any(bleus)) + [("dev_chrf", "chrF")] * written
    per_cent = None if exact is None else [100 * share for share in exact]
    titles = say("Dev scores by epoch"), say("Dev scores by step")
    three: Columns = {"BLEU": bleu, "chrF": chrf, say("Exact (%)"): per_cent}
    scale = Scale(say("Score (0 to 100)"))
    draw = partial(by_epoch_spec, scene.curve.epochs, three, titles, scale, number="%{y:.2f}", name_below=True)
    said = [*[HOW_TO_READ_SCORES] * written, *[HOW_TO_READ_EXACT] * (exact is not None), *[BLEU_LEFT_OUT] * left_out]
    lines: Columns = {"BLEU": bleu, "chrF": chrf, say("share of exact outputs"): exact}
    return _plot(scene, draw, lines, said, *marked, ("dev_exact", say("Exact (%)")))


@CURVES.picture("training_rates", say("Learning rate by epoch"), follows="still")
def rates(scene: Curves) -> Plot | None:
    """The learning rate at the end of each epoch."""
    one: Columns = {say("Learning rate"): scene.curve.columns.get("learning_rate")}
    titles = say("Learning rate by epoch"), say("Learning rate by step")
    scale = Scale(say("Learning rate"), {"rangemode": "tozero", "exponentformat": "power", "showexponent": "all"})
    draw = partial(by_epoch_spec, scene.curve.epochs, one, titles, scale, number="%{y:.2e}", name_below=scene.by_step)
    return _plot(scene, draw, one, [HOW_TO_READ_RATES], ("learning_rate", say("Learning rate")))


def _plot(
    scene: Curves, draw: Callable[..., Spec], lines: Columns, how_to_read: list[str], *marked: tuple[str, str]
) -> Plot | None:
    """A chart with a description of its lines: the begin and end of each; None without lines and snapshots."""
    drawn = scene.drawn(*marked)
    if drawn["snapshots"] is None and not any(values is not None for values in lines.values()):
        return None
    spec = draw(**drawn)
    marks: list[int] = next((trace["customdata"] for trace in spec["data"] if "customdata" in trace), [])
    said = list(_ends(scene, lines))
    if marks:
        n, first, last = len(marks), marks[0], marks[-1]
        said.append(say("Marks show {n} snapshots, from step {first:,} to step {last:,}.", n=n, first=first, last=last))
    read = joined(" ", [*how_to_read, *[HOW_TO_READ_SNAPSHOTS] * bool(marks)])
    clicked = place_of if marks else None
    return Plot(spec=spec, alt=joined(" ", said), how_to_read=read, of_sentence=False, clicked=clicked)


def _ends(scene: Curves, lines: Columns) -> Iterator[str]:
    there = {name: [value for value in values or () if not math.isnan(value)] for name, values in lines.items()}
    changes = [
        say("{name} goes from {before:.4g} to {after:.4g}", name=name, before=values[0], after=values[-1])
        for name, values in there.items()
        if values
    ]
    if not changes:
        return
    first, last = scene.curve.epochs[0], scene.curve.epochs[-1]
    yield say("{changes} over epochs {first} to {last}.", changes=joined(", ", changes), first=first, last=last)
    if scene.kept is not None:
        yield say("The marked epoch is {epoch} ({name}).", name=scene.kept_name, epoch=scene.kept)


def _label(curve: Curve, row: int) -> str:
    found = (curve.columns.get(name) for name in ("step", "tokens", "seconds"))
    step, tokens, seconds = (0.0 if one is None or math.isnan(one[row]) else one[row] for one in found)
    said = [say("Epoch {epoch}", epoch=curve.epochs[row]), *([say("step {n:,}", n=round(step))] if step else [])]
    return joined(", ", [*said, *effort_of(tokens, seconds)])


def _named(moment: SnapshotInfo) -> str:
    return joined(", ", [say("Snapshot of step {n:,}", n=moment.step), *effort_of(moment.tokens, moment.seconds)])


HOW_TO_READ_ENTROPIES: Final = say(
    "Each row is a head and each column a snapshot. The entropy of a row of attention, divided by its maximum, is 1 "
    "when all open keys have the same weight and 0 when all weight is on one key; a cell is the mean over the rows."
)
READS_THE_FINISHED: Final = say("Every snapshot reads the output of the finished checkpoint.")
CLICK: Final = say("Click a cell to open that head at that snapshot.")


SENTENCE = TRAINING.part("sentence", lambda run: None if hides(run) else growth(run))


@SENTENCE.picture("training_entropy", say("Entropy of the heads over training"), follows="still")
def entropies(found: Growth) -> Plot | None:
    """The entropies of all heads of the selected attention."""
    kind, known = found.run.view.kind, found.known()
    if not known:
        return None
    shares = np.stack([one.entropies[kind] for _, one in known], axis=-1)  # [layer, head, snapshot]
    n_layers, n_heads, count = shares.shape
    if not np.isfinite(shares).any():
        return None
    heads = [(layer, head) for layer in range(n_layers) for head in range(n_heads)]
    steps = [moment.step for moment, _ in known]
    spec = heatmap_spec(
        shares.reshape(-1, count).astype(np.float32),
        queries=[say("{layer}.{head}", layer=layer + 1, head=head + 1) for layer, head in heads],
        keys=[f"{step:,}" for step in steps],
        title=say("Entropy of the heads over training: {attention}", attention=KIND_NAMES[kind]),
        query_axis=say("Layer and head"),
        key_axis=say("Training step"),
        allowed=None,
        value_name=say("entropy as a share of its maximum"),
        rows_sum_to_one=False,
    )
    read = [HOW_TO_READ_ENTROPIES, *[READS_THE_FINISHED] * (EVERY_PART.attention(kind).stack == "decoder"), CLICK]
    alt = say(
        "{attention}: the mean entropy of all heads goes from {before:.2f} of its maximum at step {first:,} to "
        "{after:.2f} at step {last:,}.",
        attention=KIND_NAMES[kind],
        before=float(np.nanmean(shares[..., 0])),
        after=float(np.nanmean(shares[..., -1])),
        first=steps[0],
        last=steps[-1],
    )
    how_to_read = joined(" ", read)
    return Plot(
        spec=spec, alt=alt, how_to_read=how_to_read, clicked=fields(cell_of, lambda cell: _meant(heads, steps, cell))
    )


def _meant(heads: list[tuple[int, int]], steps: list[int], cell: tuple[int, int]) -> dict[str, int]:
    """The head and the snapshot of a cell; `step` is the training's."""
    layer, head = heads[cell[0]]
    return {"layer": layer, "head": head, "step": steps[cell[1]]}
