"""What the model makes of each pair, and whether it knows them as well as its training reported.

Knows nothing of Streamlit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from transformer.checkpoint.curve import load_curve
from transformer.doctor.patient import Patient, Test
from transformer.doctor.report import Measured, Shown, not_applicable, well
from transformer.errors import CheckpointError, GlassformerError
from transformer.runs.trace import Trace
from transformer.trying.losses import loss_of
from words import Sentence, say

GAP = 0.15
"""Nats a piece by which the loss may be above what the training reported; where that is more, as much again."""
COLUMNS: tuple[Sentence, ...] = (say("Source"), say("Right"), say("Written"), say("Loss"))
"""Of a table of pairs."""


@dataclass(frozen=True)
class Pair:
    """One pair."""

    source: str  # the text
    right: str  # what should come out
    written: str  # what the model wrote; empty if it could not be run
    loss: float | None  # mean of a piece of `right`, in nats; None if it could not be read
    is_right: bool  # whether the model wrote what is right


def pairs_of(patient: Patient) -> tuple[Pair, ...]:
    """The pairs of a patient, the worst first; none if it has none, or writes nothing."""
    return patient.once(_pairs)


def _pairs(patient: Patient) -> tuple[Pair, ...]:
    samples = patient.samples
    if not samples.targets or not patient.anatomy.writes:
        return ()
    found = []
    for i, (source, right) in enumerate(zip(samples.sources, samples.targets, strict=True)):
        patient.pause()
        run = patient.runs[i]
        written = run.output_text if isinstance(run, Trace) else ""
        found.append(Pair(source, right, written, _loss(patient, i), _bare(written) == _bare(right)))
    return tuple(sorted(found, key=lambda one: (one.loss is not None, -(one.loss or 0.0))))


def _loss(patient: Patient, i: int) -> float | None:
    try:
        mean = loss_of(patient.checkpoint, patient.samples.only([i])).mean
    except (GlassformerError, IndexError, RuntimeError):  # it does not fit, or the model is damaged
        return None
    return mean if math.isfinite(mean) else None


def _bare(text: str) -> str:
    return " ".join(text.split())


def worst(patient: Patient) -> Shown:
    """Teacher forcing of the pair that the model knows worst; the page alone if there is none."""
    pairs = [one for one in pairs_of(patient) if one.loss is not None]
    return Shown(page="forcing", source=pairs[0].source, reference=pairs[0].right) if pairs else Shown(page="forcing")


def reported(patient: Patient) -> Measured:
    """Whether the loss on the pairs is about that of the training."""
    was = patient.reported if patient.reported is not None else _of_curve(patient)
    if was is None:
        return not_applicable(say("Nobody says what the training reported: give its loss on texts it had not seen."))
    if not patient.samples.targets and (patient.anatomy.writes or not len(patient.samples)):
        return not_applicable(say("There are no pairs whose loss could be compared with that of the training."))
    losses = loss_of(patient.checkpoint, patient.samples)
    gap = losses.mean - was
    needed = max(GAP, was)
    said = say(
        "On the pairs the loss is {loss:.3g} nats a piece; the training reported {was:.3g}.",
        loss=losses.mean,
        was=was,
    )
    why = say(
        "The difference. On pairs of the same kind a model that is opened as it was trained has about the loss that "
        "its training reported; up to twice as much may be the pairs."
    )
    if gap < needed:
        return well(said, gap, needed, why)
    return Measured(
        verdict="look",
        number=gap,
        threshold=needed,
        said=said,
        why=why,
        meaning=say(
            "Something is computed here in another way than in the training, the parameters are not those that the "
            "training ended with, or the pairs are of another kind."
        ),
        causes=say(
            "A setting that the file does not say (heads, scale of the scores, norms, start id, marks around source "
            "and target), the mask of the training, another tokenizer, a tensor that was not loaded; or dropout and "
            "label smoothing in the reported loss. Look at the other findings first."
        ),
        shown=worst(patient),
    )


def _of_curve(patient: Patient) -> float | None:
    """The loss on texts that were not trained on, of the epoch that was kept."""
    checkpoint = patient.checkpoint
    try:
        curve = load_curve(checkpoint.folder, inside=checkpoint.inside)
    except (CheckpointError, OSError):
        return None
    best = None if curve is None else curve.best_epoch()
    if curve is None or best is None or "dev_loss" not in curve.columns:
        return None
    found = curve.columns["dev_loss"][curve.epochs.index(best)]
    return found if math.isfinite(found) else None


TESTS: tuple[Test, ...] = (Test("reported", "behaviour", say("The loss is the one of the training"), reported),)
