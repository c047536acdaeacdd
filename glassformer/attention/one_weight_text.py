"""TeX formulas of the part "One weight" with rounded numbers, its softmax table, notes where scores are unusual.

The operands of a line have six significant digits. A result has at most four, as many as are correct when it is
computed from the written operands; rounded to these digits it equals the model's number, too. Formulas hold our own
words and numbers only, never pieces.

The end of the module says where the steps differ from the paper's, or where a change of the run acts within them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from transformer.analysis.one_weight import Projection, Walk, biased
from transformer.i18n import joined, say, say_n, through
from transformer.model.config import ModelConfig

INPUT_DIGITS = 6
RESULT_DIGITS = 4
MOST_KEYS = 8
MOST_TERMS = 3
_MOST_DECIMALS = 9
APART = 1e-3  # rounding in single precision is far below it, what a change does far above


def number(value: float, digits: int = INPUT_DIGITS) -> str:
    """A number as a person writes it: `0.0123457`, `-3.2`, `1.5e-07`; zeros at the end are left out."""
    return f"{value + 0.0:.{digits}g}"


def result(exact: float, by_hand: float, *, most: int = RESULT_DIGITS) -> str:
    """A result, with as many digits as those find too who compute it by hand from the numbers as they are written."""
    if not (np.isfinite(exact) and np.isfinite(by_hand)):
        return number(exact)
    if exact == by_hand == round(exact):
        return number(exact)
    for digits in range(most, 0, -1):
        written = f"{exact:#.{digits}g}"
        if written == f"{by_hand:#.{digits}g}":
            return written.rstrip(".")
    for decimals in range(_MOST_DECIMALS, 0, -1):  # both are next to 0: all digits that agree are zeros
        written = f"{exact:.{decimals}f}"
        if written.lstrip("-") == f"{by_hand:.{decimals}f}".lstrip("-"):
            return written.lstrip("-") if float(written) == 0 else written
    return number(exact, 1)


def tex(written: str) -> str:
    """A written number in a formula."""
    if written in ("inf", "-inf", "nan"):
        return {"inf": r"\infty", "-inf": r"-\infty", "nan": r"\text{nan}"}[written]
    mantissa, _, power = written.partition("e")
    return rf"{mantissa}\cdot 10^{{{int(power)}}}" if power else mantissa


def _factor(written: str) -> str:
    """A number after a sign of multiplication or addition: brackets around what begins with a sign."""
    return rf"({tex(written)})" if written.startswith("-") else tex(written)


@through
def _text(words: str) -> str:
    return rf"\text{{{words}}}"


def _lines(*lines: str) -> str:
    return joined("", [r"\begin{aligned}", joined(r"\\ ", lines), r"\end{aligned}"])


def products(
    name: str, left: np.ndarray, right: np.ndarray, *, first: Sequence[int] = (), most: int = MOST_TERMS
) -> str:
    """The sum of left · right, both `[n]`, as a formula: the largest terms, one a line, and the sum of the others.

    `name` is what is summed up, in TeX; the terms `first` are written in any case.
    """
    terms = left * right
    order = [*first, *(int(i) for i in np.argsort(-np.abs(terms), kind="stable") if i not in first)]
    kept = sorted(order[:most])
    others = np.delete(terms, kept)
    factors = [(number(left[i]), number(right[i])) for i in kept]
    rest = number(float(others.sum())) if others.size else ""
    by_hand = sum(float(a) * float(b) for a, b in factors) + float(rest or 0)
    parts = [rf"{_factor(a)}\cdot {_factor(b)}" for a, b in factors]
    if rest:
        remark = say_n("({n:,} other term)", "({n:,} other terms)", len(others))
        parts.append(joined(r"\ ", [_factor(rest), _text(remark)]))
    beginnings = [f"{name} &= ", *["&+ "] * len(parts)]
    lines = [joined("", line) for line in zip(beginnings, parts, strict=False)]
    return _lines(*lines, f"&= {tex(result(float(terms.sum()), by_hand))}")


def projection(name: str, made: Projection) -> str:
    """The number of W · x + b with the largest absolute value, as a formula."""
    place = int(np.nan_to_num(np.abs(made.made)).argmax())
    weights, x = made.matrix[place], made.x
    if made.bias[place]:  # one more term, b · 1
        weights, x = np.append(weights, made.bias[place]), np.append(x, 1.0)
    return products(rf"{name}_{{{place}}}", weights, x)


def dot(walk: Walk) -> str:
    """q . k of the chosen key."""
    return products(r"q\cdot k", walk.q, walk.keys[walk.key])


def score(walk: Walk) -> str:
    """q . k over sqrt(d_head)."""
    written, root = number(walk.dots[walk.key]), number(float(np.sqrt(walk.d_head)))
    found = result(walk.scores[walk.key], float(written) / float(root))
    return rf"\frac{{q\cdot k}}{{\sqrt{{{walk.d_head}}}}} = \frac{{{tex(written)}}}{{{tex(root)}}} = {tex(found)}"


def score_otherwise(walk: Walk, *, with_bias: bool) -> str:
    """The score where it is not q . k / sqrt(d_head): times the scale, plus the bias, capped; a line for each."""
    written, scale = number(walk.dots[walk.key]), number(walk.how.scale)
    added = number(walk.added[walk.key])
    by_hand = float(written) * float(scale) + (float(added) if with_bias else 0.0)
    exact = walk.dots[walk.key] * walk.how.scale + walk.added[walk.key]
    bias = rf" + {_factor(added)}" if with_bias else ""
    product, total = rf" &= {_factor(written)}\cdot {_factor(scale)}{bias}", rf"&= {tex(result(exact, by_hand))}"
    name = _text(say("score"))
    if walk.how.cap is None:
        return _lines(joined("", [name, product]), total)
    s, cap = number(exact), number(walk.how.cap)
    capped = result(walk.scores[walk.key], float(cap) * float(np.tanh(float(s) / float(cap))))
    limited = joined("", [name, rf" &= {tex(cap)}\cdot\tanh\frac{{{tex(s)}}}{{{tex(cap)}}}"])
    return _lines(rf"s{product}", total, limited, rf"&= {tex(capped)}")


def masked(walk: Walk) -> str:
    """The score and the mask."""
    written = tex(number(walk.scores[walk.key]))
    if walk.how.fill is not None:
        return rf"{written} \to {tex(number(walk.masked[walk.key]))}"
    if walk.allowed[walk.key]:
        return rf"{written} + 0 = {written}"
    return rf"{written} + (-\infty) = -\infty"


@dataclass(frozen=True)
class TableRow:
    """One line of the softmax's table, as written."""

    key: int | None  # which key, from 0; None for a line of several
    n_keys: int  # how many keys it stands for
    score: str  # after the mask; "" for several
    exp: str  # exp(score - the largest score)
    weight: str  # exp / total


