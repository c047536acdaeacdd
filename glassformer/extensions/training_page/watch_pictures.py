"""Charts of a training in progress: loss so far, newest snapshot's map, models compared; `Watched` for extensions."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from glassformer.charts.grammar import Kind as LineKind
from glassformer.charts.grammar import stroke
from glassformer.charts.heatmap import heatmap_spec
from glassformer.charts.marks import Places, Scale, Series, lines
from glassformer.charts.theme import GUIDE_COLOR, MARK_COLOR, NEUTRAL_COLOR, Spec
from glassformer.extensions.training.library.held_out_scores import LengthScore, read_lengths
from glassformer.extensions.training_page import session_trainings
from glassformer.extensions.training_page.charts import NAMES_BELOW, Points, side_by_side_spec
from glassformer.extensions.training_page.training_pictures import TRAINING
from glassformer.extensions.training_page.trainings import Training
from glassformer.extensions.training_page.watch_choices import label_of, lengths_of
from glassformer.runs import loading
from glassformer.runs.map_axes import MapAxes, head_of_kind, sides
from glassformer.runs.picture import Part
from glassformer.runs.viewed_run import VisibleTrace
from glassformer.server.model_runner import BusyError
from glassformer.state.view import View
from transformer.analysis.head_statistics import entropy
from transformer.checkpoint import snapshots
from transformer.checkpoint.curve import load_curve
from transformer.checkpoint.load import load
from transformer.checkpoint.snapshots import SnapshotInfo
from transformer.errors import CheckpointError, GlassformerError
from transformer.i18n import joined, say
from transformer.model.anatomy import Kind

HOW_TO_READ = say(
    "The line is the loss of the last steps; the squares are the loss on the dev pairs, which are not trained on. "
    "The right edge is the end of the training."
)
HOW_TO_READ_LATEST = say(
    "The newest snapshot reads the first example. The map is that of the head of its last layer whose rows are the "
    "sharpest: which head that is may change from one snapshot to the next."
)
_NATS: Final = say("{number} nats", number="%{y:.3f}")
_LINE = stroke(GUIDE_COLOR, 2, "solid")
_DEV = stroke(NEUTRAL_COLOR, 2, "dash", size=8, symbol="square")
_EXACT = stroke(MARK_COLOR, 2, "dot", size=8, symbol="triangle-up")


@dataclass(frozen=True, eq=False)
class Watched:
    """A training that is shown, of which extensions may draw more."""

    training: Training
    is_under_way: bool


@dataclass(frozen=True)
class GrowingCurve:
    """How far a training is."""

    training: Points  # step and loss
    dev: Points  # step and loss
    exact: Points  # step and share
    steps: int  # where it ends
    n_pieces: int | None = None  # among which a guess has to choose; None where that is not known


def growing(training: Training) -> GrowingCurve | None:
    """How far a training is; None before its first step."""
    now, columns = training.progress(), _columns(training, training.out)
    steps = [round(step) for step in columns.get("step", ())]
    entry = session_trainings.at(session_trainings.name_of(training))
    moments = loading.moments(entry)[0] if entry is not None else ()
    dev, exact = (_at_steps(steps, columns.get(name, ()), moments, name) for name in ("dev_loss", "dev_exact"))
    points = training.points.get(training.plan.name, ())
    if not points and not dev:
        return None
    last = max(now.steps, *(step for step, _ in (*points, *dev)))
    return GrowingCurve(tuple(points), tuple(dev), tuple(exact), last, _n_pieces(training))


def _columns(training: Training, out: Path) -> Mapping[str, Sequence[float]]:
    """The columns of a model's learning curve; none while they are not there."""
    try:
        curve = load_curve(out, inside=training.folder)
    except CheckpointError:  # it is being written
        curve = None
    return {} if curve is None else curve.columns


def _n_pieces(training: Training) -> int | None:
    """The pieces that a target may have where they are characters: padding, unknown and start are none."""
    words = training.plan.trains[training.plan.name]
    if "--pieces" not in words or words[words.index("--pieces") + 1] != "char":
        return None
    return int(words[words.index("--src-vocab") + 1]) - 3


def _at_steps(steps: Sequence[int], values: Sequence[float], moments: Sequence[SnapshotInfo], name: str) -> Points:
    """Measurements at the ends of epochs, and of snapshots on the first pairs only."""
    found = {one.step: value for one in moments if (value := getattr(one, name)) is not None}
    return sorted({**found, **dict(zip(steps, values, strict=False))}.items())


