"""Learning curve charts: measures by epoch or logarithm of the step, with snapshots as marks; models side by side.

Snapshots of the model are marks beside the lines. They lie at steps whose logarithms are evenly spaced, most of them
before the first epoch ends, so the horizontal axis may also be the logarithm of the step: of step + 1, as there is a
step 0.

Lines differ in colour, dash and marker, so they are distinct in grey, too. Source blue and target vermillion are left
out on purpose: nothing here belongs to a side.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from glassformer.charts.grammar import at_a_line, finite, stroke, table, upright
from glassformer.charts.marks import Places, Scale, Series, lines
from glassformer.charts.theme import GUIDE_COLOR, HEAD_COLOURS, MARK_COLOR, MASK_LINE, NEUTRAL_COLOR, Spec, literal
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
    "tokens guessed right."
)
HOW_TO_READ_RATES = say(
    "The learning rate controls how far one training step moves the parameters. It rises during warm-up and then "
    "falls; each point is its value at the end of an epoch."
)

HOW_TO_READ_SNAPSHOTS = say(
    "Each diamond is a snapshot, the model as it was at that step: click it to see that model at work."
)

KEPT = say("kept")
Columns = Mapping[str, Sequence[float] | None]
HEIGHT = 320


_LOOKS = [
    stroke(NEUTRAL_COLOR, 2, "solid", size=7, symbol="circle"),
    stroke(GUIDE_COLOR, 2, "dash", size=7, symbol="square"),
    stroke(MARK_COLOR, 2, "dot", size=7, symbol="triangle-up"),
]
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
    chosen: int | None = None  # the step of the selected one


def place_of_step(steps: Sequence[float]) -> np.ndarray:
    """The places of steps on an axis of their logarithms."""
    return np.log10(1 + np.maximum(np.asarray(steps, np.float64), 0))


def losses_spec(
    epochs: Sequence[int], *, training: Sequence[float] | None = None, dev: Sequence[float] | None = None, **more: Any
) -> Spec:
    """Draw the loss on the training sentences and on the dev sentences, per epoch, in nats per target piece.

    `more` is as in `by_epoch_spec`.
    """
    titles = say("Loss by epoch"), say("Loss by step")
    both: Columns = {say("Dev loss"): dev, say("Training loss"): training}
    scale, number = Scale(say("Loss (nats per token)")), say("{number} nats", number="%{y:.3f}")
    return by_epoch_spec(epochs, both, titles, scale, number=number, **more)


def by_epoch_spec(
    epochs: Sequence[int],
    lines_by_name: Columns,
    titles: tuple[str, str],
    scale: Scale,
    *,
    number: str,
    name_below: bool = False,
    labels: Sequence[str] | None = None,
    kept: int | None = None,
    kept_name: str = KEPT,
    steps: Sequence[float] | None = None,
    snapshots: Snapshots | None = None,
) -> Spec:
    """Draw at most three measures by epoch; NaN is a gap, None a line that is not there.

    Epochs increase. `titles` are those by epoch and by step. `labels` are the names of epochs on hover, "Epoch 3" if
    not given; `kept` is the epoch to mark, and `kept_name` the text of the mark, at the top unless `name_below`. With
    the `steps` at the ends of the epochs, the axis is the logarithm of the step. A click on one of the `snapshots`
    gives its step.
    """
    by_step = steps is not None
    places = np.asarray(epochs, np.int32) if steps is None else place_of_step(steps)
    named = [say("Epoch {epoch}", epoch=epoch) for epoch in epochs] if labels is None else labels
    texts, found = [literal(label) for label in named], list[tuple[str, np.ndarray]]()
    series = []
    for (name, values), look in zip(lines_by_name.items(), _LOOKS, strict=False):
        if values is not None:
            found.append((name, np.asarray(values, np.float64)))
            finite_ones = np.where(np.isfinite(found[-1][1]), found[-1][1], np.nan)
            series.append(Series(name, finite_ones, look | {"connectgaps": False}, number=number, texts=texts))
    there = [places]
    if snapshots is not None:
        there.append(place_of_step(snapshots.steps) if by_step else np.asarray(snapshots.epochs, np.float64))
        series += _diamonds(there[1], snapshots, number)
    axis = _axis(np.concatenate(there), by_step=by_step)
    across = Places(say("Training step (logarithmic)") if by_step else say("Epoch"), places, "", axis)
    spec = lines(titles[by_step], across, scale, series, height=HEIGHT, top=76 * (len(lines_by_name) > 1))["spec"]
    if kept is not None and kept in epochs:
        _mark(spec["layout"], float(places[list(epochs).index(kept)]), kept, kept_name, below=name_below)
    if snapshots is not None or by_step:
        _save(spec["layout"], epochs, steps or [np.nan] * len(epochs), found, snapshots)
    return spec


def _axis(there: np.ndarray, *, by_step: bool) -> Spec:
    """The axis of epochs or of the logarithm of steps, with room around its marks."""
    there = there[np.isfinite(there)]
    first, last = (float(there.min()), float(there.max())) if there.size else (0.0, 1.0)
    room = max(0.06 if by_step else 0.5, 0.03 * (last - first))
    axis: Spec = {"range": [first - room, last + room]} if there.size else {}
    if not by_step:
        return axis | {"nticks": 8}
    few = last - first <= _FEW_DECADES
    shown = [step for step in _STEPS if few or not str(step).startswith("3")]
    ticks = {"tickvals": place_of_step(shown).tolist(), "ticktext": [f"{step:,}" for step in shown]}
    return axis | {"tickmode": "array"} | ticks


def _mark(layout: Spec, place: float, epoch: int, name: str, *, below: bool) -> None:
    """A line from top to bottom at an epoch, with its name at the end where no curve runs."""
    if not np.isfinite(place):
        return
    begins, ends = layout["xaxis"]["range"]
    layout["shapes"] = [upright(place, MARK_COLOR)]
    said, left = literal(say("{name}: epoch {epoch}", name=name, epoch=epoch)), 2 * place > begins + ends
    at = {"yanchor": "bottom" if below else "top"}
    layout["annotations"] = [at_a_line(place, 0 if below else 1, said, left=left) | at]


def _diamonds(x: np.ndarray, marks: Snapshots, number: str) -> list[Series]:
    """The snapshots that have a number, joined by a thin line."""
    y = np.asarray(marks.values, np.float64)
    kept = np.flatnonzero(np.isfinite(x) & np.isfinite(y)).tolist()
    if not kept:
        return []
    chosen = np.asarray(marks.steps)[kept] == (-1 if marks.chosen is None else marks.chosen)
    look = stroke(MASK_LINE, 1, "dot", size=0, symbol="diamond") | {"cliponaxis": False, "name": say("Snapshots")}
    look["marker"] |= {"size": np.where(chosen, 16, 11), "color": MARK_COLOR}
    look["marker"] |= {"line": {"color": NEUTRAL_COLOR, "width": np.where(chosen, 4, 0)}}
    texts, clicks = [literal(marks.labels[place]) for place in kept], [marks.steps[place] for place in kept]
    return [Series(marks.name, y[kept], look, number=number, at=x[kept], texts=texts, clicks=clicks)]


def _save(
    layout: Spec,
    epochs: Sequence[int],
    steps: Sequence[float],
    lines: Sequence[tuple[str, np.ndarray]],
    marks: Snapshots | None,
) -> None:
    """The table that is saved: the axis may be of steps, and the snapshots lie between the epochs."""
    rows = [
        [name, epoch, finite(step), finite(value)]
        for name, values in lines
        for epoch, step, value in zip(epochs, steps, values, strict=True)
    ]
    if marks is not None:
        name = say("{name} (snapshot)", name=marks.name)
        rows += [
            [name, None, step, number]
            for step, value in zip(marks.steps, marks.values, strict=True)
            if (number := finite(value)) is not None
        ]
    table(layout, [say("Series"), say("Epoch"), say("Step"), layout["yaxis"]["title"]["text"]], rows)


_DASHES, _SYMBOLS = ("solid", "dash", "dot", "dashdot", "longdash"), ("circle", "square", "triangle-up", "diamond", "x")
Points = Sequence[tuple[float, float]]
NAMES_BELOW: Spec = {"y": -0.2, "yanchor": "top"}  # where a narrow page has room for all names of a legend


def side_by_side_spec(
    title: str, across: Places, scale: Scale, models: Mapping[str, Points], number: str, *, seen: float | None = None
) -> Spec:
    """Draw a line for each model, through points of any places; at `seen` ends what was in the training."""
    series = [
        Series(
            name,
            [value for _, value in points],
            stroke(HEAD_COLOURS[i][0], 2, _DASHES[i % len(_DASHES)], size=6, symbol=_SYMBOLS[i % len(_SYMBOLS)]),
            number=number,
            at=[place for place, _ in points],
        )
        for i, (name, points) in enumerate(models.items())
    ]
    spec = lines(title, across, scale, series, height=HEIGHT + 100, top=56)["spec"]
    spec["layout"]["legend"] |= NAMES_BELOW
    if seen is not None:
        spec["layout"]["shapes"] = [upright(seen, MARK_COLOR)]
        spec["layout"]["annotations"] = [at_a_line(seen, 1, say("longer than in training"), left=False)]
    rows = [[name, *map(finite, point)] for name, points in models.items() for point in points]
    table(spec["layout"], [say("Model"), across.title, scale.title], rows)
    return spec
