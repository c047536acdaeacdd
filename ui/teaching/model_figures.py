"""Charts of a handout for what pages show of a training and of a reference: losses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

import charts
from charts.theme import Spec
from transformer.checkpoint.curve import load_curve
from transformer.checkpoint.load import Checkpoint
from transformer.runs.query import Query
from transformer.runs.teacher_forcing import judge
from transformer.runs.trace import Trace
from ui.runs import figures, loading
from ui.state.link import Link

Draw = Callable[[Link, Checkpoint, Trace], Spec | None]


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


def _forcing(link: Link, checkpoint: Checkpoint, trace: Trace) -> Spec | None:
    if not link.reference:
        return None
    query = Query(checkpoint=trace.query.checkpoint, source=trace.query.source)
    score = loading.runner().compute(
        ("teacher_forcing", query, link.reference, None),
        partial(judge, checkpoint, query, link.reference),
        nbytes=lambda found: found.nbytes,
    )
    return figures.piece_losses(score, None)


CHARTS: Final[Mapping[str, Draw]] = {
    "training_losses": _training,
    "forcing_losses": _forcing,
}
"""By the key of the chart of a page."""
