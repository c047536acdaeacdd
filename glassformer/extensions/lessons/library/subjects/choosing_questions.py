"""Questions about the choice of a piece: temperature, top-p, seeds, a single beam, and all steps together.

Picks: which choice of a piece a lesson looks at, and how wide it could be.
"""

import math
from typing import Any, Final

from glassformer.extensions.lessons.library.case import (
    NEAR,
    ROUNDING,
    Answer,
    Case,
    NotHere,
    Option,
    between,
    numbered,
    worded,
)
from glassformer.extensions.lessons.library.subjects.steps import written
from transformer.analysis.reshaping import Spread, reshaped, spread
from transformer.analysis.worth_seeing import hardest_step as least_sure
from transformer.runs.query import Beam, Sampling

NINE_TENTHS: Final = 0.9


def open_choice(case: Case) -> dict[str, Any]:
    """The step at which the model was least sure, of those that were chosen and not forced."""
    trace, n_steps = case.trace, written(case, least=1)
    if trace.n_forced >= n_steps:
        raise NotHere("Every piece of this output was forced; try another sentence.")
    at, n_pieces = least_sure(trace.entropies(), range(trace.n_forced, n_steps)), len(trace.vocabulary)
    return {
        "step": at + 1,
        "h": float(trace.entropies()[at]),
        "most": math.log2(n_pieces),
        "pieces": n_pieces,
        "nine": math.ceil(NINE_TENTHS * n_pieces),
    }


SEEN: Final = 0.001  # a probability has changed if it did by this much; a page shows it with four digits
BINS: Final = {"one": (1, 1), "few": (2, 10), "some": (11, 100), "many": (101, math.inf)}
N_DRAWS: Final = 1_000
SAME_NATS: Final = 1e-4


def sharpened(case: Case) -> Answer:
    """What half the temperature makes of the favourite."""
    warm, cold = _at(case, Sampling()), _at(case, Sampling(temperature=0.5))
    if abs(cold.top - warm.top) < SEEN:
        raise NotHere(
            "In this distribution, one piece has all the probability, or all pieces are equally probable; try "
            "another sentence."
        )
    right = "other" if cold.best != warm.best else ("surer" if cold.top > warm.top else "less")
    values = {"piece": case.trace.vocabulary[warm.best], "p": warm.top, "p2": cold.top}
    return Answer(right=right, options=worded("surer", "less", "other"), values=values)


def flattened(case: Case) -> Answer:
    """How near twice the temperature brings the entropy to the most that there can be."""
    warm, hot, most = _at(case, Sampling()), _at(case, Sampling(temperature=2.0)), float(case.picked["most"])
    if abs(hot.entropy - warm.entropy) < SEEN:
        raise NotHere("This distribution is the same at every temperature; try another sentence.")
    share = hot.entropy / most
    if hot.entropy < warm.entropy:
        right = "falls"
    else:
        right = between((1 / 2, NINE_TENTHS), share, ("half", "between", "above"))
    values = {"h1": warm.entropy, "h2": hot.entropy, "as_if": 2**hot.entropy}
    return Answer(right=right, options=worded("falls", "half", "between", "above"), values=values, variant=right)


def kept_by_top_p(case: Case) -> Answer:
    """How many pieces top-p 0.9 keeps."""
    nine = int(case.picked["nine"])
    least, kept, most = (_at(case, Sampling(top_p=NINE_TENTHS + by)).left for by in (-ROUNDING, 0.0, ROUNDING))
    options = [Option(word, _range(low, min(high, nine - 1))) for word, (low, high) in BINS.items() if low < nine]

    def word(n: int) -> str:
        return "share" if n >= nine else next(word for word, (low, high) in BINS.items() if low <= n <= high)

    right = word(kept)
    if not word(least) == right == word(most):
        raise NotHere(NEAR)
    values = {"n": kept, "top": _at(case, Sampling()).top}
    variant = right if right in ("one", "share") else "several"
    return Answer(right=right, options=(*options, Option("share")), values=values, variant=variant)


def _range(least: int, most: float) -> str:
    return f"{least:,}" if most == least else f"{least:,} – {most:,}"


def _at(case: Case, how: Sampling) -> Spread:
    """The distribution that is drawn from at the step that was picked."""
    at = case.at("step")
    return spread(reshaped(case.trace.log_probs[at], case.trace.scores_at(at), how).cut)


def seeds(case: Case) -> Answer:
    """Which of three draws write the same: two with one seed, one with another."""
    written(case, least=1)
    one = case.another(decoding=Sampling(seed=1))
    again = case.checkpoint.run(one.query)  # made anew: another run with the same query might be kept
    other = case.another(decoding=Sampling(seed=2))
    alike = "all" if other.tgt_ids == one.tgt_ids else "pair"
    right = alike if again.tgt_ids == one.tgt_ids else "none"
    values = {"one": one.output_text.strip() or "–", "other": other.output_text.strip() or "–"}
    return Answer(right=right, options=worded("all", "pair", "none"), values=values, variant=right)


def one_beam(case: Case) -> Answer:
    """Whether a beam search that keeps one beginning writes what greedy decoding does."""
    written(case, least=1)
    beam = case.another(decoding=Beam(size=1, length_penalty=0.0))
    same = beam.tgt_ids == case.trace.tgt_ids
    if not same and math.isclose(beam.log_prob, case.trace.log_prob, abs_tol=SAME_NATS):
        raise NotHere(NEAR)
    right = "same" if same else ("more" if beam.log_prob > case.trace.log_prob else "less")
    values = {"g": case.trace.log_prob, "b": beam.log_prob}
    return Answer(right=right, options=worded("more", "same", "less"), values=values)


def draws_like_greedy(case: Case) -> Answer:
    """How many of many draws can be expected to be greedy's output: the product over its steps."""
    trace, n_steps = case.trace, written(case, least=3)
    at_steps = [  # of the piece that was written, in what sampling would draw from
        float(reshaped(trace.log_probs[step], trace.scores_at(step), Sampling()).tempered[trace.tgt_ids[step]])
        for step in range(trace.n_forced, n_steps)
    ]
    if not at_steps:
        raise NotHere("Every piece of this output was forced; try another sentence.")
    product, mean, least = math.prod(at_steps), sum(at_steps) / len(at_steps), min(at_steps)
    counts = {"product": product, "least": least, "mean": mean}
    shown = {word: round(N_DRAWS * share) for word, share in counts.items()}
    if len(set(shown.values())) < len(shown):
        raise NotHere("Nearly all draws for this sentence are the same; try a longer or harder sentence.")
    values = {"n": shown["product"], "draws": N_DRAWS, "n_steps": len(at_steps), "mean": mean, "least": least}
    return Answer(right="product", options=numbered(shown), values=values)
