"""What a model writes with weights of fewer bits: the same output or another, and how near it was to another.

Each number of a row of a matrix is rounded to multiples of the row's largest value (`RoundWeights`). That moves all
logits a little, so a piece changes first where the two best were nearly equal.

Source: Nagel et al., "A White Paper on Neural Network Quantization" (2021), section 2.2.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from glassformer.extensions.what_if.analysis.compare import aligned
from glassformer.extensions.what_if.interventions import RoundWeights
from glassformer.extensions.what_if.interventions.rounding import WIDTHS
from transformer.runs.query import Greedy, Query
from transformer.runs.reading import Pause, go_on
from transformer.runs.runnable import Runnable
from transformer.runs.running import run_batch
from transformer.runs.trace import Trace


@dataclass(frozen=True)
class Rounded:
    """What a model writes greedily."""

    bits: int | None  # of each weight; None for the weights as they are
    ids: tuple[int, ...]  # its output
    text: str  # the same as text
    probs: tuple[float, ...]  # of each of its pieces
    same: tuple[bool, ...]  # whether a piece is one of the output without rounding, if both are aligned
    changed: int  # the fewest pieces that are replaced, inserted or deleted from that output to this one
    margin: float | None  # the smallest difference between the two best pieces of a step, in nats; None without any
    margin_at: int  # the step of it, from 0


@torch.inference_mode()
def with_few_bits(
    checkpoint: Runnable, query: Query, *, bits: Sequence[int] = WIDTHS, pause: Pause = go_on
) -> tuple[Rounded, ...]:
    """The output of a query's source without rounding, then with each number of bits, all decoded greedily.

    The query's own changes apply, too. Errors as of `run`.
    """
    own: tuple[int, ...] | None = None
    found: list[Rounded] = []
    for n in (None, *bits):
        changes = query.interventions if n is None else (*query.interventions, RoundWeights(bits=str(n)))
        asked = replace(query, interventions=changes, decoding=Greedy(), hypothesis=0)
        (trace,) = run_batch(checkpoint, [asked], maps=False, pause=pause)
        own = trace.tgt_ids if own is None else own
        found.append(_rounded(trace, n, own))
        pause()
    return tuple(found)


def _rounded(trace: Trace, bits: int | None, own: Sequence[int]) -> Rounded:
    rows = aligned(own, trace.tgt_ids)
    same = {row.right for row in rows if row.same}
    margins = [_margin(trace, step) for step in range(trace.n_forced, trace.n_steps)]
    least = int(np.argmin(margins)) if margins else 0
    return Rounded(
        bits,
        trace.tgt_ids,
        trace.output_text,
        tuple(float(np.exp(trace.log_probs[step, i])) for step, i in enumerate(trace.tgt_ids)),
        tuple(step in same for step in range(trace.n_steps)),
        sum(not row.same for row in rows),
        margins[least] if margins and np.isfinite(margins[least]) else None,
        least + trace.n_forced,
    )


def _margin(trace: Trace, step: int) -> float:
    """Between the two best pieces of a step, in nats; infinite if the rules leave but one."""
    second, first = np.partition(trace.scores_at(step), -2)[-2:]
    return float(first - second)
