"""How two runs differ: from which step on, how far their logits are apart, and how such an amount is written.

Knows nothing of what is drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from transformer.lessons.case import NotHere
from transformer.runs.trace import Trace
from words import say

ROUNDING: Final = 1e-4
"""Differences below this share of the largest logit are those of float32; what a change does is far larger."""


def first_difference(before: Trace, after: Trace) -> tuple[int, int]:
    """The first step at which two runs wrote something else.

    Args:
        before: A run.
        after: Another one of the same model.

    Returns:
        It, and the nearest step that the other run has, both from 1; the last one where they wrote the same.
    """
    shorter = min(before.n_steps, after.n_steps)
    pairs = enumerate(zip(before.tgt_ids, after.tgt_ids, strict=False))
    last = shorter - 1 if before.tgt_ids == after.tgt_ids else shorter
    at = next((step for step, (a, b) in pairs if a != b), last)
    return at + 1, max(1, min(at + 1, after.n_steps))


@dataclass(frozen=True)
class Difference:
    """How far two runs are apart."""

    by: float  # the largest difference of any logit at the steps that both ran after the same pieces
    verdict: Literal["rounding", "visible"]  # whether that is rounding alone


def largest_difference(one: Trace, other: Trace) -> Difference:
    """Compare two runs up to the first piece that they wrote differently.

    Args:
        one: A run.
        other: Another one of the same model.

    Raises:
        NotHere: The runs have no step, or numbers that are not finite.
    """
    n_steps = min(first_difference(one, other)[0], one.n_steps, other.n_steps)
    if not n_steps:
        raise NotHere("This run has no step to compare.")
    before, after = (logits(trace, n_steps) for trace in (one, other))
    by = float(np.abs(after - before).max())
    if not np.isfinite(by):
        raise NotHere("Some logits of this model are not finite, so they cannot be compared.")
    return Difference(by, "rounding" if by <= ROUNDING * max(1.0, float(np.abs(before).max())) else "visible")


def logits(trace: Trace, n_steps: int) -> np.ndarray:
    """The logits of the first steps, float64 [step, tgt_vocab]."""
    return trace.log_probs[:n_steps].astype(np.float64) + trace.log_sums[:n_steps, None]


_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def amount(value: float) -> str:
    """A difference to two digits; only 0 itself is called so.

    Args:
        value: At least 0.
    """
    if value == 0:
        return say("exactly 0")
    mantissa, exponential, exponent = f"{value:.2g}".partition("e")
    return f"{mantissa} × 10{str(int(exponent)).translate(_RAISED)}" if exponential else mantissa
