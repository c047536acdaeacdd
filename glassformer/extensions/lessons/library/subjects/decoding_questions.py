"""Computed lesson answers on decoding: start mark, unsure step, forced tokens, beams, temperature, top-p, seeds.

Picks: which choice of a piece a lesson looks at, and how wide it could be.
"""

import math
from typing import Any, Final, Literal

import numpy as np

from glassformer.extensions.lessons.library.lesson import (
    ROUNDING,
    Answer,
    Case,
    Option,
    QuestionNotApplicable,
    Refusal,
    above,
    between,
    numbered,
    only_rounding,
    refuse_if,
)
from transformer.analysis.one_weight import hardest_step as least_sure
from transformer.i18n import say
from transformer.runs.distribution import Spread, reshaped, spread
from transformer.runs.query import Beam, Sampling
from transformer.runs.trace import Trace
from transformer.text.tokenizer import SPACE_MARK

ALL_FORCED: Final = say("Every token of this output was forced; try another sentence.")
UNMOVED: Final = say(
    "In this distribution, one token has all the probability, or all tokens are equally probable; try another sentence."
)
CLEAR_BITS: Final = 0.2  # by how much the least sure step has to stand out to be asked for
SAME_NATS: Final = 1e-4  # log-probabilities that are nearer than this are the same, up to rounding
ROUNDS_TO_ALL: Final = 0.995  # a share from here on reads 100 %, which no softmax gives
N_BACK_AND_FORTH: Final = 10
MOST_CHOICES: Final = 4


def read_piece(case: Case) -> Answer:
    """What the decoder reads before it has written anything."""
    trace, is_special = case.trace, case.checkpoint.src_tokenizer.is_special
    case.written(least=1)
    refuse_if(trace.first_row, say("A decoder-only model reads the prompt first and has no start mark of its own."))
    start = trace.read_tokens[0]
    pieces = [piece for i, piece in zip(trace.src_ids, trace.src_tokens, strict=True) if not is_special(i)]
    pieces = [piece for piece in pieces if piece != SPACE_MARK] or pieces  # by itself nobody can read it
    refuse_if(not pieces, Refusal.ONLY_SPECIAL)
    options = [Option("start", start), Option("first", pieces[0])]
    if pieces[-1] != pieces[0]:
        options.append(Option("last", pieces[-1]))
    return Answer("start", {"start": start}, options=(*options, Option("nothing")))


def rank_of_guess(case: Case) -> Answer:
    """Which place the learner's guess has among all pieces at the first step."""
    case.written(least=1)
    step, tokenizer = case.trace.step(0), case.checkpoint.tgt_tokenizer
    best = step.candidates[0]
    values = {"piece": best.piece, "p": best.probability, "n": len(case.trace.vocabulary)}
    ids = [i for i in tokenizer.encode(case.given).ids if not tokenizer.is_special(i)] if case.given.strip() else []
    right = tokenizer.decode((best.id,)).strip() or best.piece
    if not ids:
        values |= {"rank": 0, "guess": ""}
        return Answer(right, values, variant="unknown", accepted=(best.piece,))
    rank = case.trace.rank_of(ids[0], step=0)
    values |= {"rank": rank, "guess": tokenizer.piece(ids[0])}
    accepted = (best.piece, case.given.strip()) if ids[0] == best.id else (best.piece,)
    return Answer(right, values, variant="first" if rank == 1 else "later", accepted=accepted)


