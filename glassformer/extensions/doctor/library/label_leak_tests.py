"""Doctor test for label leakage in training: no causal mask or a wrong one, or targets not shifted.

A decoder that saw the piece it had to predict has learnt to copy it. Wired correctly it writes badly, like many a bad
model. So it is wired as it may have been trained, and the losses on the same pairs are compared:

    no mask        each row sees all pieces of the output: alone, and in a batch with its padding open or closed
    in one layer   the same, in one decoder layer only
    one too many   each row sees the next piece, too
    not shifted    each row has read the very piece that it is to predict

In a batch, rows that are shorter than the longest have read their end mark and padding, too (`read_before`). A model
that knows the pairs only with such a wiring was trained with it. Without pairs it reads random texts: a leak may show
there, but its absence proves nothing, as the model has never seen such texts.

Shapes: B texts, T target tokens, D d_model, V target vocabulary.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import pad

from glassformer.extensions.doctor.library.context import (
    LEAK,
    DoctorTest,
    ExaminationContext,
    Texts,
    pairs_that_fit,
    random_texts,
    read,
)
from glassformer.extensions.doctor.library.findings import (
    MOST_OF_CHANCE,
    NO_OUTPUT,
    NOT_FINITE,
    DoctorTestResult,
    NotTestable,
    PageTarget,
    Verdict,
)
from transformer.analysis.losses import Loss, SampleLoss
from transformer.analysis.significance import surely_better
from transformer.i18n import Sentence, joined, say
from transformer.model.masks import causal_mask
from transformer.model.taps import Replacer, Tap, all_seen, tap_of
from transformer.runs.distribution import losses_of
from transformer.runs.reading import padded, read_before

FEW_TOKENS = 192
SHORT = 6
"""Pieces of a text that is drawn: as long as those of any training."""
PART = 0.5
KNOWN = 0.3
"""Share of the loss of guessing that may be left. Above, the model knows the pairs in no way, whichever is better."""
COPIED = 0.1
"""The same where a row predicts the piece that it has just read: with tied tables a model that is computed wrongly
may leave 0.25, as what it writes resembles what it read; one that was trained so copies to perfection."""
GAIN = 0.5
"""Nats a piece that are gained at least. A small model that knows its task has a loss near 0, of which half is
nothing."""
LEAST = 0.02
"""The same where one layer is compared with all of them: nats a piece that noise does not make."""
MOST_LAYERS = 12


@dataclass(frozen=True)
class Way:
    """A way in which a model may have been trained."""

    mask: Callable[[Tensor], Tensor]  # what decoder self-attention may see, in the place of the mask that there is
    width: float = 0  # of the padded batch that rows are read in, in lengths of the longest; 0: each is read alone
    layer: int | None = None  # where the mask is so; None: in all layers
    shifted: bool = True  # whether a row has to predict the piece after the one it has read; else that very piece
    # The losses, with the mask and with this wiring.
    said: Callable[[float, float], Sentence] = lambda closed, seeing: say(
        "On the pairs, the loss is {closed:.3g} nats per token with the causal mask and {open:.3g} without it.",
        closed=closed, open=seeing,
    )  # fmt: skip
    headline: Sentence | Literal[""] = ""  # what was wrong in the training
    line: Sentence | Literal[""] = ""  # which line of the code that is, and what is right there


HEALTHY = Way(lambda mask: causal_mask(mask.size(-1), device=mask.device))
OPEN = Way(
    torch.ones_like,
    headline=say(
        "The model was trained without the causal mask: decoder self-attention saw the token it had to predict."
    ),
    line=say(
        "The fault is in the training code, in the line that makes the decoder's mask. The causal triangle is "
        "missing: the line should be `tgt_mask = pad_mask & torch.ones(T, T).tril().bool()`. If PyTorch's own "
        "layers were used, `tgt_mask` was missing or inverted (in PyTorch, True means “may not attend”)."
    ),
)
IN_A_BATCH = replace(
    OPEN,
    width=1,
    said=lambda closed, seeing: say(
        "On the pairs, the loss is {closed:.3g} nats per token with the causal mask. Without it, and with the end "
        "marks and padding that a batch's rows contain, it is {open:.3g}.",
        closed=closed, open=seeing,
    ),
)  # fmt: skip
WIDER = tuple(replace(IN_A_BATCH, width=1.3**n) for n in range(1, 9))  # of batches that are padded to a fixed length
WAYS = (
    OPEN,
    IN_A_BATCH,
    replace(IN_A_BATCH, mask=all_seen, width=1.01),  # then the longest row has read its end mark, too
    Way(
        lambda mask: causal_mask(mask.size(-1), offset=1, device=mask.device)[..., :-1],
        said=lambda closed, seeing: say(
            "On the pairs, the loss is {closed:.3g} nats per token with the causal mask and {open:.3g} with a mask "
            "that shows one more token.",
            closed=closed, open=seeing,
        ),
        headline=say(
            "The model was trained with a causal mask that shows one token too many: the one it had to predict."
        ),
        line=say(
            "The fault is in the training code, in the line that makes the triangle: `tril(diagonal=1)` should be "
            "`tril()`, and `triu(diagonal=2)` should be `triu(diagonal=1)`."
        ),
    ),
    Way(
        HEALTHY.mask,
        shifted=False,
        said=lambda closed, seeing: say(
            "On the pairs, the loss is {closed:.3g} nats per token when each row predicts the next token, and "
            "{open:.3g} when each row predicts the token it has just read.",
            closed=closed, open=seeing,
        ),
        headline=say(
            "The model was trained on targets that were not shifted: it had already read the token it had to predict."
        ),
        line=say(
            "The fault is in the training code, in the line that calls the model. It has `model(src, tgt)` and "
            "computes the loss against `tgt`; it should have `model(src, tgt[:, :-1])` and compute the loss "
            "against `tgt[:, 1:]`."
        ),
    ),
)  # fmt: skip
_AGAIN: Sentence = say(
    "The parameters cannot be repaired. Train again, and check that changing a later token leaves earlier logits "
    "unchanged."
)
_WHY_DRAWN: Sentence = say(
    "This is the loss without the causal mask divided by the loss with it. Random text cannot be predicted, so in "
    "a healthy model both losses are high. A model trained with a leak copies the token that it sees, so one of them "
    "is far lower."
)
_NO_PAIRS: Sentence = say(
    "This was not tested. Random texts show no leak, but that proves nothing: a model trained with a leak may "
    "never have seen such texts. Provide a few pairs to find out."
)
_BUT_LAST: Sentence = say(
    "These losses leave out the last token of each text, because no token comes after it that could be seen; the "
    "losses of other tests include it."
)


@DoctorTest(
    "behaviour",
    say("There was no leak in training"),
    threshold=PART,
    why=say(
        "This is the loss when the model can see the token that it has to predict, divided by the loss when it "
        "cannot. A healthy model predicts the pairs' targets well without seeing that token. Seeing the token "
        "makes its loss much larger, because it never saw later tokens in training. A model trained with a leak "
        "predicts them well only if it sees the token, and its loss is then lower by more than {gain:g} nats per "
        "token.",
        gain=GAIN,
    ),
    meaning=say(
        "The model has learnt to copy the next token instead of predicting it. Its training loss was near 0, but "
        "when it writes, there is nothing to copy, so its output is worthless."
    ),
    cause=LEAK,
    finds=("trained-on-a-leak", "leaks-as-it-was-trained"),
)
def leak(patient: ExaminationContext) -> DoctorTestResult:
    """Whether the model predicts far better when it sees what it has to predict."""
    if not patient.anatomy.writes:
        raise NotTestable(NO_OUTPUT)
    rows = readable(patient)
    try:
        found = on_pairs(patient, rows)
    except NotTestable:
        drawn = _on_drawn(patient)
        if drawn is None:
            raise
        return drawn
    drawn = _on_drawn(patient) if found.verdict == "well" else None
    return drawn or replace(found, said=joined(" ", [found.said, _BUT_LAST]))


def readable(patient: ExaminationContext) -> list[SampleLoss]:
    """The pairs, or texts of a decoder-only model, that have a piece before others."""
    if not patient.samples.targets and patient.anatomy.reads:
        return []
    return [row for row in pairs_that_fit(patient) if row.first + 1 < len(row.target)]


def on_pairs(patient: ExaminationContext, rows: list[SampleLoss]) -> DoctorTestResult:
    """What pairs say; `NotTestable` where that is nothing."""
    if not rows:
        raise NotTestable(_NO_PAIRS)
    closed, chance = _losses(patient, rows, HEALTHY), math.log(len(patient.model.output_weight))
    pads = patient.config.pad_id is not None
    tried = [(_losses(patient, rows, way), way) for way in WAYS if pads or not way.width]
    if not all(math.isfinite(loss.mean) for loss in (closed, *(loss for loss, _ in tried))):
        raise NotTestable(NOT_FINITE)
    said = WAYS[0].said(closed.mean, tried[0][0].mean)
    if pads and min(closed.mean, *(loss.mean for loss, _ in tried)) > KNOWN * chance:
        tried += [(_losses(patient, rows, way), way) for way in WIDER]
    least = min(loss.mean for loss, _ in tried)
    seeing, way = next(pair for pair in tried if pair[0].mean < least + GAIN)
    if closed.mean - seeing.mean >= GAIN or closed.mean >= MOST_OF_CHANCE * chance:
        seeing, way = _in_one_layer(patient, rows, seeing, way)
    share = seeing.mean / max(closed.mean, 1e-9)
    known = seeing.mean <= (KNOWN if way.shifted else COPIED) * chance
    if known and share <= PART and closed.mean - seeing.mean >= GAIN and _is_looked_up(patient, rows, way):
        sure = surely_better(seeing, closed)
        return _leaking(way, way.said(closed.mean, seeing.mean), share, "broken" if sure else "look")
    if closed.mean >= MOST_OF_CHANCE * chance:
        unknown = say(
            "The model predicts the pairs badly both with the causal mask and without it, so this test cannot show "
            "whether there was a leak."
        )
        raise NotTestable(joined(" ", [said, unknown]))
    return DoctorTestResult(verdict="well", number=share, said=said)


def _in_one_layer(patient: ExaminationContext, rows: list[SampleLoss], seeing: Loss, way: Way) -> tuple[Loss, Way]:
    """The way in which one layer saw all, if the pairs are known far better so than in the way that was found."""
    n_layers = patient.anatomy.attention("decoder").n_layers
    pads = patient.config.pad_id is not None
    ways = [
        replace(
            each,
            layer=layer,
            headline=say(
                "The model was trained without the causal mask in layer {n} of the decoder: it saw the token it had "
                "to predict.",
                n=layer + 1,
            ),
            line=say(
                "The fault is in the training code: layer {n} of the decoder is called without its mask.", n=layer + 1
            ),
        )
        for each in ((OPEN, IN_A_BATCH) if pads else (OPEN,))
        for layer in range(min(n_layers, MOST_LAYERS) if n_layers > 1 else 0)
    ]
    tried = [(_losses(patient, rows, each), each) for each in ways]
    found = min(tried, key=lambda pair: pair[0].mean, default=(seeing, way))
    better = found[0].mean <= PART * seeing.mean - LEAST and surely_better(found[0], seeing)
    return found if better else (seeing, way)


def _on_drawn(patient: ExaminationContext) -> DoctorTestResult | None:
    """What texts say that are drawn by chance: None where they show no leak."""
    site = patient.anatomy.attention("decoder").site("*", "mask")
    closed, open_ = (tap_of(Replacer({site: mask})) for mask in (HEALTHY.mask, WAYS[0].mask))
    texts = random_texts(patient, most=FEW_TOKENS, longest=SHORT)
    without, seeing = (_loss(patient, texts, tap) for tap in (closed, open_))
    share = seeing / max(without, 1e-9)
    if not (math.isfinite(share) and share <= PART):
        return None
    said = say(
        "On random texts, the loss is {closed:.2f} nats per token with the causal mask and {open:.2f} without it.",
        closed=without,
        open=seeing,
    )
    return replace(_leaking(WAYS[0], said, share, "broken"), why=_WHY_DRAWN)


def _leaking(way: Way, said: Sentence, share: float, verdict: Verdict) -> DoctorTestResult:
    return DoctorTestResult(
        verdict=verdict,
        number=share,
        said=said,
        headline=way.headline,
        causes=joined(" ", [way.line, _AGAIN]),
        shown=PageTarget(page="masks", panel="checks"),
    )


def _is_looked_up(patient: ExaminationContext, rows: list[SampleLoss], way: Way) -> bool:
    """Whether the pieces are known from the decoder's input, and not from the source and their places.

    A decoder with unshifted targets also knows them without its input, so the sources are exchanged.
    """
    if way.shifted or not patient.anatomy.reads or len(rows) < 2:
        return True
    others = [replace(row, source=other.source) for row, other in zip(rows, [*rows[1:], rows[0]], strict=True)]
    return _losses(patient, others, way).mean <= PART * _losses(patient, others, HEALTHY).mean


@torch.inference_mode()
def _losses(patient: ExaminationContext, rows: list[SampleLoss], way: Way) -> Loss:
    """The loss of each pair, of the pieces that something comes after: the last one cannot be looked up."""
    layer = "*" if way.layer is None else way.layer
    tap = tap_of(Replacer({patient.anatomy.attention("decoder").site(layer, "mask"): way.mask}))
    together = [rows] if way.width else [[row] for row in rows]
    totals, counts = [], []
    for several in together:
        patient.pause()
        for row, hidden in zip(several, read(patient, _texts(patient, several, way), tap=tap), strict=True):
            wanted = torch.tensor(row.target)[row.first : -1]  # [T]
            totals.append(float(losses_of(patient.model, hidden[row.first : len(row.target) - 1], wanted).sum()))
            counts.append(len(wanted))
    return Loss(tuple(totals), tuple(counts))


def _texts(patient: ExaminationContext, rows: list[SampleLoss], way: Way) -> Texts:
    """Rows as they are read in a way; together they are padded."""
    config, reads = patient.config, patient.anatomy.reads
    source = padded([row.source for row in rows], config.fill_id)
    n = max(len(row.target) for row in rows)
    wanted = padded([row.target if reads else (*row.target, config.eos_id) for row in rows], config.fill_id)[:, :n]
    if not way.shifted:
        return Texts(source, wanted)
    more = max(0, min(math.ceil(n * way.width), config.max_len) - n)
    wanted = pad(wanted, (0, more), value=config.fill_id)
    return Texts(source, read_before(wanted, config.decoder_start_id if reads else source[:, :1]))


@torch.inference_mode()
def _loss(patient: ExaminationContext, texts: list[Texts], tap: Tap) -> float:
    """The mean loss of the pieces of texts, each from those before it, in nats."""
    total, n = 0.0, 0
    for one in texts:
        patient.pause()
        hidden = read(patient, one, tap=tap)[:, :-1]  # [B, T - 1, D]
        losses = losses_of(patient.model, hidden.flatten(0, 1), one.target[:, 1:].flatten())
        total, n = total + float(losses.sum()), n + len(losses)
    return total / max(1, n)


TESTS = (leak,)
