"""Charts of a handout for what pages show of a model, and its training: costs, losses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import charts
from charts.theme import Spec
from transformer.checkpoint.curve import load_curve
from transformer.checkpoint.load import Checkpoint
from transformer.runs.trace import Trace
from ui.runs import figures
from ui.state.link import Link

Draw = Callable[[Link, Checkpoint, Trace], Spec | None]


def _costs(link: Link, checkpoint: Checkpoint, trace: Trace) -> Spec:
    return figures.cost_curves(checkpoint.config, max(len(trace.src_ids), len(trace.read_ids)))


def _training(link: Link, checkpoint: Checkpoint, trace: Trace) -> Spec | None:
    curve = load_curve(checkpoint.folder, inside=checkpoint.inside)
    if curve is None:
        return None
    training, dev = curve.columns.get("loss"), curve.columns.get("dev_loss")
    if training is None and dev is None:
        return None
    kept = checkpoint.card.training.get("epochs")
    kept = kept if isinstance(kept, int) and kept in curve.epochs else None
    return charts.losses_spec(curve.epochs, training=training, dev=dev, kept=kept)


CHARTS: Final[Mapping[str, Draw]] = {
    "cost_curves": _costs,
    "training_losses": _training,
}
"""By the key of the chart of a page."""
