"""Doctor tests on pairs: loss against chance, by position, as reported; free-running; outputs pair by pair.

Each piece of a reference is predicted from those before it (teacher forcing): its loss, whether the likeliest piece was
right, and its place. A trained model predicts far better than chance, equally well at both ends of a text, writes about
as well as it predicts, and has about the loss that its training reported.

Source: Bengio et al. (2015), "Scheduled Sampling for Sequence Prediction with Recurrent Neural Networks", for texts
that are given against texts that are written.

Shapes: T target tokens, D d_model, V target vocabulary.
"""

import math
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from glassformer.extensions.doctor.library.context import DoctorTest, ExaminationContext, Texts, pairs_that_fit, read
from glassformer.extensions.doctor.library.findings import (
    MOST_OF_CHANCE,
    NO_OUTPUT,
    DoctorTestResult,
    NotTestable,
    PageTarget,
    Verdict,
    at_most,
)
from glassformer.extensions.doctor.library.output_tests import FEW, outputs
from glassformer.extensions.doctor.library.output_tests import TESTS as OUTPUTS
from transformer.analysis.losses import MASKS, SampleLoss, loss_of
from transformer.analysis.significance import POOR
from transformer.checkpoint.curve import load_curve
from transformer.errors import CheckpointError, GlassformerError
from transformer.i18n import Sentence, say
from transformer.runs.distribution import ROWS, logits_of
from transformer.runs.trace import Trace

REPORTED_GAP = 0.15
"""Nats a piece by which the loss may be above what the training reported; where that is more, as much again."""
LATER_WORSE = 2.0
"""Nats a piece."""
GAP = 0.5
SURE = 1.25  # of the loss of guessing; above, the model is sure of what is wrong
FEW_PIECES = 20
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


def pairs_of(patient: ExaminationContext) -> tuple[Pair, ...]:
    """The pairs of a patient, the worst first; none if it has none, or writes nothing."""
    return patient.once(_pairs)


def _pairs(patient: ExaminationContext) -> tuple[Pair, ...]:
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
    pairs = [one for one in pairs_of(patient) if one.loss is not None]
    return (
        PageTarget(page="forcing", source=pairs[0].source, reference=pairs[0].right)
        if pairs
        else PageTarget(page="forcing")
    )


_NO_PAIRS: Sentence = say(
    "This was not tested because there are no pairs. Provide some: each pair is a source with its correct output."
)
_NO_LOSS: Sentence = say("This model does not generate text and has no MLM head, so no loss can be computed.")
_NOT_READ: Sentence = say("This model could not read the pairs.")


@dataclass(frozen=True, eq=False)
class Guesses:
    """The pieces of all pairs, each guessed from those before it."""

    losses: np.ndarray  # in nats [N]
    hits: np.ndarray  # whether the likeliest piece was the right one [N]
    places: np.ndarray  # where in its target it stood, from 0 at the first piece to 1 at the last [N]


def guesses(patient: ExaminationContext) -> Guesses:
    """All guesses; `NotTestable` where no pair could be read."""
    return patient.once(_guesses)


def _guesses(patient: ExaminationContext) -> Guesses:
    parts = []
    for row in pairs_that_fit(patient):
        patient.pause()
        with suppress(GlassformerError):
            parts.append(_of_row(patient, row))
    losses, hits, places = np.concatenate(parts, axis=1) if parts else np.zeros((3, 0))
    if not (np.isfinite(losses).all() and losses.size):
        raise NotTestable(_NOT_READ)
    return Guesses(losses, hits, places)


@torch.inference_mode()
def _of_row(patient: ExaminationContext, row: SampleLoss) -> np.ndarray:
    """Loss, hit and place of each piece that counts [3, N]."""
    wanted, source = torch.tensor(row.target, device=patient.model.device), torch.tensor([row.source])
    before = [patient.config.decoder_start_id, *row.target[:-1]]
    hidden = read(patient, Texts(source, torch.tensor([before]) if patient.anatomy.reads else source))
    pairs = zip(logits_of(patient.model, hidden[0, row.first :]), wanted[row.first :].split(ROWS), strict=True)
    losses, hits = [], []
    for logits, ids in pairs:
        losses.append(-logits.log_softmax(dim=-1).gather(1, ids[:, None])[:, 0])
        hits.append((logits.argmax(dim=-1) == ids).float())
    loss, hit = torch.cat(losses), torch.cat(hits)
    return np.stack([loss.numpy(force=True), hit.numpy(force=True), np.linspace(0, 1, len(loss))])


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
    found = guesses(patient)
    judged = _judged(patient, float(found.losses.mean()), found)
    if not samples.targets and judged.verdict != "well":
        raise NotTestable(_NO_PAIRS)
    return judged


def _judged(patient: ExaminationContext, mean: float, found: Guesses | None) -> DoctorTestResult:
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
        if found is None
        else say(
            "The loss is {loss:.2f} nats per token (perplexity {perplexity:,.1f}), and the likeliest token is "
            "right {share:.0%} of the time. Guessing would give a loss of {chance:.2f}.",
            loss=mean, perplexity=perplexity, share=float(found.hits.mean()), chance=chance,
        )
    )  # fmt: skip
    share = mean / chance if chance else 0.0
    if share < MOST_OF_CHANCE:
        return DoctorTestResult(verdict="well", number=share, said=said)
    shown = PageTarget(page="step") if found is None else worst(patient)
    meaning: Sentence | Literal[""] = _SURE if share >= SURE else ""
    return DoctorTestResult(
        verdict="broken" if share >= 1 else "look", number=share, said=said, meaning=meaning, shown=shown
    )


