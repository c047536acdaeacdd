"""Doctor tests on pairs: loss against chance and as reported; outputs pair by pair.

Each piece of a reference is predicted from those before it (teacher forcing): its loss, and whether the likeliest piece
was right. A trained model predicts far better than chance, and has about the loss that its training reported.

Shapes: T target tokens, D d_model, V target vocabulary.
"""

import math
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from glassformer.extensions.doctor.library.context import (
    DoctorTest,
    ExaminationContext,
    Texts,
    once,
    pairs_that_fit,
    read,
)
from glassformer.extensions.doctor.library.findings import (
    MOST_OF_CHANCE,
    NO_OUTPUT,
    DoctorTestResult,
    NotTestable,
    PageTarget,
    Verdict,
)
from glassformer.extensions.doctor.library.output_tests import FEW, outputs
from glassformer.extensions.doctor.library.output_tests import TESTS as OUTPUTS
from transformer.analysis.hidden_pieces import MASK_PIECES
from transformer.analysis.losses import SampleLoss, loss_of
from transformer.analysis.significance import POOR
from transformer.checkpoint.curve import load_curve
from transformer.errors import CheckpointError, GlassformerError
from transformer.i18n import Sentence, say
from transformer.runs.distribution import logits_of, losses_of
from transformer.runs.trace import Trace

REPORTED_GAP = 0.15
"""Nats a piece by which the loss may be above what the training reported; where that is more, as much again."""
SURE = 1.25  # of the loss of guessing; above, the model is sure of what is wrong
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


@once
def pairs_of(patient: ExaminationContext) -> tuple[Pair, ...]:
    """The pairs of a patient, the worst first; none if it has none, or writes nothing."""
    samples = patient.samples
    if not samples.targets or not patient.anatomy.writes:
        return ()
    found = []
    for i, (source, right) in enumerate(zip(samples.sources, samples.targets, strict=True)):
        patient.pause()
        run = patient.runs[i]
        written = run.output_text if isinstance(run, Trace) else ""
        found.append(Pair(source, right, written, _loss(patient, i), written.split() == right.split()))
    return tuple(sorted(found, key=lambda one: (one.loss is not None, -(one.loss or 0.0))))


def _loss(patient: ExaminationContext, i: int) -> float | None:
    try:
        mean = loss_of(patient.checkpoint, patient.samples.only([i])).mean
    except (GlassformerError, IndexError, RuntimeError):  # it does not fit, or the model is damaged
        return None
    return mean if math.isfinite(mean) else None


def worst(patient: ExaminationContext) -> PageTarget:
    """Teacher forcing of the pair that the model knows worst; the page alone if there is none."""
    known = [(one.source, one.right) for one in pairs_of(patient) if one.loss is not None]
    source, reference = known[0] if known else (None, None)
    return PageTarget(page="forcing", source=source, reference=reference)


_NO_PAIRS: Sentence = say(
    "This was not tested because there are no pairs. Provide some: each pair is a source with its correct output."
)
_NO_LOSS: Sentence = say("This model does not generate text and has no MLM head, so no loss can be computed.")
_NOT_READ: Sentence = say("This model could not read the pairs.")


@once
def guesses(patient: ExaminationContext) -> np.ndarray:
    """Loss of each piece, guessed from those before it, and hit [2, N]; `NotTestable` where no pair could be read."""
    parts = []
    for row in pairs_that_fit(patient):
        patient.pause()
        with suppress(GlassformerError):
            parts.append(_of_row(patient, row))
    found = np.concatenate(parts, axis=1) if parts else np.zeros((2, 0))
    if not (found.size and np.isfinite(found).all()):
        raise NotTestable(_NOT_READ)
    return found


@torch.inference_mode()
def _of_row(patient: ExaminationContext, row: SampleLoss) -> np.ndarray:
    """Loss and hit of each piece that counts [2, N]."""
    wanted, source = torch.tensor(row.target, device=patient.model.device), torch.tensor([row.source])
    before = [patient.config.decoder_start_id, *row.target[:-1]]
    hidden = read(patient, Texts(source, torch.tensor([before]) if patient.anatomy.reads else source))[0, row.first :]
    best = torch.cat([logits.argmax(dim=-1) for logits in logits_of(patient.model, hidden)])
    wanted = wanted[row.first :]
    return torch.stack((losses_of(patient.model, hidden, wanted), (best == wanted).float().cpu())).numpy()


_SURE: Sentence = say(
    "The model is sure of its predictions, and they are wrong: pure guessing would have a lower loss. Usually, it "
    "was trained for something else than these texts ask for, or it now computes something else than in training."
)


@DoctorTest(
    "behaviour",
    say("Predictions on the pairs are far better than chance"),
    threshold=MOST_OF_CHANCE,
    why=say(
        "This is the model's loss divided by the loss of pure guessing, where all tokens are equally likely. A "
        "model that has learnt only the frequencies of the tokens reaches about {share:g}.",
        share=MOST_OF_CHANCE,
    ),
    meaning=say("On these texts, the model does not do what it was trained for, or it was hardly trained at all."),
    causes=say(
        "The marks around source and target (such as an end mark after the source, or the start id), the way the "
        "targets were shifted, the tokenizer or the task may differ from training. Some parameters may never have "
        "been trained or loaded. Compare the loss with the loss reported in training."
    ),
)  # fmt: skip
def loss(patient: ExaminationContext) -> DoctorTestResult:
    """Whether the loss on the pairs is far below that of guessing."""
    parts, samples = patient.anatomy, patient.samples
    if not parts.gives_logits:
        raise NotTestable(_NO_LOSS)
    if not samples.targets and ((parts.reads and parts.writes) or not len(samples)):
        raise NotTestable(_NO_PAIRS)
    if parts.fills:
        return _judged(patient, loss_of(patient.checkpoint, samples).mean if len(samples) else math.nan, None)
    mean, share = guesses(patient).mean(axis=1).tolist()
    judged = _judged(patient, mean, share)
    if not samples.targets and judged.verdict != "well":
        raise NotTestable(_NO_PAIRS)
    return judged


