"""Doctor tests of wiring: causality, padding, batching, KV cache.

Masks: no row depends on a later piece or on padding. Each test changes what may not be seen and checks which rows
change. Both runs have the same shapes: what is not read has a weight of exactly 0, and every sum has the same order. So
the threshold is 0. `transformer.analysis.mask_checks` shows the same on a page, sentence by sentence.

Two ways: in a batch or alone, with a cache or without, token by token. The shapes differ, so numbers differ by
rounding. The threshold is far above rounding and far below any mistake.

Whether the model uses what it is given is asked in `output_tests` (`positions`, `source`).

Source: Vaswani et al. (2017), section 3.2.3, for masks, from which it follows that the KV cache and padded batches
change nothing.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

import torch
from torch import Tensor

from glassformer.extensions.doctor.library.context import (
    BELOW,
    DoctorTest,
    Drawing,
    ExaminationContext,
    InputRow,
    moved,
    result,
)
from glassformer.extensions.doctor.library.findings import (
    NO_OUTPUT,
    ONE_TEXT,
    DoctorTestResult,
    NotTestable,
    PageTarget,
)
from transformer.analysis.mask_checks import check_causality
from transformer.i18n import Sentence, say, say_n
from transformer.model.anatomy import StackName
from transformer.model.cache import KVCache
from transformer.model.taps import Recorder, tap_of
from transformer.runs.reading import padded

EXACT: Final = say(
    "In both runs, all tensors have the same shapes, so a token that the model does not read has a weight of "
    "exactly 0 and changes nothing, not even by rounding."
)
AGREES = 1e-3
"""Of the spread of a row's logits: far more than rounding moves them, far less than two pads that are read."""
WHY: Final = say(
    "Both computations add the same numbers, but in a different order. In the shipped checkpoints, this changes "
    "logits by less than a tenth of the threshold; a wrong mask, position or cached key changes them far more."
)

of_wiring = partial(DoctorTest, "wiring")


def _needs_decoder(patient: ExaminationContext) -> None:
    if not patient.anatomy.writes:
        raise NotTestable(NO_OUTPUT)


