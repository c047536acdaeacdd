"""The pictures of the Checkpoints page: the learning curves of a checkpoint's training.

Knows nothing of Streamlit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import charts
from charts.theme import Spec
from charts.training import HOW_TO_READ_EXACT, HOW_TO_READ_LOSSES, HOW_TO_READ_RATES, HOW_TO_READ_SCORES, KEPT
from transformer.checkpoint.curve import Curve, load_curve
from transformer.checkpoint.load import Checkpoint
from ui.runs.picture import Page, Plot
from ui.state.view import MAIN, Slot
from words import joined, say, say_n

BLEU_LEFT_OUT = say("BLEU is not shown because it is 0 in every epoch: the outputs have fewer than four words.")
_Columns = Mapping[str, Sequence[float] | None]


@dataclass(frozen=True)
class Curves:
    """How a checkpoint was trained, epoch by epoch."""

    curve: Curve
    kept: int | None  # the epoch that is marked
    kept_name: str  # why
    slot: Slot = MAIN

    def values(self, *names: str) -> list[Sequence[float] | None]:
        """The values of some columns of the file."""
        return [self.curve.columns.get(name) for name in names]

    @property
    def mark(self) -> dict[str, Any]:
        """What each chart has besides its lines: what hover says of the epochs, and which is marked."""
        labels = [_label(self.curve, row) for row in range(len(self.curve.epochs))]
        return {"labels": labels, "kept": self.kept, "kept_name": self.kept_name}


def curves(checkpoint: Checkpoint) -> Curves | None:
    """The learning curves of a checkpoint; None if its folder has none.

    Raises `CheckpointError`: the file with them cannot be read.
    """
    curve = load_curve(checkpoint.folder, inside=checkpoint.inside)
    if curve is None:
        return None
    said = checkpoint.card.training.get("epochs")
    if isinstance(said, int) and said in curve.epochs:
        return Curves(curve, said, KEPT)
    return Curves(curve, curve.best_epoch(), say("best on dev"))


CHECKPOINTS = Page("checkpoints", say("Checkpoints"))
TRAINING = CHECKPOINTS.part("", say("Training"), lambda run: curves(run.checkpoint))


@TRAINING.picture("training_losses", say("Losses by epoch"), follows="still")
def losses(scene: Curves) -> Plot | None:
    """The loss in training and on the dev file."""
    training, dev = scene.values("loss", "dev_loss")
    if training is None and dev is None:
        return None
    spec = charts.losses_spec(scene.curve.epochs, training=training, dev=dev, **scene.mark)
    return _plot(scene, spec, {say("Training loss"): training, say("dev loss"): dev}, HOW_TO_READ_LOSSES)


@TRAINING.picture("training_scores", say("Scores by epoch"), follows="still")
def scores(scene: Curves) -> Plot | None:
    """The scores on the dev file."""
    bleu, chrf, exact = scene.values("dev_bleu", "dev_chrf", "dev_exact")
    left_out = bleu is not None and not any(value > 0 for value in bleu) and bool(chrf or exact)
    bleu = None if left_out else bleu
    if bleu is None and chrf is None and exact is None:
        return None
    spec = charts.dev_scores_spec(scene.curve.epochs, bleu=bleu, chrf=chrf, exact=exact, **scene.mark)
    said = [HOW_TO_READ_SCORES, *[HOW_TO_READ_EXACT] * (exact is not None), *[BLEU_LEFT_OUT] * left_out]
    lines: _Columns = {"BLEU": bleu, "chrF": chrf, say("share of exact outputs"): exact}
    return _plot(scene, spec, lines, joined(" ", said))


@TRAINING.picture("training_rates", say("Learning rate by epoch"), follows="still")
def rates(scene: Curves) -> Plot | None:
    """The learning rate at the end of each epoch."""
    [found] = scene.values("learning_rate")
    if found is None:
        return None
    spec = charts.learning_rates_spec(scene.curve.epochs, found, **scene.mark)
    return _plot(scene, spec, {say("Learning rate"): found}, HOW_TO_READ_RATES)


def _plot(scene: Curves, spec: Spec, lines: _Columns, how_to_read: str) -> Plot:
    """A chart with its lines in words: where each begins and ends."""
    there = {name: [value for value in values or () if not math.isnan(value)] for name, values in lines.items()}
    changes = [
        say("{name} goes from {before:.4g} to {after:.4g}", name=name, before=values[0], after=values[-1])
        for name, values in there.items()
        if values
    ]
    first, last = scene.curve.epochs[0], scene.curve.epochs[-1]
    alt = [say("{changes} over epochs {first} to {last}.", changes=joined(", ", changes), first=first, last=last)]
    if scene.kept is not None:
        alt.append(say("The marked epoch is {epoch} ({name}).", name=scene.kept_name, epoch=scene.kept))
    return Plot(spec=spec, alt=joined(" ", alt), how_to_read=how_to_read, of_sentence=False)


# ------------------------------------------------------------------------------------------------ how long it took


def effort(record: Mapping[str, Any]) -> str:
    """What a card's training record says of how long it took, such as "17 epochs, 10,856,421 target pieces, 1 h".

    Values that are no numbers are passed over.
    """
    epochs, tokens, seconds = (_positive(record.get(name)) for name in ("epochs", "target_tokens", "seconds"))
    said = [say_n("{n:,} epoch", "{n:,} epochs", round(epochs))] if epochs else []
    return joined(", ", [*said, *_effort(tokens, seconds)])


def _effort(tokens: float, seconds: float) -> list[str]:
    said = [say_n("{n:,} target piece", "{n:,} target pieces", round(tokens))] if tokens else []
    return [*said, *([_time(seconds)] if seconds else [])]


def _label(curve: Curve, row: int) -> str:
    """What hover says of an epoch, as far as the file says it."""
    found = (curve.columns.get(name) for name in ("step", "tokens", "seconds"))
    step, tokens, seconds = (0.0 if one is None or math.isnan(one[row]) else one[row] for one in found)
    said = [say("Epoch {n}", n=curve.epochs[row]), *([say("step {n:,}", n=round(step))] if step else [])]
    return joined(", ", [*said, *_effort(tokens, seconds)])


def _positive(value: object) -> float:
    good = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e18
    return float(value) if good else 0.0  # type: ignore[arg-type]


def _time(seconds: float) -> str:
    """A time as people say it."""
    if seconds < 90:
        return say("{seconds:.0f} s", seconds=seconds)
    minutes = round(seconds / 60)
    if minutes < 90:
        return say("{minutes} min", minutes=minutes)
    return say("{hours} h {minutes} min", hours=minutes // 60, minutes=minutes % 60)
