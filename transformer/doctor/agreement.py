"""Whether two ways of computing the same thing agree: in a batch or alone, with a cache or without, token by token.

The shapes differ, so sums are taken in another order and numbers differ by rounding. What is allowed is far above
what rounding does and far below what a mistake does.

Source: the KV cache and padded batches are no part of Vaswani et al. (2017); that they change nothing follows from
its section 3.2.3.

Knows nothing of Streamlit.
"""

from __future__ import annotations

import torch

from transformer.doctor.masking import ENCODER_ONLY
from transformer.doctor.patient import Patient
from transformer.doctor.reading import Row, moved, result
from transformer.doctor.report import Measured, Shown, not_applicable
from transformer.model.cache import KVCache
from transformer.runs.running import padded
from words import Sentence, say

AGREES = 1e-3
"""Of the spread of a row's logits. Rounding moves those of the shipped and of foreign models by at most 2e-5 (GPT-2
among them), a sentence that reads two pads of another by more than 0.02."""
WHY = say(
    "Both compute the same sums in another order. In healthy models that moves logits by less than 0.00002 of their "
    "spread; a mask, a position or a cached key that is wrong moves them by more than 0.01."
)


def batch(patient: Patient) -> Measured:
    """Read sentences of several lengths together, and each alone."""
    model, rows = patient.model, patient.rows
    if patient.config.pad_id is None:  # then only texts of one length can be read together
        rows = _of_one_length(rows)
    if len(rows) < 2:
        return not_applicable(say("There are not two texts that this model can read together."))
    fill = patient.config.fill_id
    together = result(model, padded([r.source for r in rows], fill), padded([r.target for r in rows], fill))
    most, worst = 0.0, rows[0]
    for i, row in enumerate(rows):
        patient.pause()
        alone = result(model, torch.tensor([row.source]), torch.tensor([row.target]))[0]
        far = float(moved(alone, together[i, : len(alone)]).max())
        most, worst = max((most, worst), (far, row), key=lambda one: one[0])
    return _compared(
        most,
        worst,
        well=say("{n} texts of several lengths, read together and each alone, give the same.", n=len(rows)),
        said=say("Read together with others, a text's logits move by {most:.3g} of their spread.", most=most),
        meaning=say("What a sentence gives depends on which others stand beside it in the batch."),
        causes=say(
            "Padding is not hidden in one of the attentions; positions are counted from the end of the longest row; "
            "a mask [batch, query, key] without an axis for heads is spread over them; or something is averaged "
            "over the batch. Decode one sentence at a time until it is mended."
        ),
    )


def _of_one_length(rows: list[Row]) -> list[Row]:
    """The rows, cut to the length of the shortest."""
    n_source, n_target = (min(map(len, side)) for side in ([r.source for r in rows], [r.target for r in rows]))
    return [Row(row.source[:n_source], row.target[:n_target], row.text) for row in rows]


@torch.inference_mode()
def cache(patient: Patient) -> Measured:
    """Read the target token by token with a cache, and at once without."""
    if not patient.anatomy.writes:
        return not_applicable(ENCODER_ONLY)
    model, most, worst = patient.model, 0.0, patient.rows[0]
    for row in patient.rows:
        patient.pause()
        src, tgt = torch.tensor([row.source]), torch.tensor([row.target])
        whole = result(model, src, tgt)[0]  # [T, V]
        memory = model.encode(src) if patient.anatomy.reads else None
        mask = model.source_mask(src) if patient.anatomy.reads else None
        kept = KVCache(patient.config.n_decoder_layers)
        steps = [model.decode(tgt[:, t : t + 1], memory, mask, cache=kept) for t in range(tgt.size(1))]
        far = float(moved(whole, model.project(torch.cat(steps, dim=1))[0]).max())
        most, worst = max((most, worst), (far, row), key=lambda one: one[0])
    return _compared(
        most,
        worst,
        well=say("Token by token with a cache the model computes what it computes at once."),
        said=say("Token by token with a cache, logits move by {most:.3g} of their spread.", most=most),
        meaning=say(
            "Decoding, which keeps keys and values, computes something else than training did, which reads the "
            "target at once."
        ),
        causes=say(
            "A row reads later tokens when it is read at once (see the test of causality), positions start again at "
            "each call with a cache, or keys are kept before the positions have turned them. Decode without a cache "
            "until it is mended."
        ),
    )


def _compared(
    most: float, worst: Row, *, well: Sentence, said: Sentence, meaning: Sentence, causes: Sentence
) -> Measured:
    shown = Shown(page="masks", panel="checks", source=worst.text)
    if most <= AGREES:
        return Measured(verdict="well", number=most, threshold=AGREES, why=WHY, said=well, shown=shown)
    return Measured(
        verdict="broken",
        number=most,
        threshold=AGREES,
        why=WHY,
        said=said,
        meaning=meaning,
        causes=causes,
        places=() if worst.text is None else (worst.text,),
        shown=shown,
    )
