"""Questions about √d_head: what the division is for, and what becomes of a run without it.

Source: Vaswani et al. (2017), section 3.2.1 and its footnote 4: of d products of independent numbers with mean 0 and
variance 1 the sum has variance d.
"""

from __future__ import annotations

from functools import cache
from typing import Final

import numpy as np

from transformer.lessons.case import Answer, Case, NotHere, worded
from transformer.lessons.subjects.weights_questions import walk_of
from transformer.model.anatomy import anatomy
from transformer.runs.interventions import Intervention
from transformer.runs.interventions.score_changes import ScoreScale
from transformer.runs.interventions.similarity import OtherSimilarity
from words import say

WIDTHS: Final = (4, 64, 1024)
DRAWS: Final = 2000
NEARLY_ALL: Final = (0.9, 0.99)
HARDLY: Final = 0.1
LEAST_SHOWN: Final = 0.01  # of a share; below it two digits would be 0
TINY: Final = 1e-12
CLEARLY: Final = 0.02
"""By how much one map has to be nearer than another, in parts of a row."""


def variance_of_products(case: Case) -> Answer:
    """How the variance of q · k grows with the number of products that it sums, for random vectors."""
    found = walk_of(case)
    small, middle, large = (_variance(width) for width in WIDTHS)
    powers = {"same": 0.0, "root": 0.5, "linear": 1.0, "square": 2.0}
    power = np.log(middle / small) / np.log(WIDTHS[1] / WIDTHS[0])
    right = min(powers, key=lambda word: abs(powers[word] - power))
    own = found.dots[found.allowed]
    values = {"small": small, "middle": middle, "large": large, "spread": float(own.std())}
    return Answer(right=right, options=worded(*powers), values=values)


@cache
def _variance(width: int) -> float:
    """Of the products of random vectors, seeded: the same for everybody."""
    rng = np.random.default_rng(width)
    one, other = rng.standard_normal((2, DRAWS, width))
    return float((one * other).sum(axis=1).var())


def undivided_top(case: Case) -> Answer:
    """How much of its row the best key has without the division."""
    raw, scaled = _both(case)
    top, least = float(raw.max()), float(scaled.max())
    right = "most" if top < NEARLY_ALL[0] else ("nearly" if top < NEARLY_ALL[1] else "all")
    return Answer(right=right, options=worded("most", "nearly", "all"), values={"raw": top, "w": least})


def sensitivity(case: Case) -> Answer:
    """How far the weights follow a small change of q · k, without the division against with it.

    What learns are q and k, so the derivative is that by q · k: divided, it has the factor 1/√d_head once more.
    """
    raw, scaled = _both(case)
    times = _slope(raw) / (_slope(scaled) * walk_of(case).how.scale)
    right = "hardly" if times < HARDLY else ("less" if times < 1 else "more")
    share = f"{times:.0%}" if times >= LEAST_SHOWN else say("less than 1%")
    values = {"share": share, "times": times, "bits": _entropy(scaled), "raw_bits": _entropy(raw)}
    return Answer(right=right, options=worded("hardly", "less", "more"), values=values, variant=right)


def undivided_output(case: Case) -> Answer:
    """Whether the output stays the same if no attention divides its scores."""
    return _output(case, ScoreScale())


def divided_by_d_model(case: Case) -> Answer:
    """Whether the output stays the same if all attentions divide by √d_model."""
    config = case.checkpoint.config
    if all(config.of(stack.name).n_heads == 1 for stack in anatomy(config).stacks):
        raise NotHere("This model has one head, so that d_model and d_head are the same number.")
    return _output(case, ScoreScale(how="model"))


def _output(case: Case, change: Intervention) -> Answer:
    trace, other = case.trace, case.changed(change)
    if not trace.n_steps:
        raise NotHere("This model writes nothing, so there is no output to compare.")
    same_ids, same_text = trace.tgt_ids == other.tgt_ids, trace.output_text == other.output_text
    if same_text and not same_ids:
        raise NotHere("The text stays, but other pieces spell it, so there is no one answer; try another sentence.")
    longer = max(trace.n_steps, other.n_steps)
    differ = longer - sum(a == b for a, b in zip(trace.tgt_ids, other.tgt_ids, strict=False))
    values = {
        "do": str(change),
        "before": trace.output_text,
        "after": other.output_text,
        "differ": differ,
        "longer": longer,
    }
    right = "same" if same_ids else ("some" if 2 * differ <= longer else "most")
    return Answer(right=right, options=worded("same", "some", "most"), values=values, variant=right)


def nearest_similarity(case: Case) -> Answer:
    """Which other similarity gives the row that is nearest to the trained one.

    The row's queries and keys stay what they are if only this head is changed and the output is held, so that the
    rows can be computed here, without further runs.
    """
    found = walk_of(case)
    place = (found.kind, found.layer, found.head)
    sigma = round(found.d_head**0.25, 3)  # σ² = √d_head: a kernel differs from q · k / √d_head by the keys' lengths
    lengths = np.linalg.norm(found.q) * np.linalg.norm(found.keys, axis=1)  # [key]
    scores = {
        "dot": found.dots,
        "cosine": found.dots / np.maximum(lengths, TINY),
        "kernel": -((found.keys - found.q) ** 2).sum(axis=1) / (2 * sigma**2),
    }
    trained, is_open = found.weights[found.allowed], found.allowed
    apart = {how: float(np.abs(_softmax(made[is_open]) - trained).sum() / 2) for how, made in scores.items()}
    first, second, _ = sorted(apart, key=lambda how: apart[how])
    if apart[second] - apart[first] < CLEARLY:
        raise NotHere("Two of these similarities are about equally near here; try another sentence.")
    values = {
        **apart,
        "sigma": sigma,
        "do": str(OtherSimilarity(*place, how=first, sigma=sigma)),
        "forced": ".".join(map(str, case.trace.tgt_ids)),
    }
    return Answer(right=first, options=worded(*apart), values=values, variant=first)


def _both(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """The weights of the open keys without the division, and with it [open key]."""
    found = walk_of(case)
    dots = found.dots[found.allowed]
    return _softmax(dots), _softmax(dots * found.how.scale)


def _softmax(scores: np.ndarray) -> np.ndarray:
    exps = np.exp(scores - scores.max())
    return np.asarray(exps / exps.sum())


def _slope(weights: np.ndarray) -> float:
    """The norm of the softmax's derivative, diag(w) - w wᵀ."""
    return float(np.linalg.norm(np.diag(weights) - np.outer(weights, weights)))


def _entropy(weights: np.ndarray) -> float:
    positive = weights[weights > 0]
    return float(-(positive * np.log2(positive)).sum())