@DoctorTest(
    "behaviour",
    say("Late tokens are predicted as accurately as early ones"),
    threshold=LATER_WORSE,
    why=say(
        "This is how much the loss rises from the first half of a text to the second, in nats per token. The more "
        "of a text is known, the easier it is to continue, so in a healthy model the loss falls or stays the same. "
        "Even with only a few sentences, a rise of {most:g} does not happen by chance.",
        most=LATER_WORSE,
    ),
    causes=say(
        "The texts are longer than in training, learned positions were never trained that far out, positions start "
        "from a different number than in training, or the attention window is too narrow."
    ),
)
def loss_by_position(patient: ExaminationContext) -> DoctorTestResult:
    """Whether pieces late in a text are guessed as well as early ones."""
    found = _of_pairs(patient)
    inner = found.places < 1 if patient.anatomy.reads else found.places <= 1  # the end mark has a test of its own
    halves = [found.losses[inner & one] for one in (found.places < 0.5, found.places >= 0.5)]
    if not all(map(len, halves)):
        raise NotTestable("The references are too short to compare their halves.")
    early, late = (float(one.mean()) for one in halves)
    said = say(
        "The perplexity is {early:,.1f} in the first half of the references and {late:,.1f} in the second.",
        early=math.exp(min(early, 50)), late=math.exp(min(late, 50)),
    )  # fmt: skip
    if late - early < LATER_WORSE:
        return DoctorTestResult(verdict="well", number=late - early, said=said)
    return DoctorTestResult(
        verdict="look", number=late - early, said=said, shown=PageTarget(page="positions", panel="table")
    )


@DoctorTest(
    "behaviour",
    say("The model does as well when it writes as when it predicts the reference"),
    threshold=GAP,
    why=say(
        "This is the share of reference tokens that the model predicts correctly, minus the share of tokens that "
        "its own outputs have in common with the references, both on the same pairs. In the shipped checkpoints, "
        "this difference is at most {most:g}.",
        most=at_most("free_running"),
    ),
    meaning=say(
        "The model does well when it is given the right text so far, and badly when it has to write that text "
        "itself. Its training loss therefore says nothing about its outputs."
    ),
    causes=say(
        "Decoding differs from training: a different start id, for example, or tokens that the decoder is given and "
        "never learnt to write."
    ),
)
def free_running(patient: ExaminationContext) -> DoctorTestResult:
    """Whether the model writes about as well as it guesses."""
    found, written = _of_pairs(patient), [one for one in outputs(patient) if one.wanted]
    if not written:
        raise NotTestable(_NOT_READ)
    right = float(found.hits.mean())
    shared = []  # the share of pieces that two texts have in common, wherever they stand: their F1
    for one in written:
        wanted = patient.checkpoint.tgt_tokenizer.encode(one.wanted or "").ids
        shared.append(2 * (Counter(one.ids) & Counter(wanted)).total() / max(1, len(one.ids) + len(wanted)))
    gap = right - sum(shared) / len(shared)
    said = say(
        "Given the text before each token, the model predicts {guessed:.0%} of the reference tokens correctly. Its "
        "own outputs share {written:.0%} of their tokens with the references.",
        guessed=right, written=right - gap,
    )  # fmt: skip
    if gap < GAP:
        return DoctorTestResult(verdict="well", number=gap, said=said)
    return DoctorTestResult(verdict="look", number=gap, said=said, shown=PageTarget(page="masks", panel="checks"))


def _of_pairs(patient: ExaminationContext) -> Guesses:
    """The guesses of pairs that the model knows; `NotTestable` where there are none, or they say nothing."""
    if not patient.anatomy.writes:
        if patient.anatomy.fills:
            raise NotTestable(NO_OUTPUT)
        raise NotTestable(_NO_LOSS)
    if not patient.samples.targets:
        raise NotTestable(_NO_PAIRS)
    found = guesses(patient)
    if not float(found.losses.mean()) < MOST_OF_CHANCE * math.log(len(patient.model.output_weight)):
        raise NotTestable("Predictions are hardly better than chance at any position.")
    if len(found.losses) < FEW_PIECES:
        raise NotTestable("The pairs have fewer than {n} tokens in total. Provide more pairs.", n=FEW_PIECES)
    return found


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
    whole = [i for i, text in enumerate(patient.samples.sources) if not any(mask in text for mask in MASKS)]
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
    others = [one.measure(patient) for one in (*OUTPUTS, free_running)] if reads else []
    bad = len(found) >= FEW and any(one.verdict in ("broken", "look") for one in (guessed, *others))
    poor = reads and (guessed.number or 0.0) >= POOR
    verdict: Verdict = "broken" if bad else "look" if poor else "not_applicable"
    headline: Sentence | Literal[""] = say("None of its {n} outputs is right.", n=len(found)) if bad else ""
    return DoctorTestResult(verdict=verdict, number=0.0, said=said, headline=headline, shown=worst(patient))


TESTS = (loss, loss_by_position, free_running, right, reported)