def shown_keys(walk: Walk) -> list[int]:
    """The keys that are listed one by one, in order: the chosen one and those of the largest weights."""
    order = [walk.key, *(int(i) for i in np.argsort(-walk.weights, kind="stable") if i != walk.key)]
    return sorted(order[:MOST_KEYS])


def softmax_table(walk: Walk) -> tuple[list[TableRow], str]:
    """The softmax of the row, line by line, and the sum, computed from the exponentials as written."""
    kept = shown_keys(walk)
    peak = 0.0 if walk.peak is None else float(number(walk.peak))
    scores = [number(walk.masked[i]) for i in kept]
    exps = [result(walk.exps[i], float(np.exp(float(s) - peak)), most=5) for i, s in zip(kept, scores, strict=True)]
    others = np.delete(np.arange(len(walk.weights)), kept)
    rest = number(float(walk.exps[others].sum()), 5)
    total = result(walk.total, sum(map(float, exps)) + float(rest), most=5)

    def weight(exact: float, exp: str) -> str:
        return result(exact, float(exp) / float(total) if float(total) else 0.0)

    rows = [
        TableRow(key, 1, written, exp, weight(walk.weights[key], exp))
        for key, written, exp in zip(kept, scores, exps, strict=True)
    ]
    if others.size:
        rows.append(TableRow(None, len(others), "", rest, weight(float(walk.weights[others].sum()), rest)))
    return rows, total


def softmax(walk: Walk) -> str:
    """The weight of the chosen key."""
    if walk.peak is None:
        return _text(say("the mask closes every key: all weights are 0"))
    rows, total = softmax_table(walk)
    row, weight = next(row for row in rows if row.key == walk.key), _text(say("weight"))
    if np.isneginf(walk.masked[walk.key]):
        return joined("", [r"e^{-\infty} = 0,\quad ", weight, rf" = \frac{{0}}{{{tex(total)}}} = 0"])
    return _lines(
        rf"d &= {tex(row.score)} - {_factor(number(walk.peak))}",
        rf"e^d &= {tex(row.exp)}",
        joined("", [weight, rf" &= \frac{{{tex(row.exp)}}}{{{tex(total)}}} = {tex(row.weight)}"]),
    )


