"""The chart of a training that is under way: its loss so far."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from glassformer.charts.theme import Spec
from glassformer.extensions.training_page import session_trainings
from glassformer.extensions.training_page.charts.growing import growing_losses_spec
from glassformer.extensions.training_page.training_pictures import TRAINING
from glassformer.extensions.training_page.trainings import Training
from glassformer.runs import loading
from glassformer.runs.picture import Part
from transformer.checkpoint.curve import load_curve
from transformer.checkpoint.snapshots import SnapshotInfo
from transformer.errors import CheckpointError
from transformer.i18n import say

Points = Sequence[tuple[int, float]]


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
    """What was measured at the ends of epochs, and of snapshots on the first pairs alone."""
    found = {one.step: value for one in moments if (value := getattr(one, name)) is not None}
    return sorted({**found, **dict(zip(steps, values, strict=False))}.items())


# It has no picture of a run: what it shows is of a process.
WATCH: Final[Part[Any]] = TRAINING.part("watch", lambda run: None, of_sentence=False)


def losses(scene: GrowingCurve) -> Spec:
    """The loss in training and on the dev pairs, and how many outputs are right."""
    return growing_losses_spec(
        scene.training, scene.dev, steps=scene.steps, exact=scene.exact, title=say("Loss so far")
    )


def told(scene: GrowingCurve) -> Iterator[str]:
    """Where a training is, in sentences."""
    if scene.training:
        step, loss = scene.training[-1]
        yield say("At step {step:,}, the training loss is {loss:.3g} nats per piece.", step=step, loss=loss)
    if scene.dev:
        step, loss = scene.dev[-1]
        yield say("At step {step:,}, the dev loss is {loss:.3g} nats per piece.", step=step, loss=loss)
    if scene.exact:
        yield say("{share:.0%} of the outputs on the dev pairs are exact.", share=scene.exact[-1][1])
