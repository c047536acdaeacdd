"""The picture of a training that is under way: its loss so far.

Knows nothing of Streamlit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import charts
from charts.growing import HOW_TO_READ
from transformer.checkpoint.curve import load_curve
from transformer.checkpoint.snapshots import Moment
from transformer.errors import CheckpointError
from ui.runs import loading, own_trainings
from ui.runs.picture import Plot
from ui.server.trainings import Training
from ui.state.view import MAIN, Slot
from ui.training.training_pictures import TRAINING
from words import joined, say

Points = Sequence[tuple[int, float]]


@dataclass(frozen=True)
class Growing:
    """How far a training is."""

    training: Points  # step and loss
    dev: Points  # step and loss
    exact: Points  # step and share
    steps: int  # where it ends
    slot: Slot = MAIN


def growing(training: Training) -> Growing | None:
    """How far a training is; None before its first step."""
    now = training.progress()
    try:
        curve = load_curve(training.out, inside=training.folder)
    except CheckpointError:  # it is being written
        curve = None
    columns = {} if curve is None else curve.columns
    steps = [round(step) for step in columns.get("step", ())]
    entry = own_trainings.at(own_trainings.name_of(training))
    moments = loading.moments(entry)[0] if entry is not None else ()
    dev, exact = (_at_steps(steps, columns.get(name, ()), moments, name) for name in ("dev_loss", "dev_exact"))
    points = training.points
    if not points and not dev:
        return None
    last = max(now.steps, *(step for step, _ in (*points, *dev)))
    return Growing(tuple(points), tuple(dev), tuple(exact), last)


def _at_steps(steps: Sequence[int], values: Sequence[float], moments: Sequence[Moment], name: str) -> Points:
    """What was measured at the ends of epochs, and of snapshots on the first pairs alone."""
    found = {one.step: value for one in moments if (value := getattr(one, name)) is not None}
    return sorted({**found, **dict(zip(steps, values, strict=False))}.items())


def _of(run: Any) -> Growing | None:
    """The same of a run of a model that is trained here."""
    found = own_trainings.find(run.link.model)
    return None if found is None else growing(found)


WATCH = TRAINING.part("watch", say("Watch it learn"), _of, of_sentence=False)


@WATCH.picture("training_growing", say("Loss so far"), follows="still")
def losses(scene: Growing) -> Plot:
    """The loss in training and on the dev pairs, and how many outputs are right."""
    spec = charts.growing_losses_spec(
        scene.training, scene.dev, steps=scene.steps, exact=scene.exact, title=say("Loss so far")
    )
    return Plot(spec=spec, alt=joined(" ", told(scene)), how_to_read=HOW_TO_READ, of_sentence=False)


def told(scene: Growing) -> list[str]:
    """Where a training is, in sentences."""
    said: list[str] = []
    if scene.training:
        step, loss = scene.training[-1]
        said.append(say("At step {step:,}, the training loss is {loss:.3g} nats per piece.", step=step, loss=loss))
    if scene.dev:
        step, loss = scene.dev[-1]
        said.append(say("At step {step:,}, the dev loss is {loss:.3g} nats per piece.", step=step, loss=loss))
    if scene.exact:
        said.append(say("{share:.0%} of the outputs on the dev pairs are exact.", share=scene.exact[-1][1]))
    return said