@dataclass(frozen=True, eq=False)
class LatestRun:
    """What the newest snapshot makes of one sentence, and the map of the sharpest head in its last layer."""

    step: int  # of the training
    kind: Kind
    layer: int  # from 0
    head: int  # from 0
    weights: np.ndarray  # [query, key]
    allowed: np.ndarray  # bool [query, key], whether the mask leaves them open
    axes: MapAxes
    source: str
    output: str


def latest(training: Training) -> LatestRun | None:
    """The run of the newest snapshot, made once; None before the first, or while it cannot be read or run."""
    step = max(snapshots.steps(training.out), default=None)
    if step is None:
        return None
    with suppress(GlassformerError, BusyError, OSError):  # it may be on its way out: too many are thinned
        key = ("watched", str(training.out), step)
        return loading.compute(key, lambda: _latest(training, step), nbytes=lambda one: 9 * one.weights.size)
    return None


def _latest(training: Training, step: int) -> LatestRun:
    folder = training.out.with_name(snapshots.at_step(training.out.name, step))
    checkpoint = load(folder, inside=training.folder)
    source = checkpoint.card.first_example()
    trace = checkpoint.run(checkpoint.query(source))
    kind: Kind = "cross" if "cross" in trace.kinds else trace.kinds[0]
    layer = trace.maps(kind).shape[0] - 1
    maps, allowed = trace.maps(kind)[layer], trace.mask(kind)
    head = int(entropy(maps).mean(axis=-1).argmin())
    axes = sides(VisibleTrace(trace, View()), kind)
    return LatestRun(step, kind, layer, head, maps[head], allowed, axes, source, trace.output_text)


def latest_map(found: LatestRun) -> Spec:
    """The map, and above it what was written at which step."""
    title = say(
        "Step {step:,}: “{source}” becomes “{output}”", step=found.step, source=found.source, output=found.output
    )
    return heatmap_spec(
        found.weights,
        queries=found.axes.queries,
        keys=found.axes.keys,
        title=title,
        note=head_of_kind(found.kind, found.layer, found.head),
        query_axis=found.axes.query_axis,
        key_axis=found.axes.key_axis,
        allowed=found.allowed,
    )


# It has no picture of a run: what it shows is of a process.
WATCH: Final[Part[Any]] = TRAINING.part("watch", lambda run: None, of_sentence=False)


def losses(scene: GrowingCurve) -> Spec:
    """The loss in training and on the dev pairs, and how many outputs are right, on an axis of its own."""
    top = max((loss for _, loss in (*scene.training, *scene.dev) if np.isfinite(loss)), default=1.0)
    scales = [Scale(say("Loss (nats per token)"), {"range": [0, 1.08 * top]})]
    series = [
        _series(say("Training loss"), scene.training, _LINE, "lines", _NATS),
        _series(say("Dev loss"), scene.dev, _DEV, "lines+markers", _NATS),
    ]
    if scene.n_pieces is not None:
        chance, look = math.log(scene.n_pieces), stroke(MARK_COLOR, 1, "dashdot")
        name = say("guessing: ln {n}", n=scene.n_pieces)
        series.append(_series(name, [(0, chance), (scene.steps, chance)], look, "lines", _NATS))
    if scene.exact:
        right = {"overlaying": "y", "side": "right", "range": [0, 108], "showgrid": False, "dtick": 25}
        scales.append(Scale(say("Exact (%)"), right))
        percent = [(step, 100 * share) for step, share in scene.exact]
        series.append(_series(say("Exact (%)"), percent, _EXACT, "lines+markers", "%{y:.0f} %", scale=1))
    axis = {"range": [0, max(scene.steps, 1)], "tickformat": ",d"}
    across = Places(say("Training step"), [], say("step {n}", n="%{x:,}"), axis)
    spec = lines(say("Loss so far"), across, scales, series, height=350, top=56)["spec"]
    spec["layout"]["legend"] |= NAMES_BELOW
    return spec


def _series(name: str, points: Points, look: Spec, kind: LineKind, number: str, *, scale: int = 0) -> Series:
    values = [value if np.isfinite(value) else np.nan for _, value in points]
    return Series(name, values, look, kind, number, at=[step for step, _ in points], scale=scale)


@dataclass(frozen=True)
class ModelComparison:
    """How far the models of a comparison are, each by what it is called."""

    losses: Mapping[str, Points]  # step and loss in training
    exact: Mapping[str, float]  # the last share of exact outputs on the dev pairs
    lengths: Mapping[str, Sequence[LengthScore]]

    @property
    def longest(self) -> int | None:
        """The longest source in training, as far as it was scored; None where that is not known."""
        seen = [one.length for scores in self.lengths.values() for one in scores if one.seen == 1]
        beyond = any(one.seen == 0 for scores in self.lengths.values() for one in scores)
        return max(seen) if seen and beyond else None


