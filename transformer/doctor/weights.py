"""The parameters themselves: values that are no numbers, tensors that hold nothing, copies that differ.

What they hold is looked at tensor by tensor, so that a large model needs no more memory than its largest tensor once
more.

Knows nothing of Streamlit.
"""

from __future__ import annotations

import torch

from transformer.doctor import deviations, tables, tensors
from transformer.doctor.patient import Patient, Test
from transformer.doctor.reading import Row
from transformer.doctor.report import MOST_PLACES, Measured, Shown
from transformer.model.tap import NO_TAP, Tap
from transformer.runs.finite import first_site
from words import say, say_n


@torch.inference_mode()
def finite(patient: Patient) -> Measured:
    """NaN and infinite values: among the parameters, and in what is computed of the first sentence."""
    damaged: dict[str, int] = {}
    for name, parameter in patient.model.named_parameters():
        patient.pause()
        if n := int((~parameter.isfinite()).sum()):
            damaged[name] = n
    row = patient.rows[0]
    site = _first_site(patient, row)
    n = sum(damaged.values())
    shown = Shown(page="inside", source=row.text)
    why = say("A single one spreads to everything that is computed with it.")
    if not n and site is None:
        return Measured(
            verdict="well", number=0, threshold=0, why=why, shown=shown,
            said=say("All parameters are finite, and so is all that is computed of a sentence."),
        )  # fmt: skip
    if n:
        said = say_n(
            "{n:,} parameter is NaN or infinite, first in {where}.",
            "{n:,} parameters are NaN or infinite, first in {where}.",
            n,
            where=next(iter(damaged)),
        )
        causes = say(
            "Training diverged (learning rate too high, no warm-up, gradients not clipped, float16 without a "
            "scaler), or a value above 65,504 was saved as float16. Go back to an earlier checkpoint; nothing "
            "repairs this one."
        )
    else:
        said = say("All parameters are finite, but not what is computed of a sentence.")
        causes = say(
            "Parameters are so large that a product overflows, or a row may attend to nothing at all: its softmax is "
            "0/0. Look at the first site below, and at the mask before it."
        )
    return Measured(
        verdict="broken",
        number=n,
        threshold=0,
        why=why,
        said=said,
        meaning=say("What the model computes is not a number from the first site below on, so it can write nothing.")
        if site
        else say("Sentences with the pieces of these rows become NaN; others are computed as if nothing were wrong."),
        causes=causes,
        places=(*(list(damaged)[: MOST_PLACES - 1]), *([site] if site else [])),
        shown=shown,
    )


def _first_site(patient: Patient, row: Row) -> str | None:
    """Where a pass first computes what is not finite, if it does."""
    src, tgt = torch.tensor([row.source]), torch.tensor([row.target])

    def made(tap: Tap) -> object:
        model = patient.model
        return model(src, tgt, tap=tap) if model.anatomy.gives_logits else model.encode(src, tap=tap)

    return first_site(made, tap=NO_TAP)


TESTS: tuple[Test, ...] = (
    Test("finite", "weights", say("Every value is a number"), finite),
    *tensors.TESTS,
    *deviations.TESTS,
    *tables.TESTS,
)
