"""Two runs' outputs: edit-distance alignment, first difference, KL by step, log-probability by the other model.

Outputs are aligned with the fewest replaced, deleted or inserted pieces (Levenshtein 1966), after their common
beginning. The divergence is that of Kullback and Leibler, "On Information and Sufficiency" (1951), in nats.

A model judges another's output in one pass over it, as teacher forcing does in training: row t is the distribution of
the next piece after the other's first t pieces. Both models need the same vocabulary.

Shapes: T steps, V vocabulary.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
import torch
import torch.nn.functional as F

from transformer.errors import QueryError
from transformer.runs.array_records import ArrayRecord
from transformer.runs.inputs import read_given
from transformer.runs.query import MAX_NEW, Greedy, Query, Runnable
from transformer.runs.reading import DecodedOutput, read
from transformer.runs.trace import Trace


@dataclass(frozen=True)
class Aligned:
    """A place of one output, of the other, or of both."""

    left: int | None  # the step of each output, from 0; None where it has nothing here
    right: int | None  # the step of each output, from 0; None where it has nothing here
    same: bool  # whether both have the same piece here


def first_difference(left: Sequence[object], right: Sequence[object]) -> int | None:
    """The first place, from 0, where two outputs differ or one ends; None if they are equal."""
    n = min(len(left), len(right))
    return next((i for i in range(n) if left[i] != right[i]), None if len(left) == len(right) else n)


def aligned(left: Sequence[object], right: Sequence[object]) -> tuple[Aligned, ...]:
    """Align two outputs with the fewest differences; their common beginning stays together."""
    common = first_difference(left, right)
    n = min(len(left), len(right)) if common is None else common
    rows = [Aligned(place, place, True) for place in range(n)]
    return (*rows, *_fewest(left[n:], right[n:], n))


def _fewest(left: Sequence[object], right: Sequence[object], shift: int) -> list[Aligned]:
    cost = _costs(left, right)
    i, j, found = len(left), len(right), []
    while i or j:
        here = cost[i][j]
        same = bool(i and j and left[i - 1] == right[j - 1])
        if i and j and here == cost[i - 1][j - 1] + (not same):
            i, j = i - 1, j - 1
            found.append(Aligned(i + shift, j + shift, same))
        elif i and here == cost[i - 1][j] + 1:
            i -= 1
            found.append(Aligned(i + shift, None, False))
        else:
            j -= 1
            found.append(Aligned(None, j + shift, False))
    return found[::-1]


def _costs(left: Sequence[object], right: Sequence[object]) -> list[list[int]]:
    """The edit distance of each pair of prefixes [left + 1, right + 1]."""
    cost = [list(range(len(right) + 1))]
    for i, a in enumerate(left, start=1):
        above, row = cost[-1], [i]
        for j, b in enumerate(right, start=1):
            row.append(min(above[j - 1] + (a != b), above[j] + 1, row[j - 1] + 1))
        cost.append(row)
    return cost


def kl_divergences(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """KL(left ‖ right) = Σ p · (ln p − ln q) of each step [T], in nats, at least 0, of log-probabilities [T, V]."""
    if left.shape != right.shape:
        raise ValueError(f"{left.shape} log-probabilities and {right.shape}: give those of the same tokens.")
    return np.array([_divergence(p, q) for p, q in zip(left, right, strict=True)], dtype=np.float64)


def _divergence(left: np.ndarray, right: np.ndarray) -> float:
    """Of one step, of what sums to 1 in float64, as in float32 it does not quite."""
    p, q = (torch.tensor(one, dtype=torch.float64).log_softmax(dim=0) for one in (left, right))
    each = F.kl_div(q, p, reduction="none", log_target=True)
    return max(0.0, float(each.nansum()))  # 0 ln 0 is 0; rounding may leave less than 0


def own_log_probs(trace: Trace) -> np.ndarray:
    """The log-probability [T] of each piece of a run's output under the model that read it, in nats."""
    return np.asarray(trace.log_probs[np.arange(trace.n_steps), list(trace.tgt_ids)])


def share_vocabulary(left: Trace, right: Trace) -> bool:
    """Whether the models of two runs have the same pieces with the same ids, so one can read the other's output."""
    return left.vocabulary == right.vocabulary


@torch.inference_mode()
def read_output(checkpoint: Runnable, query: Query, ids: Sequence[int], *, most_map_bytes: int | None = None) -> Trace:
    """Let a model read an output, its own or another's, with its own source and interventions.

    Nothing is decoded: one pass over the output returns the trace of a run that was forced to write it. A QueryError
    says that there is no output, that it does not fit the model, or that the model computes a value that is not finite.
    """
    if not ids:
        raise QueryError("there is no output to read: the run wrote nothing.")
    changes = tuple(one for one in query.interventions if not one.insisted((), MAX_NEW))  # the output is given
    forced = replace(query, forced=tuple(ids), decoding=Greedy(), hypothesis=0, max_new=len(ids), interventions=changes)
    (trace,) = read(checkpoint, [forced], most_map_bytes=most_map_bytes).finish([DecodedOutput(tuple(ids))])
    return trace


def reference_ids(checkpoint: Runnable, query: Query, reference: str | None) -> tuple[int, ...]:
    """The right output's ids, with those that a model forces; none without a reference that it can read."""
    with suppress(QueryError):
        return (*checkpoint.config.forced_ids, *read_given(checkpoint, query, reference).ids) if reference else ()
    return ()


@dataclass(frozen=True, eq=False)
class Crossed(ArrayRecord):
    """An output under the model that wrote it, and under another one."""

    own: np.ndarray  # log-probability of each of its pieces under each [T], in nats
    other: np.ndarray  # log-probability of each of its pieces under each [T], in nats
    divergences: np.ndarray  # KL(own ‖ other) of the next piece at each step [T], in nats


def crossed(own: Trace, read_by: Trace) -> Crossed:
    """An output under the model that wrote it, and under the one that read it with `read_output`."""
    if own.tgt_ids != read_by.tgt_ids:
        raise ValueError("The two traces are of different outputs: read the one's output with the other model.")
    divergences = kl_divergences(own.log_probs, read_by.log_probs)
    return Crossed(own_log_probs(own), own_log_probs(read_by), divergences)
