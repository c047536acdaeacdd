"""Significance of loss differences (t-test, sign test, Wilcoxon), and the verdict on choices as a sentence.

Both choices were tried on the same texts, so only the difference on each text counts. One is taken to be better if
chance alone would make the mean difference as large, or as many of them positive, at most once in twenty times.

Source: Student, "The Probable Error of a Mean" (1908); Fisher, "Statistical Methods for Research Workers" (1925), for
the sign test; Wilcoxon, "Individual Comparisons by Ranking Methods" (1945), for that of signed ranks.
"""

import math
from collections.abc import Sequence
from statistics import fmean, stdev

from transformer.analysis.losses import Loss
from transformer.i18n import Sentence, say, say_n

# Student's t for 95 %, by degrees of freedom from 1; above, the last.
T_95 = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13, 2.09)
SAME = 1e-4
"""Nats per piece that rounding can make between two equal models; no reader would notice them."""
POOR = 0.3  # of the loss of guessing: a model that was trained for such texts has less
ALIKE = 0.01  # of the loss of guessing: two choices that differ by less do equally well


def surely_better(best: Loss, other: Loss) -> bool:
    """Whether the texts show that one choice is better than another."""
    shares = zip(best.totals, best.pieces, other.totals, other.pieces, strict=True)
    differences = [o / max(1, m) - b / max(1, n) for b, n, o, m in shares]
    return any(shows(differences) for shows in (_mean_is_positive, _signs_are_positive, _ranks_are_positive))


def _mean_is_positive(differences: Sequence[float]) -> bool:
    """Student's t; a single text shows nothing of the chance."""
    n, mean = len(differences), fmean(differences)
    if n < 2 or mean <= SAME:
        return False
    return mean > T_95[min(n - 1, len(T_95)) - 1] * stdev(differences) / math.sqrt(n)


def _signs_are_positive(differences: Sequence[float]) -> bool:
    """Fisher's sign test, which does not mind that one text is much harder than the others."""
    real = [one for one in differences if abs(one) > SAME]
    n, worse = len(real), sum(one < 0 for one in real)
    return n > 0 and 2 * sum(math.comb(n, k) for k in range(worse + 1)) / 2**n <= 0.05


def _ranks_are_positive(differences: Sequence[float]) -> bool:
    """Wilcoxon's signed ranks, in which a text counts the more, the more it differs."""
    real = sorted((one for one in differences if abs(one) > SAME), key=abs)
    against = sum(rank for rank, one in enumerate(real, start=1) if one < 0)
    ways = [1] + [0] * against  # how many choices of signs have each sum of ranks
    for rank in range(1, len(real) + 1):
        for total in range(against, rank - 1, -1):
            ways[total] += ways[total - rank]
    return bool(real) and sum(ways) / 2 ** len(real) <= 0.05


def same(one: Loss, other: Loss) -> bool:
    """Whether two choices compute the same, up to rounding."""
    return all(
        n == m and abs(a - b) <= SAME * max(1, n)
        for a, b, n, m in zip(one.totals, other.totals, one.pieces, other.pieces, strict=True)
    )


def verdict(losses: Sequence[tuple[str, Loss]], *, guessing: float, written: bool, pairs: bool = True) -> Sentence:
    """What the losses say, as a sentence: each choice that was tried, as text, with its loss; best first.

    `guessing` is the loss of a model that finds every piece equally likely. `written` says that the losses are of the
    model's own outputs; `pairs`, that targets were given, which a trained model nearly knows: a text alone may surprise
    every model.
    """
    (first, best), *others = losses
    texts = say_n("{n} text", "{n} texts", len(best.totals))
    if others and all(same(best, other) for _, other in others):
        return say(
            "All choices give the same result on {texts}, so this comparison cannot decide between them.", texts=texts
        )
    if written:
        return _of_what_it_writes(losses, texts)
    loss = _number(best.mean)
    if pairs and best.mean > POOR * guessing:
        return say(
            "None of the choices fits well. The best, {best}, has a loss of {loss} on {texts}; random guessing "
            "would have a loss of {guessing}. Something else may be wrong: the tokenizer, the ids, the marks "
            "around the source or the output, or the order of source and target.",
            best=first,
            loss=loss,
            texts=texts,
            guessing=_number(guessing),
        )
    if not others:
        return say("{best} fits (loss {loss} on {texts}).", best=first, loss=loss, texts=texts)
    second, figure = others[0][0], _number(others[0][1].mean)
    close = [(name, other) for name, other in others if not surely_better(best, other)]
    names = ", ".join(name for name, _ in close)
    if close and max(other.mean for _, other in close) - best.mean <= ALIKE * guessing:
        return say(
            "{best} fits best (loss {loss} on {texts}), but not clearly better than {values} (next-best loss "
            "{next}). You can use any of them.",
            best=first, loss=loss, texts=texts, values=names, next=figure,
        )  # fmt: skip
    if close:
        return say(
            "{best} fits best (loss {loss} on {texts}), but not clearly better than {values} (next-best loss "
            "{next}). With more texts, the difference may become clear.",
            best=first, loss=loss, texts=texts, values=names, next=figure,
        )  # fmt: skip
    return say(
        "{best} fits best (loss {loss} on {texts}); the next best is {value} (loss {next}).",
        best=first, loss=loss, texts=texts, value=second, next=figure,
    )  # fmt: skip


def _of_what_it_writes(losses: Sequence[tuple[str, Loss]], texts: Sentence) -> Sentence:
    """The same without given outputs: only the model's own certainty is known."""
    (first, best), *others = losses
    share = _share(best)
    if not others:
        return say(
            "With {best}, the tokens that the model writes for {texts} have a mean probability of {share}.",
            best=first,
            texts=texts,
            share=share,
        )
    figure = _share(others[0][1])
    close = ", ".join(name for name, other in others if not surely_better(best, other))
    if close:
        return say(
            "With {best}, the tokens that the model writes for {texts} have a mean probability of {share}, not "
            "clearly more than with {values} (next best {next}). A comparison on pairs of source and target is "
            "more reliable.",
            best=first, texts=texts, share=share, values=close, next=figure,
        )  # fmt: skip
    return say(
        "With {best}, the tokens that the model writes for {texts} have a mean probability of {share}; the next "
        "best is {value} ({next}). A model with a wrong setting may be just as certain of what it writes: only "
        "pairs of source and target can decide.",
        best=first, texts=texts, share=share, value=others[0][0], next=figure,
    )  # fmt: skip


def _share(loss: Loss) -> str:
    return f"{math.exp(-loss.mean):.2%}"


def _number(loss: float) -> str:
    return f"{loss:.3g}" if loss >= 0.001 else f"{loss:.5f}"
