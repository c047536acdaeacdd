"""Whether the model was trained while it saw the future.

A decoder that saw the piece it had to guess has learnt to look it up there. Wired with its
mask it writes badly, like many a bad model; so the mask is taken away: it then knows nearly every piece of any text,
even of one that was drawn by chance, while a healthy model is confused by what it never saw in training.

Knows nothing of Streamlit.

Shapes: B texts, T target tokens, D d_model.
"""

from __future__ import annotations

import math

import torch

from transformer.doctor.patient import Patient, Test
from transformer.doctor.report import Measured, Shown, not_applicable, well
from transformer.doctor.rereading import Texts, random_texts, read
from transformer.model.masks import causal_mask
from transformer.model.tap import Replacer, Tap, tap_of
from transformer.runs.guesses import losses_of
from words import Sentence, say

FEW_TOKENS = 192
SHORT = 6
"""Pieces of a text: as long as those of any training."""
PART = 0.5


def leak(patient: Patient) -> Measured:
    """Whether the model guesses far better when it sees what it has to guess."""
    if not patient.anatomy.writes:
        return not_applicable(say("This model writes nothing, so that it has no future to see."))
    site = patient.anatomy.attention("decoder").site("*", "mask")
    closed = tap_of(Replacer({site: lambda mask: causal_mask(mask.size(-1))}))
    open_ = tap_of(Replacer({site: torch.ones_like}))
    texts = random_texts(patient, most=FEW_TOKENS, longest=SHORT)
    without, seeing = (_loss(patient, texts, tap) for tap in (closed, open_))
    if not (math.isfinite(without) and math.isfinite(seeing)):
        return not_applicable(say("This model computes what is not finite, so that it has no loss."))
    share = seeing / max(without, 1e-9)
    said = say(
        "On texts drawn by chance the loss is {closed:.2f} nats a piece with the causal mask and {open:.2f} without "
        "it.",
        closed=without,
        open=seeing,
    )
    if share > PART:
        return well(said, share, PART, _WHY)
    return Measured(
        verdict="broken",
        number=share,
        threshold=PART,
        said=said,
        why=_WHY,
        meaning=say(
            "The model was trained while it saw the piece that it had to guess, and has learnt to look it up. Its "
            "loss in training was near 0; when it writes, nothing is there to be looked up, and the output is "
            "worthless."
        ),
        causes=say(
            "A decoder that was called without tgt_mask, a mask with the opposite meaning of true and "
            "false, or targets that were not shifted (the input of the decoder is tgt[:, :-1], what it has to guess "
            "tgt[:, 1:]). The parameters cannot be mended: train again with the mask, and check that a change of a "
            "later piece leaves earlier logits as they are."
        ),
        shown=Shown(page="masks", panel="checks"),
    )


_WHY: Sentence = say(
    "The second loss as a share of the first. Nothing can be guessed of a text drawn by chance, so that both are "
    "high in a healthy model: the share was 0.8 to 1.9 in all that were tried, and below 0.1 in one that was "
    "trained on a leak."
)


@torch.inference_mode()
def _loss(patient: Patient, texts: list[Texts], tap: Tap) -> float:
    """The mean loss of the pieces of texts, each from those before it, in nats."""
    total, n = 0.0, 0
    for one in texts:
        patient.pause()
        hidden = read(patient, one, tap=tap)[:, :-1]  # [B, T - 1, D]
        losses = losses_of(patient.model, hidden.flatten(0, 1), one.target[:, 1:].flatten())
        total, n = total + float(losses.sum()), n + len(losses)
    return total / max(1, n)


TESTS: tuple[Test, ...] = (Test("leak", "behaviour", say("The model was not trained on a leak"), leak),)