def compared(training: Training) -> ModelComparison:
    """How far all models of a training are."""
    losses, exact, lengths = dict[str, Points](), dict[str, float](), dict[str, Sequence[LengthScore]]()
    for model, out in training.outs.items():
        name, columns = label_of(model) or model, _columns(training, out)
        points = training.points.get(model) or list(
            zip(*(columns.get(one, ()) for one in ("step", "loss")), strict=True)
        )
        if points:
            losses[name] = points
        if columns.get("dev_exact"):
            exact[name] = columns["dev_exact"][-1]
        if scores := read_lengths(lengths_of(out)):
            lengths[name] = scores
    return ModelComparison(losses, exact, lengths)


HOW_TO_READ_LOSSES: Final = say(
    "Each line is the training loss of one model, the mean of its last 50 steps; all learn from the same pairs in the "
    "same order. Compare it with the exact outputs: a model that sees what it has to predict has a low loss in vain. A "
    "line that leaves the chart at the top has diverged."
)
HOW_TO_READ_LENGTHS: Final = say(
    "Exact outputs are written by the model alone; for the loss it reads each right token before it predicts the next. "
    "Every model could read these lengths: its limit is beyond them."
)
_HALF: Final = 0.5


def compared_losses(scene: ModelComparison) -> Spec:
    """The training losses of all models."""
    across = Places(say("Training step"), [], say("step {n}", n="%{x:,}"), {"rangemode": "tozero", "tickformat": ",d"})
    top = 1.5 * max((points[0][1] for points in scene.losses.values()), default=0.0)
    diverges = any(loss > top for points in scene.losses.values() for _, loss in points)  # and flattens all others
    scale = Scale(say("Loss (nats per token)"), {"range": [0, top]} if diverges else {"rangemode": "tozero"})
    return side_by_side_spec(say("Training loss, side by side"), across, scale, scene.losses, _NATS)


def compared_lengths(scene: ModelComparison, *, exact: bool) -> Spec:
    """The exact outputs, or the losses, of all models by the length of the source."""
    across = Places(say("Tokens of the source"), [], say("{n} tokens", n="%{x}"))
    seen = None if scene.longest is None else scene.longest + 0.5
    found = {
        name: [(one.length, 100 * one.exact if exact else one.loss) for one in scores]
        for name, scores in scene.lengths.items()
    }
    if exact:
        scale = Scale(say("Exact (%)"), {"range": [-4, 108], "dtick": 25})
        return side_by_side_spec(say("Exact outputs by length"), across, scale, found, "%{y:.0f} %", seen=seen)
    scale = Scale(say("Loss (nats per token)"), {"rangemode": "tozero"})
    return side_by_side_spec(say("Loss by length"), across, scale, found, _NATS, seen=seen)


def reach(scores: Sequence[LengthScore]) -> int:
    """The length up to which at least half of the outputs are exact at every length; 0 if not at the first."""
    fails = [i for i, one in enumerate(scores) if one.exact < _HALF]
    return scores[-1].length if not fails else scores[fails[0] - 1].length if fails[0] else 0


def compared_said(scene: ModelComparison) -> Iterator[str]:
    """The models of a comparison, in sentences."""
    if scene.exact:
        each = [say("{model} {share:.0%}", model=name, share=share) for name, share in scene.exact.items()]
        yield say("Exact outputs on the dev pairs: {each}.", each=joined(", ", each))
    if scene.lengths:
        far = [say("{model} {length}", model=name, length=reach(scores)) for name, scores in scene.lengths.items()]
        yield say("Up to this many tokens, at least half of the outputs are exact: {each}.", each=joined(", ", far))
    if scene.longest is not None:
        yield say("The longest source in training has {n} tokens.", n=scene.longest)


def told(scene: GrowingCurve) -> Iterator[str]:
    """Where a training is, in sentences."""
    if scene.training:
        step, loss = scene.training[-1]
        yield say("At step {step:,}, the training loss is {loss:.3g} nats per token.", step=step, loss=loss)
    if scene.dev:
        step, loss = scene.dev[-1]
        yield say("At step {step:,}, the dev loss is {loss:.3g} nats per token.", step=step, loss=loss)
    if scene.exact:
        yield say("{share:.0%} of the outputs on the dev pairs are exact.", share=scene.exact[-1][1])