def hardest_step(case: Case) -> Answer:
    """At which step the model was least sure, if one stands out."""
    trace = case.trace
    case.written(least=4)
    entropies = trace.entropies()
    order = np.argsort(-entropies, kind="stable")
    hardest, easiest = int(order[0]), int(order[-1])
    spread = float(entropies[hardest] - entropies[easiest])
    surest = trace.step(easiest).candidates[0].probability
    values = {
        "piece": trace.tgt_tokens[hardest],
        "h": float(entropies[hardest]),
        "as_if": 2 ** float(entropies[hardest]),
        "easy": trace.tgt_tokens[easiest],
        "h2": float(entropies[easiest]),
        "p2": surest,
        "d": spread,
    }
    below = [int(one) for one in order if entropies[one] <= entropies[hardest] - CLEAR_BITS]
    others = below[:: max(1, len(below) // (MOST_CHOICES - 1))][: MOST_CHOICES - 1]
    if entropies[order[0]] - entropies[order[1]] >= CLEAR_BITS and others:
        chosen = [hardest, *others]
        right = f"step-{hardest + 1}"
    elif not above(spread, CLEAR_BITS):
        chosen = [int(one) for one in order[: MOST_CHOICES - 1]]
        right = "equal"
    else:
        raise QuestionNotApplicable(Refusal.NO_WINNER)
    options = [Option(f"step-{one + 1}", f"{one + 1} · {trace.tgt_tokens[one]}") for one in sorted(chosen)]
    smoothed = bool(case.checkpoint.card.label_smoothing())
    clear = "clear_sure" if surest >= ROUNDS_TO_ALL else "clear"
    variant = clear if right != "equal" else ("equal_smoothed" if smoothed else "equal")
    return Answer(right, values, options=(*options, Option("equal")), variant=variant)


def branch(case: Case) -> Answer:
    """What becomes of the rest if the second-best piece is forced at the step that was picked."""
    trace, at = case.trace, case.at("step")
    forced = (*trace.tgt_ids[:at], int(case.picked["alt_id"]))
    other = case.another(forced=forced)
    before, after = trace.tgt_ids[at + 1 :], other.tgt_ids[at + 1 :]
    differ = sum(a != b for a, b in zip(before, after, strict=False)) + abs(len(before) - len(after))
    values = {"alt": case.picked["alt"], "n": differ, **case.outputs(other), "forced": ".".join(map(str, forced))}
    ends = case.checkpoint.config.end_ids
    if len(after) <= 1 and (not after or after[0] in ends) and len(before) > 1:
        right = "ended"
    else:
        right = "changed" if differ else "same"
    return Answer(right, values)


def passes(case: Case) -> Answer:
    """How often the model has to run for steps back and forth: for each step that the finished pass does not hold."""
    n_steps, trace = case.written(least=2), case.trace
    visited = range(max(0, n_steps - N_BACK_AND_FORTH), n_steps)
    # Whether a step is the same in a pass over the whole output and in one that ends there.
    ends = ((step, case.another(max_new=step + 1)) for step in visited)
    again = sum(not only_rounding(float(np.abs(trace.log_probs[at] - one.log_probs[at]).max())) for at, one in ends)
    options = numbered({str(n): n for n in (again, 0, 1, N_BACK_AND_FORTH, N_BACK_AND_FORTH * n_steps)})
    return Answer(str(again), {"k": again, "n": n_steps}, options=options)


def beam_against_greedy(case: Case) -> Answer:
    """Whether five beams find a more probable output than taking the most probable piece each time."""
    beam, right = _by_beams(case, 5)
    ours, theirs = case.trace.log_prob, beam.log_prob
    apart = next((i for i, (a, b) in enumerate(zip(case.trace.tgt_ids, beam.tgt_ids, strict=False)) if a != b), 0)
    piece = case.trace.tgt_tokens[apart] if case.trace.n_steps else ""
    return Answer(right, {"b": theirs, "g": ours, "piece": piece, "at": apart + 1})


def _by_beams(case: Case, size: int) -> tuple[Trace, Literal["more", "same", "less"]]:
    """The run by so many beams, and whether its output is more probable than the learner's."""
    case.written(least=1)
    beam = case.another(decoding=Beam(size=size, length_penalty=0.0))
    if beam.tgt_ids == case.trace.tgt_ids:
        return beam, "same"
    refuse_if(math.isclose(beam.log_prob, case.trace.log_prob, abs_tol=SAME_NATS), Refusal.NEAR)
    return beam, "more" if beam.log_prob > case.trace.log_prob else "less"


NINE_TENTHS: Final = 0.9


def open_choice(case: Case) -> dict[str, Any]:
    """The step at which the model was least sure, of those that were chosen and not forced."""
    trace, n_steps = case.trace, case.written(least=1)
    refuse_if(trace.n_forced >= n_steps, ALL_FORCED)
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


def sharpened(case: Case) -> Answer:
    """What half the temperature makes of the favourite."""
    warm, cold = _at(case, Sampling()), _at(case, Sampling(temperature=0.5))
    refuse_if(abs(cold.top - warm.top) < SEEN, UNMOVED)
    right = "other" if cold.best != warm.best else ("surer" if cold.top > warm.top else "less")
    return Answer(right, {"piece": case.trace.vocabulary[warm.best], "p": warm.top, "p2": cold.top})


def flattened(case: Case) -> Answer:
    """How near twice the temperature brings the entropy to the most that there can be."""
    warm, hot, most = _at(case, Sampling()), _at(case, Sampling(temperature=2.0)), float(case.picked["most"])
    refuse_if(abs(hot.entropy - warm.entropy) < SEEN, UNMOVED)
    share = hot.entropy / most
    if hot.entropy < warm.entropy:
        right = "falls"
    else:
        right = between((1 / 2, NINE_TENTHS), share, ("half", "between", "above"))
    return Answer(right, {"h1": warm.entropy, "h2": hot.entropy, "as_if": 2**hot.entropy})


def kept_by_top_p(case: Case) -> Answer:
    """How many pieces top-p 0.9 keeps."""
    nine = int(case.picked["nine"])
    least, kept, most = (_at(case, Sampling(top_p=NINE_TENTHS + by)).left for by in (-ROUNDING, 0.0, ROUNDING))
    options = [Option(word, _range(low, min(high, nine - 1))) for word, (low, high) in BINS.items() if low < nine]

    def word(n: int) -> str:
        return "share" if n >= nine else next(word for word, (low, high) in BINS.items() if low <= n <= high)

    right = word(kept)
    refuse_if(not word(least) == right == word(most), Refusal.NEAR)
    values = {"n": kept, "top": _at(case, Sampling()).top}
    variant = right if right in ("one", "share") else "several"
    return Answer(right, values, options=(*options, Option("share")), variant=variant)


def _range(least: int, most: float) -> str:
    return f"{least:,}" if most == least else f"{least:,} – {most:,}"


def _at(case: Case, how: Sampling) -> Spread:
    """The distribution that is drawn from at the step that was picked."""
    at = case.at("step")
    return spread(reshaped(case.trace.log_probs[at], case.trace.scores_at(at), how).cut)


def seeds(case: Case) -> Answer:
    """Which of three draws write the same: two with one seed, one with another."""
    case.written(least=1)
    one = case.another(decoding=Sampling(seed=1))
    again = case.checkpoint.run(one.query)  # made anew: another run with the same query might be kept
    other = case.another(decoding=Sampling(seed=2))
    alike = "all" if other.tgt_ids == one.tgt_ids else "pair"
    right = alike if again.tgt_ids == one.tgt_ids else "none"
    return Answer(right, {"one": one.output_text.strip() or "–", "other": other.output_text.strip() or "–"})


def one_beam(case: Case) -> Answer:
    """Whether a beam search that keeps one beginning writes what greedy decoding does."""
    beam, right = _by_beams(case, 1)
    return Answer(right, {"g": case.trace.log_prob, "b": beam.log_prob})


def draws_like_greedy(case: Case) -> Answer:
    """How many of many draws can be expected to be greedy's output: the product over its steps."""
    trace, n_steps = case.trace, case.written(least=3)
    at_steps = [  # of the piece that was written, in what sampling would draw from
        float(reshaped(trace.log_probs[step], trace.scores_at(step), Sampling()).tempered[trace.tgt_ids[step]])
        for step in range(trace.n_forced, n_steps)
    ]
    refuse_if(not at_steps, ALL_FORCED)
    product, mean, least = math.prod(at_steps), sum(at_steps) / len(at_steps), min(at_steps)
    counts = {"product": product, "least": least, "mean": mean}
    shown = {word: round(N_DRAWS * share) for word, share in counts.items()}
    if len(set(shown.values())) < len(shown):
        raise QuestionNotApplicable("Nearly all draws for this sentence are the same; try a longer or harder sentence.")
    values = {"n": shown["product"], "draws": N_DRAWS, "n_steps": len(at_steps), "mean": mean, "least": least}
    return Answer("product", values, options=numbered(shown))
