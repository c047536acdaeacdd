"""Charts of a handout for what pages show of a model, its training, and a reference: costs, losses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

import charts
from charts.theme import Spec
from transformer.analysis import costs
from transformer.checkpoint.curve import load_curve
from transformer.checkpoint.load import Checkpoint
from transformer.model.anatomy import anatomy
from transformer.runs.query import Query
from transformer.runs.teacher_forcing import judge
from transformer.runs.trace import Trace
from ui.runs import loading
from ui.state.link import Link
from words import say

_FURTHEST: Final = 4096  # tokens
_GROUPS: Final[Mapping[str, str]] = {
    "projections": say("Attention projections"),
    "ffn": say("Feed-forward"),
    "output": say("Output layer"),
}

Draw = Callable[[Link, Checkpoint, Trace], Spec | None]


def _costs(link: Link, checkpoint: Checkpoint, trace: Trace) -> Spec:
    config = checkpoint.config
    last = max(_FURTHEST, config.max_len)
    lengths = sorted({round(2 ** (step / 4)) for step in range(61) if 2 ** (step / 4) < last} | {last})
    counts = [costs.grouped(costs.multiply_adds(config, n_source=n, n_target=n)) for n in lengths]
    crossing = costs.overtakes(config)
    return charts.cost_curves_spec(
        lengths,
        {name: [count[group] for count in counts] for group, name in _GROUPS.items()},
        quadratic=[count["maps"] for count in counts],
        linear=[sum(count.values()) - count["maps"] for count in counts],
        crossing=crossing.linear / crossing.quadratic,
        max_len=config.max_len,
        chosen=max(len(trace.src_ids), len(trace.read_ids)),
        title=say("Multiply-adds by length"),
        sides=len(anatomy(config).stacks),
    )


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
    return charts.piece_losses_spec(
        score.pieces,
        score.losses.tolist(),
        places=range(len(score)),
        ranks=score.ranks.tolist(),
        best=[score.vocabulary[i] for i in score.best_ids[:, 0]],
        best_probabilities=score.best_probabilities[:, 0].tolist(),
        chosen=None,
        guessing=score.guessing,
        title=say("Loss by position"),
    )


CHARTS: Final[Mapping[str, Draw]] = {
    "cost_curves": _costs,
    "training_losses": _training,
    "forcing_losses": _forcing,
}
"""By the key of the chart of a page."""
