"""A learning curve: loss, scores on the dev sentences and learning rate, epoch by epoch.

Snapshots of the model are marks beside the lines. They lie at steps whose logarithms are evenly spaced, most of them
before the first epoch ends, so the horizontal axis may also be the logarithm of the step: of step + 1, as there is a
step 0.

Lines differ in colour, dash and marker, so they are distinct in grey, too. Source blue and target vermillion are left
out on purpose: nothing here belongs to a side.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from glassformer.charts.grammar import Kind, at_a_line, finite, layer, legend, stroke, table, upright
from glassformer.charts.hover import hover, with_number
from glassformer.charts.theme import GUIDE_COLOR, MARK_COLOR, MASK_LINE, NEUTRAL_COLOR, Spec, base_layout, literal
from transformer.i18n import say

HOW_TO_READ_LOSSES = say(
    "A dev loss that rises while the training loss still falls means overfitting. Compare the shapes of the lines, "
    "not their heights: only the training loss includes dropout and label smoothing."
)
HOW_TO_READ_SCORES: str = say(
    "Higher is better. BLEU counts the word sequences that the outputs on the dev sentences share with the "
    "references; chrF counts the character sequences."
)
HOW_TO_READ_EXACT = say(
    "“Exact” is the share of outputs that match their reference exactly, or in an encoder-only model of hidden "
    "pieces guessed right."
)
HOW_TO_READ_RATES = say(
    "The learning rate controls how far one training step moves the parameters. It rises during warm-up and then "
    "falls; each point is its value at the end of an epoch."
)

HOW_TO_READ_SNAPSHOTS = say(
    "Each diamond is a snapshot, the model as it was at that step: click it to see that model at work."
)

KEPT = say("kept")
HEIGHT = 320
_MOST_MARKED = 60  # above this many epochs markers would hide the line


_FIRST = stroke(NEUTRAL_COLOR, 2, "solid", size=7, symbol="circle")
_SECOND = stroke(GUIDE_COLOR, 2, "dash", size=7, symbol="square")
_THIRD = stroke(MARK_COLOR, 2, "dot", size=7, symbol="triangle-up")
_STEPS = (0, 1, 3, *(lead * 10**power for power in range(1, 16) for lead in (1, 3)))
_FEW_DECADES = 2  # in which also each 3 has a label


@dataclass(frozen=True, kw_only=True)
class Snapshots:
    """What a model was at some of its steps, as marks of a chart."""

    name: str  # what their numbers are
    steps: Sequence[int]
    epochs: Sequence[float]  # where each stands among the epochs; NaN where that is not known
    values: Sequence[float]  # in the unit of the chart; NaN for no mark
    labels: Sequence[str]  # what hover says of each
    chosen: int | None = None  # the step of the one that is looked at


@dataclass(frozen=True)
class Along:
    """The horizontal axis of a learning curve."""

    epochs: Sequence[int]
    steps: Sequence[float] | None = None  # of the end of each epoch, where the axis is of steps

    @property
    def places(self) -> np.ndarray:
        """Where each epoch stands."""
        return np.asarray(self.epochs, np.int32) if self.steps is None else place_of_step(self.steps)

    def of(self, marks: Snapshots) -> np.ndarray:
        """Where each snapshot stands."""
        return np.asarray(marks.epochs, np.float64) if self.steps is None else place_of_step(marks.steps)


def place_of_step(steps: Sequence[float]) -> np.ndarray:
    """Where steps stand on an axis of their logarithms."""
    return np.log10(1 + np.maximum(np.asarray(steps, np.float64), 0))


def losses_spec(
    epochs: Sequence[int],
    *,
    training: Sequence[float] | None = None,
    dev: Sequence[float] | None = None,
    labels: Sequence[str] | None = None,
    kept: int | None = None,
    kept_name: str = KEPT,
    title: str = "",
    steps: Sequence[float] | None = None,
    snapshots: Snapshots | None = None,
) -> Spec:
    """Draw the loss on the training sentences and on the dev sentences, per epoch.

    It is in nats per target piece, and NaN is a gap. Epochs increase. `labels` are their names on hover, "Epoch 3" if
    not given; `kept` is the epoch to mark, and `kept_name` the text of the mark. With the `steps` at the ends of the
    epochs, the axis is the logarithm of the step. A click on one of the `snapshots` gives its step.
    """
    lines = [(say("Dev loss"), dev, _FIRST), (say("Training loss"), training, _SECOND)]
    axis, named = Along(epochs, steps), title or (say("Loss by step") if steps is not None else say("Loss by epoch"))
    layout = _layout(axis, named, say("Loss (nats per piece)"), snapshots)
    legend(layout, 76)
    _mark(layout, axis, kept, kept_name, top=True)
    return _drawn(layout, axis, lines, labels, say("{number} nats", number="%{y:.3f}"), snapshots)


def dev_scores_spec(
    epochs: Sequence[int],
    *,
    bleu: Sequence[float] | None = None,
    chrf: Sequence[float] | None = None,
    exact: Sequence[float] | None = None,
    labels: Sequence[str] | None = None,
    kept: int | None = None,
    kept_name: str = KEPT,
    title: str = "",
    steps: Sequence[float] | None = None,
    snapshots: Snapshots | None = None,
) -> Spec:
    """Draw the scores of the outputs on the dev sentences, per epoch: BLEU and chrF, 0 to 100; NaN is a gap.

    `exact` is the share of outputs that equal their reference, 0 to 1, drawn in per cent. The rest is as in
    `losses_spec`.
    """
    per_cent = None if exact is None else [100 * share for share in exact]
    lines = [("BLEU", bleu, _FIRST), ("chrF", chrf, _SECOND), (say("Exact (%)"), per_cent, _THIRD)]
    axis, named = (
        Along(epochs, steps),
        title or (say("Dev scores by step") if steps is not None else say("Dev scores by epoch")),
    )
    layout = _layout(axis, named, say("Score (0 to 100)"), snapshots)
    legend(layout, 76)
    _mark(layout, axis, kept, kept_name, top=False)
    return _drawn(layout, axis, lines, labels, "%{y:.2f}", snapshots)


def learning_rates_spec(
    epochs: Sequence[int],
    rates: Sequence[float] | None,
    *,
    labels: Sequence[str] | None = None,
    kept: int | None = None,
    kept_name: str = KEPT,
    title: str = "",
    steps: Sequence[float] | None = None,
    snapshots: Snapshots | None = None,
) -> Spec:
    """Draw the learning rate at the end of each epoch; NaN is a gap. The rest is as in `losses_spec`."""
    axis = Along(epochs, steps)
    named = title or (say("Learning rate by step") if steps is not None else say("Learning rate by epoch"))
    layout = _layout(axis, named, say("Learning rate"), snapshots)
    layout["yaxis"] |= {"rangemode": "tozero", "exponentformat": "power", "showexponent": "all"}
    _mark(layout, axis, kept, kept_name, top=steps is None)
    return _drawn(layout, axis, [(say("Learning rate"), rates, _FIRST)], labels, "%{y:.2e}", snapshots)


_Lines = Sequence[tuple[str, Sequence[float] | None, Spec]]


def _layout(axis: Along, title: str, y_title: str, snapshots: Snapshots | None) -> Spec:
    by_step, epochs = axis.steps is not None, axis.epochs
    layout = base_layout(title, say("Training step (logarithmic)") if by_step else say("Epoch"), y_title)
    layout["yaxis"] |= {"nticks": 6}
    layout["xaxis"] |= {"tickformat": "d", "showgrid": False}
    there = np.concatenate([axis.places, *([axis.of(snapshots)] if snapshots else [])])
    there = there[np.isfinite(there)]
    first, last = (float(there.min()), float(there.max())) if there.size else (0.0, 1.0)
    if by_step:
        few = last - first <= _FEW_DECADES
        shown = [step for step in _STEPS if few or not str(step).startswith("3")]
        layout["xaxis"] |= {"tickmode": "array", "tickvals": place_of_step(shown).tolist()}
        layout["xaxis"] |= {"ticktext": [f"{step:,}" for step in shown]}
    else:
        layout["xaxis"] |= {"dtick": 1} if len(epochs) <= 10 else {"nticks": 8}
    if there.size:
        room = max(0.06 if by_step else 0.5, 0.03 * (last - first))
        layout["xaxis"]["range"] = [first - room, last + room]
    layout |= {"height": HEIGHT, "hovermode": "closest"}
    return layout


def _mark(layout: Spec, axis: Along, kept: int | None, name: str, *, top: bool) -> None:
    """A line from top to bottom at an epoch, with its name at the end where no curve runs."""
    if kept is None or kept not in axis.epochs:
        return
    row = list(axis.epochs).index(kept)
    place, text = axis.places[row].item(), literal(say("{name}: epoch {epoch}", name=name, epoch=kept))
    if not np.isfinite(place):
        return
    begins, ends = layout["xaxis"]["range"]
    layout["shapes"] = [upright(place, MARK_COLOR)]
    height, left = 1 if top else 0, 2 * place > begins + ends
    layout["annotations"] = [at_a_line(place, height, text, left=left) | {"yanchor": "top" if top else "bottom"}]


def _drawn(
    layout: Spec, axis: Along, lines: _Lines, labels: Sequence[str] | None, shown: str, snapshots: Snapshots | None
) -> Spec:
    """The lines and the snapshots, with the table of both where places on the axis are not what they are of."""
    epochs = axis.epochs
    named = [say("Epoch {epoch}", epoch=epoch) for epoch in epochs] if labels is None else labels
    there = [(name, np.asarray(values, np.float64), look) for name, values, look in lines if values is not None]
    for name, count in (*((name, len(values)) for name, values, _ in there), ("labels", len(named))):
        if count != len(epochs):
            raise ValueError(f"{len(epochs)} epochs and {count} of {name}: give one for each epoch.")
    kind: Kind = "lines+markers" if len(epochs) <= _MOST_MARKED else "lines"
    texts, data = [literal(label) for label in named], list[Spec]()
    for name, values, look in there if len(epochs) else ():
        says = hover(with_number(literal(name), shown), "%{hovertext}")
        y = np.where(np.isfinite(values), values, np.nan)
        gaps = look | {"connectgaps": False}
        data.append(layer(kind, axis.places, y, gaps, name=literal(name), says=says, texts=texts))
    if snapshots is not None:
        data += _diamonds(axis, snapshots, shown)
    if snapshots is not None or axis.steps is not None:
        _save(layout, axis, there, snapshots)
    return {"data": data, "layout": layout}


def _diamonds(axis: Along, marks: Snapshots, shown: str) -> list[Spec]:
    """The snapshots that have a number, joined by a thin line."""
    x, y = axis.of(marks), np.asarray(marks.values, np.float64)
    kept = np.flatnonzero(np.isfinite(x) & np.isfinite(y)).tolist()
    if not kept:
        return []
    chosen = np.asarray(marks.steps)[kept] == (-1 if marks.chosen is None else marks.chosen)
    look = stroke(MASK_LINE, 1, "dot", size=0, symbol="diamond") | {"cliponaxis": False}
    look["marker"] |= {"size": np.where(chosen, 16, 11), "color": MARK_COLOR}
    look["marker"] |= {"line": {"color": NEUTRAL_COLOR, "width": np.where(chosen, 4, 0)}}
    name, steps = literal(say("Snapshots")), [marks.steps[place] for place in kept]
    says = hover(with_number(literal(marks.name), shown), "%{hovertext}")
    texts = [literal(marks.labels[place]) for place in kept]
    return [layer("lines+markers", x[kept], y[kept], look, name=name, says=says, texts=texts, clicks=steps)]


def _save(layout: Spec, axis: Along, lines: Sequence[tuple[str, np.ndarray, Spec]], marks: Snapshots | None) -> None:
    """The table that is saved: the axis may be of steps, and the snapshots lie between the epochs."""
    steps = axis.steps or [np.nan] * len(axis.epochs)
    rows = [
        [name, epoch, finite(step), finite(value)]
        for name, values, _ in lines
        for epoch, step, value in zip(axis.epochs, steps, values, strict=True)
    ]
    if marks is not None:
        name = say("{name} (snapshot)", name=marks.name)
        rows += [
            [name, None, step, number]
            for step, value in zip(marks.steps, marks.values, strict=True)
            if (number := finite(value)) is not None
        ]
    table(layout, [say("Series"), say("Epoch"), say("Step"), layout["yaxis"]["title"]["text"]], rows)
