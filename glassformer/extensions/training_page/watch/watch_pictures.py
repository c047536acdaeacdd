"""Charts of a training in progress: loss so far, newest snapshot's map; `Watched`, which extensions draw."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from glassformer.charts.grammar import Kind as LineKind
from glassformer.charts.grammar import stroke
from glassformer.charts.heatmap import heatmap_spec
from glassformer.charts.marks import Places, Scale, Series, lines
from glassformer.charts.theme import GUIDE_COLOR, MARK_COLOR, NEUTRAL_COLOR, Spec
from glassformer.extensions.training_page import session_trainings
from glassformer.extensions.training_page.training_pictures import TRAINING
from glassformer.extensions.training_page.trainings import Training
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
from transformer.i18n import say
from transformer.model.anatomy import Kind

HOW_TO_READ = say(
    "The line is the loss of the last steps; the squares are the loss on the dev pairs, which are not trained on. "
    "The right edge is the end of the training."
)
HOW_TO_READ_LATEST = say(
    "The newest snapshot reads the first example. The map is that of the head of its last layer whose rows are the "
    "sharpest: which head that is may change from one snapshot to the next."
)
Points = Sequence[tuple[int, float]]
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


def growing(training: Training) -> GrowingCurve | None:
    """How far a training is; None before its first step."""
    now = training.progress()
    try:
        curve = load_curve(training.out, inside=training.folder)
    except CheckpointError:  # it is being written
        curve = None
    columns = {} if curve is None else curve.columns
    steps = [round(step) for step in columns.get("step", ())]
    entry = session_trainings.at(session_trainings.name_of(training))
    moments = loading.moments(entry)[0] if entry is not None else ()
    dev, exact = (_at_steps(steps, columns.get(name, ()), moments, name) for name in ("dev_loss", "dev_exact"))
    points = training.points
    if not points and not dev:
        return None
    last = max(now.steps, *(step for step, _ in (*points, *dev)))
    return GrowingCurve(tuple(points), tuple(dev), tuple(exact), last)


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
    nats = say("{number} nats", number="%{y:.3f}")
    series = [
        _series(say("Training loss"), scene.training, _LINE, "lines", nats),
        _series(say("Dev loss"), scene.dev, _DEV, "lines+markers", nats),
    ]
    if scene.exact:
        right = {"overlaying": "y", "side": "right", "range": [0, 108], "showgrid": False, "dtick": 25}
        scales.append(Scale(say("Exact (%)"), right))
        percent = [(step, 100 * share) for step, share in scene.exact]
        series.append(_series(say("Exact (%)"), percent, _EXACT, "lines+markers", "%{y:.0f} %", scale=1))
    axis = {"range": [0, max(scene.steps, 1)], "tickformat": ",d"}
    across = Places(say("Training step"), [], say("step {n}", n="%{x:,}"), axis)
    return lines(say("Loss so far"), across, scales, series, height=300, top=76)["spec"]


def _series(name: str, points: Points, look: Spec, kind: LineKind, number: str, *, scale: int = 0) -> Series:
    values = [value if np.isfinite(value) else np.nan for _, value in points]
    return Series(name, values, look, kind, number, at=[step for step, _ in points], scale=scale)


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