@of_wiring(
    say("No token sees a later one"),
    threshold=0.0,
    why=EXACT,
    meaning=say(
        "A token in the decoder can see tokens that come after it. In training, the decoder can then copy the "
        "token that it should predict, so a good loss means nothing. In decoding, those tokens do not exist yet."
    ),
    causes=say(
        "The causal mask is missing (often because `mask=None` is the default of a `forward`) or inverted: True "
        "means “may not attend”, or the mask has 0 and −∞ where a Boolean mask is expected. If the model was "
        "trained with a correct mask, fix the mask. If it was trained with this mask, train it again."
    ),
    cause=BELOW,
    finds=("no-causal-mask", "mask-shows-one-too-many", "leaks-as-it-was-trained"),
)
def causality(patient: ExaminationContext) -> DoctorTestResult:
    """Change later pieces: earlier rows must not move at all."""
    _needs_decoder(patient)
    drawing, most, seen = Drawing(patient.checkpoint, patient.seed), 0.0, set()
    for row in patient.rows:
        patient.pause()
        n = len(row.target)
        for place in sorted({1, n // 2, n - 1} & set(range(1, n))):  # the second token, the last, and one between
            movement = check_causality(
                patient.model, (row.source,), (row.target,), sentence=0, place=place,
                piece_id=drawing.another(row.target[place]),
            )  # fmt: skip
            earlier = movement.kept[:place]
            most = max(most, float(earlier.max(initial=0.0)))
            seen |= {place - int(i) for i in earlier.nonzero()[0]}
    shown = PageTarget(page="masks", panel="checks", source=patient.rows[0].text)
    if not seen:
        said = say_n(
            "Later tokens were replaced in {n} text; no earlier logit changed.",
            "Later tokens were replaced in {n} texts; no earlier logit changed.",
            len(patient.rows),
        )
        return DoctorTestResult(verdict="well", number=0.0, said=said, shown=shown)
    said = say_n(
        "Changing a token affects logits up to {n} token before it, by up to {most:.3g}.",
        "Changing a token affects logits up to {n} tokens before it, by up to {most:.3g}.",
        max(seen),
        most=most,
    )
    # Each layer sees one token further than the one before it.
    by_one = max(seen) <= patient.config.n_decoder_layers < max(len(row.target) for row in patient.rows) - 1
    return DoctorTestResult(verdict="broken", number=most, said=said, causes=_BY_ONE if by_one else "", shown=shown)


_BY_ONE: Final = say(
    "Each layer looks one token ahead: the causal mask is shifted (`triu(diagonal=2)` instead of "
    "`triu(diagonal=1)`, or `<=` instead of `<`). If the model was trained with a correct mask, fix the mask. If "
    "it was trained with this mask, train it again."
)


@of_wiring(
    say("Every token sees itself"),
    threshold=0,
    why=say("The softmax gives every open key some weight, unless the weight is too small to represent."),
    meaning=say(
        "The mask closes the diagonal of decoder self-attention: no token can attend to itself, so its own vector "
        "is passed on only by the residual stream. The first token cannot attend to anything."
    ),
    causes=say(
        "The causal mask is shifted by one and therefore too strict: `tril(diagonal=-1)` instead of `tril()`, or "
        "`<` instead of `<=`. Shifting the target once more has the same effect if a library already adds the "
        "start mark."
    ),
    cause=BELOW,
    finds=("mask-shows-one-too-few",),
)
@torch.inference_mode()
def own_token(patient: ExaminationContext) -> DoctorTestResult:
    """Each row of decoder self-attention has some weight on its own token, in some head."""
    _needs_decoder(patient)
    own = patient.anatomy.attention("decoder")
    blind: dict[int, None] = {}
    for row in patient.rows:
        patient.pause()
        recorder = Recorder([own.site("*", "weights")])
        result(patient.model, torch.tensor([row.source]), torch.tensor([row.target]), tap=tap_of(recorder))
        for layer in range(own.n_layers):
            weights = recorder.values[own.site(layer, "weights")][0]  # [H, T, T]
            if float(weights.diagonal(dim1=-2, dim2=-1).max()) == 0:
                blind[layer] = None
    shown = PageTarget(page="attention", panel="overview", source=patient.rows[0].text, kind="decoder")
    if not blind:
        said = say("In every decoder layer, at least one self-attention head lets a token attend to itself.")
        return DoctorTestResult(verdict="well", number=0, said=said, shown=shown)
    return DoctorTestResult(
        verdict="broken",
        number=len(blind),
        said=say(
            "In {n} of {all} decoder layers, no self-attention head ever lets a token attend to itself.",
            n=len(blind),
            all=own.n_layers,
        ),
        places=tuple(own.place(layer) for layer in blind),
        shown=replace(shown, layer=min(blind)),
    )


class _Elsewhere:
    """Puts other vectors where padding is (`hidden`, bool [B, T]), at the site where a stack's embedding ends."""

    causal = True

    def __init__(self, site: str, hidden: Tensor) -> None:
        self._site, self._hidden = site, hidden

    def wants(self, site: str) -> bool:
        return site == self._site

    def visit(self, site: str, value: Tensor, offset: int) -> Tensor:
        generator = torch.Generator().manual_seed(0)
        drawn = torch.randn(value.shape, generator=generator).to(value) * value.float().std().to(value)
        return torch.where(self._hidden.to(value.device)[..., None], drawn, value)


of_padding = partial(
    of_wiring,
    threshold=0.0,
    why=EXACT,
    meaning=say(
        "Real tokens read padding, so the output for a sentence changes when the sentence is in a batch, and "
        "changes again when the batch contains a longer sentence."
    ),
    causes=say(
        "The padding mask does not reach every attention sub-layer (cross-attention needs the source's padding "
        "mask), uses the opposite convention (True means “may not attend”, as in `nn.MultiheadAttention`), or "
        "closes queries instead of keys; or `pad_id` differs from the tokenizer's. Compare your mask with the one "
        "on the Masks page."
    ),
)


@of_padding(say("Source padding is hidden"), finds=("source-padding-leaks",))
def padding_source(patient: ExaminationContext) -> DoctorTestResult:
    """Pads on the left, on the right and inside the source: what they hold must not be seen."""
    if not patient.anatomy.reads:
        raise NotTestable(ONE_TEXT)
    return _padding(patient, "encoder")


@of_padding(say("Target padding is hidden"), finds=("target-padding-leaks",))
def padding_target(patient: ExaminationContext) -> DoctorTestResult:
    """Pads inside and after what the decoder reads: what they hold must not be seen."""
    _needs_decoder(patient)
    return _padding(patient, "decoder")


def _padding(patient: ExaminationContext, stack: StackName) -> DoctorTestResult:
    """Put two pads on the left and on the right of what a stack reads.

    The decoder's first token may be the padding id and is always read, so its "left" comes after it.
    """
    pad = patient.config.pad_id
    if pad is None:
        raise NotTestable("This model has no padding token, so there is nothing to hide.")
    far = {"left": 0.0, "right": 0.0}
    for row in patient.rows:
        patient.pause()
        n = len(row.source if stack == "encoder" else row.target)
        for side, place in (("left", int(stack == "decoder")), ("right", n)):
            far[side] = max(far[side], _leak(patient, row, stack, pad, place))
    shown = PageTarget(page="masks", panel="checks", source=patient.rows[0].text)
    leaking = [side for side, moves in far.items() if moves > 0]
    if not leaking:
        said = say("Replacing the vectors of the padding, on the left and on the right, changed nothing else.")
        return DoctorTestResult(verdict="well", number=0.0, said=said, shown=shown)
    most, mask = max(far.values()), "source" if stack == "encoder" else "target"
    return DoctorTestResult(
        verdict="broken",
        number=most,
        said=say(
            "The content of the padding changes the outputs for real tokens by {most:.3g} of their standard deviation.",
            most=most,
        ),
        places=tuple(f"{mask} {side}" for side in leaking),
        shown=shown,
    )


def _leak(patient: ExaminationContext, row: InputRow, stack: StackName, pad: int, place: int) -> float:
    """How far the rows of real tokens move when two pads at a place hold something else."""
    ids = row.source if stack == "encoder" else row.target
    mixed = torch.tensor([[*ids[:place], pad, pad, *ids[place:]]])
    hidden = torch.zeros_like(mixed, dtype=torch.bool)
    hidden[:, place : place + 2] = True
    src, tgt = torch.tensor([row.source]), torch.tensor([row.target])
    src, tgt = (mixed, tgt) if stack == "encoder" else (src, mixed)
    before = result(patient.model, src, tgt)
    after = result(patient.model, src, tgt, tap=tap_of(_Elsewhere(f"{stack}.embedding.output", hidden)))
    far = moved(before, after)  # [1, T], or [1, S] of an encoder-only model
    own = hidden if (stack == "decoder") == patient.anatomy.writes else torch.zeros_like(far, dtype=torch.bool)
    return float(far[~own].max())


@of_wiring(
    say("Sentences in a batch do not affect each other"),
    threshold=AGREES,
    why=WHY,
    causes=say(
        "An attention sub-layer does not hide padding, positions are counted from the end of the longest row, a "
        "mask of shape [batch, query, key] has no axis for heads and is broadcast over the heads, or something is "
        "averaged over the batch. Until this is fixed, decode one sentence at a time."
    ),
    finds=("source-padding-leaks",),
)
def batch(patient: ExaminationContext) -> DoctorTestResult:
    """Read sentences of several lengths together, and each alone."""
    model, rows = patient.model, patient.rows
    if patient.config.pad_id is None:  # then only texts of one length can be read together
        n_source, n_target = min(len(row.source) for row in rows), min(len(row.target) for row in rows)
        rows = [InputRow(row.source[:n_source], row.target[:n_target], row.text) for row in rows]
    if len(rows) < 2:
        raise NotTestable("This test needs at least two texts that the model can read together.")
    fill = patient.config.fill_id
    together = result(model, padded([r.source for r in rows], fill), padded([r.target for r in rows], fill))

    def far(i: int, row: InputRow) -> float:
        alone = result(model, torch.tensor([row.source]), torch.tensor([row.target]))[0]
        return float(moved(alone, together[i, : len(alone)]).max())

    return _compared(
        patient,
        rows,
        far,
        well=say(
            "{n} texts of different lengths give the same results when read together as when read alone.", n=len(rows)
        ),
        said=lambda most: say(
            "When a text is read together with other texts, its logits change by {most:.3g} of their standard "
            "deviation.",
            most=most,
        ),
    )


@of_wiring(
    say("The cache does not change the result"),
    threshold=AGREES,
    why=WHY,
    causes=say(
        "When the whole target is read in one pass, a token sees later tokens (see the test “No token sees a later "
        "one”); positions start over at each call with a cache; or keys are cached before they are rotated by "
        "their positions. Until this is fixed, decode without a cache."
    ),
    cause=BELOW,
    finds=(
        "no-causal-mask",
        "mask-shows-one-too-many",
        "mask-shows-one-too-few",
        "positions-shifted-in-the-cache",
        "leaks-as-it-was-trained",
    ),
)
@torch.inference_mode()
def cache(patient: ExaminationContext) -> DoctorTestResult:
    """Read the target token by token with a cache, and at once without."""
    _needs_decoder(patient)
    model = patient.model

    def far(_: int, row: InputRow) -> float:
        src, tgt = torch.tensor([row.source]), torch.tensor([row.target])
        whole = result(model, src, tgt)[0]  # [T, V]
        memory = model.encode(src) if patient.anatomy.reads else None
        mask = model.source_mask(src) if patient.anatomy.reads else None
        kept = KVCache(patient.config.n_decoder_layers)
        steps = [model.decode(tgt[:, t : t + 1], memory, mask, cache=kept) for t in range(tgt.size(1))]
        return float(moved(whole, model.project(torch.cat(steps, dim=1))[0].cpu()).max())

    return _compared(
        patient,
        patient.rows,
        far,
        well=say("The model computes the same results token by token with a cache as with all tokens in one pass."),
        said=lambda most: say(
            "When the target is read token by token with a cache, logits change by {most:.3g} of their standard "
            "deviation.",
            most=most,
        ),
    )


def _compared(
    patient: ExaminationContext,
    rows: list[InputRow],
    far: Callable[[int, InputRow], float],
    *,
    well: Sentence,
    said: Callable[[float], Sentence],
) -> DoctorTestResult:
    """How far the logits of any row move between two ways of computing them, by `far`."""
    most, worst = 0.0, rows[0]
    for i, row in enumerate(rows):
        patient.pause()
        most, worst = max((most, worst), (far(i, row), row), key=lambda one: one[0])
    shown = PageTarget(page="masks", panel="checks", source=worst.text)
    if most <= AGREES:
        return DoctorTestResult(verdict="well", number=most, said=well, shown=shown)
    places = () if worst.text is None else (worst.text,)
    return DoctorTestResult(verdict="broken", number=most, said=said(most), places=places, shown=shown)


TESTS = (causality, own_token, padding_source, padding_target, batch, cache)
