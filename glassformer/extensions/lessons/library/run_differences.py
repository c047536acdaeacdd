"""How two runs differ: from which step on, how far their logits are apart, and how such an amount is written.

Knows nothing of what is drawn.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from glassformer.extensions.lessons.library.case import NotHere
from glassformer.extensions.lessons.library.lesson import Shown
from glassformer.extensions.lessons.library.margins import only_rounding
from transformer.i18n import say
from transformer.runs.trace import Trace


def first_difference(before: Trace, after: Trace) -> tuple[int, int]:
    """The first step at which two runs of a model wrote something else; the last one where they wrote the same.

    Returns:
        It, and the nearest step that the second run has, both from 1.
    """
    shorter = min(before.n_steps, after.n_steps)
    pairs = enumerate(zip(before.tgt_ids, after.tgt_ids, strict=False))
    last = shorter - 1 if before.tgt_ids == after.tgt_ids else shorter
    at = next((step for step, (a, b) in pairs if a != b), last)
    return at + 1, max(1, min(at + 1, after.n_steps))


def outputs(before: Trace, after: Trace) -> dict[str, Any]:
    """What both wrote, as the texts of a lesson name it."""
    return {"before": before.output_text, "after": after.output_text}


@dataclass(frozen=True)
class Difference:
    """How far two runs are apart."""

    by: float  # the largest difference of any logit at the steps that both ran after the same pieces
    verdict: Literal["rounding", "visible"]  # whether that is rounding alone


def largest_difference(one: Trace, other: Trace) -> Difference:
    """Compare two runs of a model up to the first piece that they wrote differently.

    Raises:
        NotHere: The runs have no step, or numbers that are not finite; or nobody can tell whether it is rounding.
    """
    n_steps = min(first_difference(one, other)[0], one.n_steps, other.n_steps)
    if not n_steps:
        raise NotHere("This run has no decoding step to compare.")
    before, after = (logits(trace, n_steps) for trace in (one, other))
    by = float(np.abs(after - before).max())
    if not np.isfinite(by):
        raise NotHere("Some logits of this model are not finite, so they cannot be compared.")
    same = only_rounding(by / max(1.0, float(np.abs(before).max())))
    return Difference(by, "rounding" if same else "visible")


def logits(trace: Trace, n_steps: int) -> np.ndarray:
    """The logits of the first steps, float64 [step, tgt_vocab]."""
    return trace.log_probs[:n_steps].astype(np.float64) + trace.log_sums[:n_steps, None]


def amount(value: float) -> str:
    """A difference of at least 0 to two digits; only 0 itself is called so."""
    return say("exactly 0") if value == 0 else format(Shown(value), ".2g")
