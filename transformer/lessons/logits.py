"""How far the logits of two runs are apart: by rounding alone, or so that it shows.

Knows nothing of what is drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from transformer.lessons.case import NotHere
from transformer.runs.trace import Trace

ROUNDING: Final = 1e-4
"""Differences below this share of the largest logit are those of float32; what a change does is far larger."""


@dataclass(frozen=True)
class Difference:
    """How far two runs are apart.

    Attributes:
        by: The largest difference of any logit at the steps that both ran after the same pieces.
        verdict: Whether that is rounding alone.
    """

    by: float
    verdict: Literal["rounding", "visible"]


def largest_difference(one: Trace, other: Trace) -> Difference:
    """Compare two runs up to the first piece that they wrote differently.

    Args:
        one: A run.
        other: Another one of the same model.

    Raises:
        NotHere: The runs have no step, or numbers that are not finite.
    """
    apart = next((i for i, (a, b) in enumerate(zip(one.tgt_ids, other.tgt_ids, strict=False)) if a != b), None)
    n_steps = min(one.n_steps, other.n_steps) if apart is None else apart + 1
    if not n_steps:
        raise NotHere("This run has no step to compare.")
    before, after = (logits(trace, n_steps) for trace in (one, other))
    by = float(np.abs(after - before).max())
    if not np.isfinite(by):
        raise NotHere("Some logits of this model are not finite, so they cannot be compared.")
    return Difference(by, "rounding" if by <= ROUNDING * max(1.0, float(np.abs(before).max())) else "visible")


def logits(trace: Trace, n_steps: int) -> np.ndarray:
    """The logits of the first steps, float64 [step, tgt_vocab].

    Args:
        trace: The run.
        n_steps: How many steps.
    """
    return trace.log_probs[:n_steps].astype(np.float64) + trace.log_sums[:n_steps, None]
