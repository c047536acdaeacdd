"""A learning curve: loss, scores on the dev sentences and learning rate, epoch by epoch.

Lines differ in colour, dash and marker, so they are distinct in grey, too. Source blue and target vermillion are left
out on purpose: nothing here belongs to a side.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from charts.grammar import Kind, at_a_line, layer, legend, stroke, upright
from charts.hover import hover, with_number
from charts.theme import GUIDE_COLOR, MARK_COLOR, NEUTRAL_COLOR, Spec, base_layout, literal
from words import say

HOW_TO_READ_LOSSES = say(
    "A dev loss that rises while the training loss still falls means overfitting. Compare the shapes of the lines, "
    "not their heights: only the training loss includes dropout and label smoothing."
)
HOW_TO_READ_SCORES: str = say(
    "Higher is better. BLEU counts the word sequences that the outputs on the dev sentences share with the "
    "references; chrF counts the character sequences."
)
HOW_TO_READ_EXACT = say(
    "“Exact” is the share of outputs that match their reference exactly, or in an encoder-only model of hidden pieces "
    "guessed right."
)
HOW_TO_READ_RATES = say(
    "The learning rate controls how far one training step moves the parameters. It rises during warm-up and then "
    "falls; each point is its value at the end of an epoch."
)

KEPT = say("kept")
HEIGHT = 320
_MOST_MARKED = 60  # above this many epochs markers would hide the line


_FIRST = stroke(NEUTRAL_COLOR, 2, "solid", size=7, symbol="circle")
_SECOND = stroke(GUIDE_COLOR, 2, "dash", size=7, symbol="square")
_THIRD = stroke(MARK_COLOR, 2, "dot", size=7, symbol="diamond")


def losses_spec(
    epochs: Sequence[int],
    *,
    training: Sequence[float] | None = None,
    dev: Sequence[float] | None = None,
    labels: Sequence[str] | None = None,
    kept: int | None = None,
    kept_name: str = KEPT,
    title: str = say("Loss by epoch"),
) -> Spec:
    """Draw the loss on the training sentences and on the dev sentences, per epoch.

    It is in nats per target piece, and NaN is a gap. Epochs increase. `labels` are their names on hover, "Epoch 3" if
    not given; `kept` is the epoch to mark, and `kept_name` the text of the mark.
    """
    lines = [(say("Dev loss"), dev, _FIRST), (say("Training loss"), training, _SECOND)]
    layout = _layout(epochs, title, say("Loss (nats per piece)"))
    legend(layout, 76)
    _mark(layout, epochs, kept, kept_name, top=True)
    return {"data": _lines(epochs, lines, labels, say("{number} nats", number="%{y:.3f}")), "layout": layout}


def dev_scores_spec(
    epochs: Sequence[int],
    *,
    bleu: Sequence[float] | None = None,
    chrf: Sequence[float] | None = None,
    exact: Sequence[float] | None = None,
    labels: Sequence[str] | None = None,
    kept: int | None = None,
    kept_name: str = KEPT,
    title: str = say("Dev scores by epoch"),
) -> Spec:
    """Draw the scores of the outputs on the dev sentences, per epoch: BLEU and chrF, 0 to 100; NaN is a gap.

    `exact` is the share of outputs that equal their reference, 0 to 1, drawn in per cent. The rest is as in
    `losses_spec`.
    """
    per_cent = None if exact is None else [100 * share for share in exact]
    lines = [("BLEU", bleu, _FIRST), ("chrF", chrf, _SECOND), (say("Exact (%)"), per_cent, _THIRD)]
    layout = _layout(epochs, title, say("Score (0 to 100)"))
    legend(layout, 76)
    _mark(layout, epochs, kept, kept_name, top=False)
    return {"data": _lines(epochs, lines, labels, "%{y:.2f}"), "layout": layout}


def learning_rates_spec(
    epochs: Sequence[int],
    rates: Sequence[float],
    *,
    labels: Sequence[str] | None = None,
    kept: int | None = None,
    kept_name: str = KEPT,
    title: str = say("Learning rate by epoch"),
) -> Spec:
    """Draw the learning rate at the end of each epoch; NaN is a gap. The rest is as in `losses_spec`."""
    layout = _layout(epochs, title, say("Learning rate"))
    layout["yaxis"] |= {"rangemode": "tozero", "exponentformat": "power", "showexponent": "all"}
    _mark(layout, epochs, kept, kept_name, top=True)
    return {"data": _lines(epochs, [(say("Learning rate"), rates, _FIRST)], labels, "%{y:.2e}"), "layout": layout}


def _layout(epochs: Sequence[int], title: str, y_title: str) -> Spec:
    layout = base_layout(title, say("Epoch"), y_title)
    layout["yaxis"] |= {"nticks": 6}
    layout["xaxis"] |= {"tickformat": "d", "showgrid": False}
    layout["xaxis"] |= {"dtick": 1} if len(epochs) <= 10 else {"nticks": 8}
    if len(epochs):
        room = max(0.5, 0.03 * (epochs[-1] - epochs[0]))
        layout["xaxis"]["range"] = [epochs[0] - room, epochs[-1] + room]
    layout |= {"height": HEIGHT, "hovermode": "closest"}
    return layout


def _mark(layout: Spec, epochs: Sequence[int], kept: int | None, name: str, *, top: bool) -> None:
    """A line from top to bottom at an epoch, with its name at the end where no curve runs."""
    if kept is None or kept not in epochs:
        return
    layout["shapes"] = [upright(kept, MARK_COLOR)]
    text = literal(say("{name}: epoch {epoch}", name=name, epoch=kept))
    height, left = 1 if top else 0, 2 * kept > epochs[0] + epochs[-1]
    layout["annotations"] = [at_a_line(kept, height, text, left=left) | {"yanchor": "top" if top else "bottom"}]


def _lines(
    epochs: Sequence[int],
    lines: Sequence[tuple[str, Sequence[float] | None, Spec]],
    labels: Sequence[str] | None,
    shown: str,
) -> list[Spec]:
    there = [(name, np.asarray(values, dtype=np.float64), look) for name, values, look in lines if values is not None]
    named = [say("Epoch {epoch}", epoch=epoch) for epoch in epochs] if labels is None else labels
    for name, count in (*((name, len(values)) for name, values, _ in there), ("labels", len(named))):
        if count != len(epochs):
            raise ValueError(f"{len(epochs)} epochs and {count} of {name}: give one for each epoch.")
    if not len(epochs):
        return []
    kind: Kind = "lines+markers" if len(epochs) <= _MOST_MARKED else "lines"
    x, texts, found = np.asarray(epochs, dtype=np.int32), [literal(label) for label in named], []
    for name, values, look in there:
        says = hover(with_number(literal(name), shown), "%{hovertext}")
        y = np.where(np.isfinite(values), values, np.nan)
        found.append(layer(kind, x, y, look | {"connectgaps": False}, name=literal(name), says=says, texts=texts))
    return found
