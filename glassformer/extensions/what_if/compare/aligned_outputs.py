"""Two outputs piece by piece: each with what the other run gives it, where they part, and what changes most.

Knows nothing of Streamlit.
"""

from functools import lru_cache
from typing import Final

import numpy as np

from glassformer.charts.aligned import Row
from glassformer.charts.theme import shortened
from glassformer.extensions.what_if.analysis.compare import Aligned, Crossed, aligned, first_difference, own_log_probs
from glassformer.extensions.what_if.compare.pair import Pair, cross
from glassformer.runs.seen import Seen
from transformer.i18n import say, say_n
from transformer.i18n.numbers import hundredths

MOST_OF_SENTENCE: Final = 40  # characters in a title

Both = tuple[Crossed, Crossed] | None


def crossed_of(pair: Pair[Seen]) -> Both:
    """The left output in both runs, and the right one; None where that is not defined. Errors as of `read_by`."""
    if pair.is_one_model or not pair.share_vocabulary:
        return None
    return cross(pair.left, pair.right), cross(pair.right, pair.left)


def effect(pair: Pair[Seen], left: Crossed) -> str:
    """How much less or more the right run makes of the left output: where most, and in all."""
    before, after = np.exp(left.own), np.exp(left.other)
    most = int(np.abs(after - before).argmax())
    return say("In the left output, the probability of {piece} changes most: from {before} in the left run to "
               "{after} in the right run. The log-probability of the whole left output changes by {total:+.3f} "
               "nats.", piece=pair.left.trace.tgt_pieces[most], before=hundredths(float(before[most])),
               after=hundredths(float(after[most])), total=float(left.other.sum() - left.own.sum()))  # fmt: skip


def title(pair: Pair[Seen]) -> str:
    """What the two outputs are of; a saved table says it, too."""
    left, right = pair.left.trace, pair.right.trace
    if pair.compared == "changed":
        return say("Outputs of the control run and of the changed run")
    if pair.compared == "sentences":
        texts = (shortened(run.query.source, limit=MOST_OF_SENTENCE) for run in (left, right))
        return say("Outputs for “{left}” and for “{right}”", left=next(texts), right=next(texts))
    if pair.compared == "checkpoints":
        return say("Outputs of {left} and of {right}", left=left.checkpoint, right=right.checkpoint)
    if pair.compared == "branches":
        return say("Two branches of the output")
    return say("Outputs of the same model, run in two ways")


def verdict(pair: Pair[Seen]) -> str:
    """Where the outputs part, in a sentence or two."""
    left, right = pair.left.trace, pair.right.trace
    first = first_difference(left.tgt_pieces, right.tgt_pieces)
    if first is None:
        return say_n("Both outputs are the same: {n} piece.", "Both outputs are the same: {n} pieces.", left.n_steps)
    n = min(left.n_steps, right.n_steps)
    if first == n:
        if n == left.n_steps:
            return say(
                "The output on the left ends after {n} pieces. The one on the right starts with the same pieces "
                "and continues.",
                n=n,
            )
        return say(
            "The output on the right ends after {n} pieces. The one on the left starts with the same pieces and "
            "continues.",
            n=n,
        )
    pieces = left.tgt_pieces[first], right.tgt_pieces[first]
    if first == 0:
        return say(
            "The outputs differ from the first piece on: “{left}” on the left, “{right}” on the right.",
            left=pieces[0],
            right=pieces[1],
        )
    return say("The outputs are the same up to piece {before}. The first difference is piece {n}: “{left}” on the "
               "left, “{right}” on the right.", before=first, n=first + 1, left=pieces[0],
               right=pieces[1])  # fmt: skip


@lru_cache(maxsize=64)  # a step draws the same outputs again
def _aligned(left: tuple[object, ...], right: tuple[object, ...]) -> tuple[Aligned, ...]:
    return aligned(left, right)


def rows_of(pair: Pair[Seen], both: Both) -> list[Row]:
    """The aligned outputs with their numbers."""
    left, right = pair.left.trace, pair.right.trace
    own = np.exp(own_log_probs(left)), np.exp(own_log_probs(right))
    other = (None, None) if both is None else tuple(np.exp(one.other) for one in both)
    divergences = None if both is None else both[0].divergences
    return [
        Row(
            left=None if i is None else left.tgt_pieces[i],
            right=None if j is None else right.tgt_pieces[j],
            same=one.same,
            left_step=i,
            right_step=j,
            p_left=_at(own[0], i),
            p_right=_at(own[1], j),
            p_crossed=_at(other[0], i),
            p_crossed_back=_at(other[1], j),
            divergence=_at(divergences, i),
        )
        for one in _aligned(left.tgt_pieces, right.tgt_pieces)
        for i, j in [(one.left, one.right)]
    ]


def _at(values: np.ndarray | None, step: int | None) -> float | None:
    return None if values is None or step is None else float(values[step])