def _judged(patient: ExaminationContext, mean: float, right: float | None) -> DoctorTestResult:
    if not math.isfinite(mean):
        raise NotTestable(_NOT_READ)
    chance = math.log(len(patient.model.output_weight))
    perplexity = math.exp(min(mean, 50.0))
    said = (
        say(
            "The loss is {loss:.2f} nats per token (perplexity {perplexity:,.1f}); guessing would give a loss of "
            "{chance:.2f}.",
            loss=mean, perplexity=perplexity, chance=chance,
        )
        if right is None
        else say(
            "The loss is {loss:.2f} nats per token (perplexity {perplexity:,.1f}), and the likeliest token is "
            "right {share:.0%} of the time. Guessing would give a loss of {chance:.2f}.",
            loss=mean, perplexity=perplexity, share=right, chance=chance,
        )
    )  # fmt: skip
    share = mean / chance if chance else 0.0
    if share < MOST_OF_CHANCE:
        return DoctorTestResult(verdict="well", number=share, said=said)
    shown = PageTarget(page="step") if right is None else worst(patient)
    meaning: Sentence | Literal[""] = _SURE if share >= SURE else ""
    return DoctorTestResult(
        verdict="broken" if share >= 1 else "look", number=share, said=said, meaning=meaning, shown=shown
    )


@DoctorTest(
    "behaviour",
    say("The loss matches training"),
    why=say(
        "This is the loss on the pairs minus the loss reported in training. If the pairs are of the same kind and "
        "the model is opened with its training settings, the two losses are about equal. If the loss on the pairs "
        "is less than twice the reported loss, the choice of pairs alone may explain the difference."
    ),
    meaning=say(
        "Something is computed differently than in training, the parameters are not those from the end of "
        "training, or the pairs are of a different kind."
    ),
    causes=say(
        "A setting that the file does not state may be wrong (heads, scale of the scores, norms, start id, marks "
        "around source and target), the mask or the tokenizer may differ from training, or a tensor may not have "
        "been loaded. The reported loss may also include dropout and label smoothing. Look at the other findings "
        "first."
    ),
)
def reported(patient: ExaminationContext) -> DoctorTestResult:
    """Whether the loss on the pairs is about that of the training."""
    was = patient.reported if patient.reported is not None else _of_curve(patient)
    if was is None:
        raise NotTestable(
            "The loss reported in training is unknown. Provide the reported loss on texts that the model was not "
            "trained on."
        )
    if not patient.samples.targets and (patient.anatomy.writes or not len(patient.samples)):
        raise NotTestable(_NO_PAIRS)
    # A piece that the text already masks has no known answer.
    whole = [i for i, text in enumerate(patient.samples.sources) if not any(mask in text for mask in MASK_PIECES)]
    mean = loss_of(patient.checkpoint, patient.samples.only(whole) if whole else patient.samples).mean
    gap, needed = mean - was, max(REPORTED_GAP, was)
    said = say(
        "On the pairs, the loss is {loss:.3g} nats per token; the loss reported in training is {was:.3g}.",
        loss=mean,
        was=was,
    )
    if gap < needed:
        return DoctorTestResult(verdict="well", number=gap, threshold=needed, said=said)
    return DoctorTestResult(verdict="look", number=gap, threshold=needed, said=said, shown=worst(patient))


def _of_curve(patient: ExaminationContext) -> float | None:
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


@DoctorTest(
    "behaviour",
    say("Some outputs are right"),
    threshold=0.0,
    why=say(
        "This is the share of outputs that equal their references. Several outputs may be right for one source, so "
        "if none is equal, other tests decide: of the outputs and of the predictions."
    ),
)
def right(patient: ExaminationContext) -> DoctorTestResult:
    """Whether the model writes anything that is right, where other tests find what it does bad, too."""
    if not patient.anatomy.writes:
        raise NotTestable(NO_OUTPUT)
    if not patient.samples.targets:
        raise NotTestable(_NO_PAIRS)
    found = [one for one in outputs(patient) if one.wanted]
    if not found:
        raise NotTestable(_NOT_READ)
    n = sum(one.text.split() == (one.wanted or "").split() for one in found)
    said = say("Outputs that equal their references: {right} of {n}.", right=n, n=len(found))
    if n:
        return DoctorTestResult(verdict="well", number=n / len(found), said=said)
    # A decoder-only model may continue in any way, up to its maximum length.
    reads, guessed = patient.anatomy.reads, loss.measure(patient)
    others = [one.measure(patient) for one in OUTPUTS] if reads else []
    bad = len(found) >= FEW and any(one.verdict in ("broken", "look") for one in (guessed, *others))
    poor = reads and (guessed.number or 0.0) >= POOR
    verdict: Verdict = "broken" if bad else "look" if poor else "not_applicable"
    headline: Sentence | Literal[""] = say("None of its {n} outputs is right.", n=len(found)) if bad else ""
    return DoctorTestResult(verdict=verdict, number=0.0, said=said, headline=headline, shown=worst(patient))


TESTS = (loss, right, reported)