def head_output(walk: Walk) -> tuple[int, str]:
    """The largest number of the head's output: its dimension, from 0, and how it comes to be."""
    dimension = int(np.nan_to_num(np.abs(walk.head_out)).argmax())
    values = walk.values[:, dimension]
    return dimension, products(rf"o_{{{dimension}}}", walk.weights, values, first=(walk.key,), most=2)


def share(walk: Walk) -> tuple[int, str]:
    """The largest number of the head's share of the output: its dimension, from 0, and how it comes to be."""
    dimension = int(np.nan_to_num(np.abs(walk.shares[walk.head])).argmax())
    return dimension, products(rf"y_{{{dimension}}}", walk.head_out, walk.w_o[dimension])


def norm_share(walk: Walk) -> str:
    """The length of the head's share over the sum of all heads' lengths."""
    own, total = float(walk.norms[walk.head]), float(walk.norms.sum())
    if not total:
        return _text(say("no head contributes anything"))
    top, bottom = number(own), number(total)
    found = result(own / total, float(top) / float(bottom))
    return rf"\frac{{\lVert y\rVert}}{{\sum\lVert y\rVert}} = \frac{{{tex(top)}}}{{{tex(bottom)}}} = {tex(found)}"


def differences(walk: Walk) -> str:
    """How far this is from what the model recorded, in a sentence."""
    d = walk.differences
    return say("All these numbers were computed again in double precision from the model's own q, k, v and W_O. In "
               "this row, they differ from the model's single-precision numbers by at most {scores:.1e} (scores), "
               "{weights:.1e} (weights) and {head:.1e} (head's output). The sum of all heads' contributions and "
               "the bias differs from the sub-layer's output by at most {output:.1e}.", scores=d.scores,
               weights=d.weights, head=d.head, output=d.output)  # fmt: skip


def other_keys(count: int) -> str:
    """What stands for the keys that are not listed."""
    return say_n("{n:,} other key", "{n:,} other keys", count)


# ------------------------------------------------------------------------------------------------ otherwise


def is_otherwise(config: ModelConfig, walk: Walk) -> bool:
    """Whether a score is made otherwise."""
    scaled = walk.how.scale == 1 / np.sqrt(walk.d_head)
    return not scaled or config.score_cap is not None or biased(config, walk.kind)


def is_changed(config: ModelConfig, walk: Walk) -> bool:
    """Whether queries and keys are normed or turned before they are multiplied."""
    turned = config.rotary is not None and walk.kind != "cross" and walk.layer not in config.unplaced_layers
    return config.qk_norm or turned


def score_stage(config: ModelConfig, walk: Walk) -> tuple[str, str, str]:
    """The stage's heading, its text and its formula."""
    said = [_scale(walk)]
    if config.placing.in_score and biased(config, walk.kind):
        said.append(config.placing.in_score)
    if walk.how.cap is not None:
        cap = walk.how.cap
        said.append(say("Then the score s is capped: {cap:g} · tanh(s / {cap:g}) never exceeds ±{cap:g}.", cap=cap))
    formula = score_otherwise(walk, with_bias=biased(config, walk.kind))
    return say("##### 3. The score"), joined(" ", said), formula


def _scale(walk: Walk) -> str:
    n, scale = walk.d_head, walk.how.scale
    if scale == 1:
        return say("q · k is computed in the same way for every key. This model does not divide it by √{n}.", n=n)
    if scale == 1 / np.sqrt(n):
        return say(
            "q · k is computed in the same way for every key. Dividing it by √{n} means multiplying it by {scale:.6g}.",
            n=n,
            scale=scale,
        )
    return say("q · k is computed in the same way for every key. This model multiplies it by {scale:.6g}.", scale=scale)


def replaced(fill: float) -> str:
    """What a mask does that fills in a number."""
    return say(
        "The mask keeps the scores of keys that the query may see and replaces all other scores with {fill:g}. If "
        "this number is far below the scores that are kept, the replaced ones get no weight.",
        fill=fill,
    )


def is_apart(walk: Walk) -> bool:
    """Whether the steps give other numbers than the run had, by more than rounding."""
    d = walk.differences
    return max(d.scores, d.weights, d.head, d.output) > APART


def changed(walk: Walk) -> str:
    """What is said where a change of the run acts between the steps."""
    d = walk.differences
    return say("In this run, something inside this attention sub-layer was changed. The steps below start from the "
               "recorded queries, keys and values, so their numbers differ from the run's: scores by up to "
               "{scores:.2g}, weights by {weights:.2g}, the head's output by {head:.2g}, and the sub-layer's "
               "output by {output:.2g}. The other parts of this page show the run's own numbers.", scores=d.scores,
               weights=d.weights, head=d.head, output=d.output)  # fmt: skip
