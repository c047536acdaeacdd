"""Computed lesson answers on one weight: q · k, √d_head, softmax, variance, mixed values, other similarities.

Picks: which attention weight a lesson looks at. Layers, heads, rows and columns count from 1.

Source: Vaswani et al. (2017), section 3.2.1 and its footnote 4: of d products of independent numbers with mean 0 and
variance 1 the sum has variance d.
"""

import math
from functools import cache
from typing import Any, Final

import numpy as np

from glassformer.extensions.lessons.library.lesson import (
    ROUNDING,
    Answer,
    Case,
    Option,
    QuestionNotApplicable,
    Refusal,
    between,
    clear,
    counted,
    refuse_if,
)
from glassformer.extensions.what_if.interventions.layer_changes import Temper
from glassformer.extensions.what_if.interventions.score_changes import OtherSimilarity, ScoreScale
from transformer.analysis.head_statistics import entropy
from transformer.analysis.one_weight import LEAST_KEYS, Walk, place, sites, walk, without_parameters, worth_seeing
from transformer.i18n import say
from transformer.model.anatomy import EVERY_PART, Kind, StackName, anatomy
from transformer.model.attention_scores import plain_scores
from transformer.runs.interventions import Intervention
from transformer.runs.running import replay

LISTED: Final = 6  # keys of which a question lists the number; what is left of the row is one sum


def one_weight(case: Case) -> dict[str, Any]:
    """A weight of the cross-attention that is neither flat nor all of its row, at the least sure step.

    A model without cross-attention gives one of its self-attention.
    """
    kinds = case.trace.kinds
    kind: Kind = "cross" if "cross" in kinds else ("decoder" if "decoder" in kinds else "encoder")
    return _weight(case, kind)


def built_head(case: Case) -> dict[str, Any]:
    """A weight as `one_weight` has it, with what its attention is cut into."""
    found = one_weight(case)
    config = case.checkpoint.config.of(EVERY_PART.attention(found["kind"]).stack)
    return found | {"d_model": config.d_model, "n_heads": config.n_heads}


def own_row(case: Case) -> dict[str, Any]:
    """A head of the first layer of self-attention over the source: the one whose largest weight is nearest to 0.6."""
    refuse_if("encoder" not in case.trace.kinds, Refusal.NO_ENCODER)
    return _weight(case, "encoder", layer=0)


def row_of_shares(case: Case) -> dict[str, Any]:
    """A weight as `one_weight` has it, with what its row's softmax divides: e to the power of each score."""
    picked = one_weight(case)
    found = walk_of(case, picked)
    order = [int(key) for key in np.argsort(-found.exps, kind="stable") if found.allowed[key]]
    pieces = keys_of(case, found.kind)
    parts = [f"“{pieces[key]}” {found.exps[key]:.2f}" for key in order[:LISTED]]
    rest = float(found.exps[order[LISTED:]].sum())
    return {
        **picked,
        "second": pieces[order[1]],
        "second_key": order[1] + 1,
        "listed": " · ".join(parts + ([f"… {rest:.2f}"] if order[LISTED:] else [])),
    }


def _weight(case: Case, kind: Kind, *, layer: int | None = None) -> dict[str, Any]:
    trace = case.trace
    refuse_if(not trace.keeps_maps, Refusal.TOO_LONG)
    if not plain_scores(case.checkpoint.config):
        raise QuestionNotApplicable(
            "This step is about scores computed as q·k / √d_head, but this model computes them differently."
        )
    cell = worth_seeing(trace, kind, layer=layer)
    refuse_if(int(trace.mask(kind)[cell.query].sum()) < LEAST_KEYS, Refusal.TOO_SHORT)
    stack = EVERY_PART.attention(kind).stack
    d_head = case.checkpoint.config.of(stack).d_head
    return {
        "kind": kind,
        "layer": cell.layer + 1,
        "head": cell.head + 1,
        "query": cell.query + 1,
        "step": 1 if stack == "encoder" else max(1, cell.query - trace.first_row + 1),
        "read": queries_of(case, kind)[cell.query],
        "d_head": d_head,
        "root": math.sqrt(d_head),
        "n": len(keys_of(case, kind)),
    }


def keys_of(case: Case, kind: Kind) -> tuple[str, ...]:
    """The pieces that an attention's keys are made of."""
    return _pieces(case, EVERY_PART.attention(kind).keys_from)


def queries_of(case: Case, kind: Kind) -> tuple[str, ...]:
    """The pieces that an attention's queries are made of."""
    return _pieces(case, EVERY_PART.attention(kind).stack)


def _pieces(case: Case, stack: StackName) -> tuple[str, ...]:
    return case.trace.read_tokens if stack == "decoder" else case.trace.src_tokens


def walk_of(case: Case, picked: dict[str, Any] | None = None) -> Walk:
    """The way of the strongest weight of a row, from q · k to the output; by default of what the case has picked."""
    place = case.picked if picked is None else picked
    kind, layer = place["kind"], place["layer"] - 1
    recorded = replay(case.checkpoint, case.trace, sites(kind, layer, config=case.checkpoint.config))
    model, head, query = case.checkpoint.model, place["head"] - 1, place["query"] - 1
    return walk(recorded, model, kind=kind, layer=layer, head=head, query=query)


MOST_CHOICES: Final = 4
TIED: Final = 0.01
"""Products, in parts of their spread, that are nearer than this have no winner that a reader could tell."""

OWN_SHARE: Final = (0.2, 0.8)
COUNTS: Final = 0.01  # a key whose weight is above this still counts
ROUNDED: Final = 0.005  # weights that differ by less look the same with two digits


def best_key(case: Case) -> Answer:
    """Which key fits the query best, by q · k."""
    found = walk_of(case)
    pieces = keys_of(case, found.kind)
    order = [int(key) for key in np.argsort(-found.dots, kind="stable") if found.allowed[key]]
    best, second = order[0], order[1]
    refuse_if(found.dots[best] - found.dots[second] < TIED * float(np.ptp(found.dots[order])), Refusal.NO_WINNER)
    straight = min(found.query, len(pieces) - 1)  # where a text would be read place by place
    chosen = dict.fromkeys((best, straight, second, order[-1], *order[2:]))
    chosen = dict.fromkeys([key for key in chosen if key in order][:MOST_CHOICES])
    words = {key: "straight" if key == straight else f"key-{key + 1}" for key in chosen}
    options = tuple(Option(words[key], f"{key + 1} · {pieces[key]}: {_geometry(found, key)}") for key in sorted(chosen))
    values = {"key": pieces[best], "dot": float(found.dots[best]), "next": float(found.dots[second])}
    source = EVERY_PART.attention(found.kind).keys_from == "encoder"
    return Answer(words[best], values, options=options, variant="source" if source else "own")


def _geometry(found: Walk, key: int) -> str:
    """The length of a key, and the cosine of its angle with the query."""
    length = float(np.linalg.norm(found.keys[key]))
    cosine = float(found.dots[key]) / max(length * float(np.linalg.norm(found.q)), 1e-12)
    return f"|k| = {length:.2f}, cos = {cosine:.2f}".replace("-", "−")


def scaling_effect(case: Case) -> Answer:
    """What dividing all scores by the same number does to their order and to the largest weight."""
    found = walk_of(case)
    dots, (raw, scaled) = found.dots[found.allowed], _both(case)
    before_it = dots[np.argsort(dots * found.how.scale, kind="stable")]  # in the order that they have divided
    kept = bool((np.diff(before_it) >= -TINY * np.abs(dots).max()).all())
    before, after = float(raw.max()), float(scaled.max())
    refuse_if(abs(before - after) < ROUNDED, Refusal.NO_EFFECT)
    right = "changes" if not kept else ("falls" if after < before else "rises")
    return Answer(right, {"raw": before, "w": after})


def share_of_row(case: Case) -> Answer:
    """The weight of the second-best key: its share of the sum of all e to the power of a score."""
    found, key = walk_of(case), case.at("second_key")
    values = {"e": float(found.exps[key]), "total": found.total, "w": float(found.weights[key])}
    return Answer(float(found.weights[key]), values, usual=float(found.exps[key]))


def outside_band(case: Case) -> Answer:
    """How many numbers of the head's output lie above the largest or below the smallest of what they mix."""
    found = walk_of(case)
    values = found.values[found.allowed]  # [open key, d_head]
    least, most = values.min(axis=0), values.max(axis=0)
    rounding = ROUNDING * (1 + np.abs(values).max())  # the weights add up to 1 but for that
    outside = (found.head_out < least - rounding) | (found.head_out > most + rounding)
    added = values.sum(axis=0)  # as if all weights were 1
    beyond = int(((added < least - rounding) | (added > most + rounding)).sum())
    count = int(outside.sum())
    return Answer(float(count), {"outside": count, "beyond": beyond}, usual=float(beyond))


def own_key_rows(case: Case) -> Answer:
    """In how many rows of a self-attention a query fits its own key best."""
    kind, layer, head = case.picked["kind"], case.at("layer"), case.at("head")
    site = place(kind, layer)
    found = replay(case.checkpoint, case.trace, (f"{site}.queries", f"{site}.keys"))
    queries, keys = found[f"{site}.queries"], found[f"{site}.keys"]
    shared = len(queries) // len(keys)  # heads of queries that one of keys belongs to
    dots = queries[head].astype(np.float64) @ keys[head // shared].astype(np.float64).T  # [query, key]
    fits = np.where(case.trace.mask(kind, layer), dots, np.finfo(np.float64).min)
    best = fits.argmax(axis=1)
    counted(best == np.arange(len(best)), clear(fits), str)  # or the number is nobody's
    own = int((best == np.arange(len(best))).sum())
    n = len(best)
    variant = "none" if own == 0 else ("every" if own == n else ("most" if 2 * own > n else "some"))
    return Answer(float(own), {"k": own, "n": n}, variant=variant, usual=float(n))


def self_attention(case: Case) -> dict[str, Any]:
    """The encoder's attention within its text, or the decoder's if there is no encoder."""
    refuse_if(not case.trace.keeps_maps, Refusal.TOO_LONG)
    return {"kind": "encoder" if "encoder" in case.trace.kinds else "decoder"}


def own_share_without_parameters(case: Case) -> Answer:
    """The weight of a token on itself, and on equal tokens, by softmax(A·Aᵀ) of embeddings times √d_model."""
    kind: Kind = case.picked["kind"]
    ids = np.array(case.trace.read_ids if kind == "decoder" else case.trace.src_ids)
    equal = ids[:, None] == ids  # [query, key]
    refuse_if(len(set(ids)) < LEAST_KEYS, Refusal.TOO_SHORT)
    found = without_parameters(case.checkpoint.model, kind, ids.tolist(), ids.tolist(), case.trace.mask(kind, 0))
    plain, scaled = (float((weights * equal).sum(axis=-1).mean()) for weights in found)
    heads = (case.trace.maps(kind) * equal).sum(axis=-1).mean(axis=-1)  # [layer, head]
    right = between(OWN_SHARE, scaled, ("little", "part", "all"))
    return Answer(right, {"plain": plain, "scaled": scaled, "least": float(heads.min()), "most": float(heads.max())})


def look_up(case: Case) -> Answer:
    """How many keys of the row still count at temperature 0; the output is held, so the row stays the same."""
    kind, layer, head = case.picked["kind"], case.at("layer"), case.at("head")
    row = case.at("query")
    change = Temper(kind, layer, head, temperature=0.0)
    cold = case.another(forced=case.trace.tgt_ids, interventions=(change,))
    left, blend = (int((one.maps(kind)[layer, head, row] > COUNTS).sum()) for one in (cold, case.trace))
    seen = int(case.trace.mask(kind, layer)[row].sum())
    values = {"left": left, "m": blend, "seen": seen, "do": str(change), "forced": _forced(case)}
    return Answer(float(left), values, usual=float(seen))


def _forced(case: Case) -> str:
    """The output as an address says what is forced."""
    return ".".join(map(str, case.trace.tgt_ids))


def _softmax(scores: np.ndarray) -> np.ndarray:
    exps = np.exp(scores - scores.max())
    return np.asarray(exps / exps.sum())


# ------------------------------------------------------------------------------ what the division by √d_head is for

WIDTHS: Final = (4, 64, 1024)
DRAWS: Final = 2000
NEARLY_ALL: Final = (0.9, 0.99)
HARDLY: Final = 0.1
LEAST_SHOWN: Final = 0.01  # of a share; below it two digits would be 0
TINY: Final = 1e-12
CLEARLY: Final = 0.02  # by how much one map has to be nearer than another, in parts of a row


def variance_of_products(case: Case) -> Answer:
    """How the variance of q · k grows with the number of products that it sums, for random vectors."""
    found = walk_of(case)
    small, middle, large = (_variance(width) for width in WIDTHS)
    powers = {"same": 0.0, "root": 0.5, "linear": 1.0, "square": 2.0}
    power = np.log(middle / small) / np.log(WIDTHS[1] / WIDTHS[0])
    right = min(powers, key=lambda word: abs(powers[word] - power))
    own = found.dots[found.allowed]
    return Answer(right, {"small": small, "middle": middle, "large": large, "spread": float(own.std())})


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
    right = between(NEARLY_ALL, top, ("most", "nearly", "all"))
    return Answer(right, {"raw": top, "w": least})


def sensitivity(case: Case) -> Answer:
    """How far the weights follow a small change of q · k, without the division against with it.

    What learns are q and k, so the derivative is that by q · k: divided, it has the factor 1/√d_head once more.
    """
    raw, scaled = _both(case)
    times = _slope(raw) / (_slope(scaled) * walk_of(case).how.scale)
    right = between((HARDLY, 1.0), times, ("hardly", "less", "more"))
    share = f"{times:.0%}" if times >= LEAST_SHOWN else say("less than 1%")
    bits, raw_bits = entropy(np.stack([scaled, raw])).tolist()
    return Answer(right, {"share": share, "times": times, "bits": bits, "raw_bits": raw_bits})


def undivided_output(case: Case) -> Answer:
    """Whether the output stays the same if no attention divides its scores."""
    return _output(case, ScoreScale())


def divided_by_d_model(case: Case) -> Answer:
    """Whether the output stays the same if all attentions divide by √d_model."""
    config = case.checkpoint.config
    refuse_if(all(config.of(stack.name).n_heads == 1 for stack in anatomy(config).stacks), Refusal.ONE_HEAD)
    return _output(case, ScoreScale(how="model"))


def _output(case: Case, change: Intervention) -> Answer:
    case.written(least=1)
    trace, other = case.trace, case.changed(change)
    same_ids, same_text = trace.tgt_ids == other.tgt_ids, trace.output_text == other.output_text
    refuse_if(same_text and not same_ids, Refusal.NO_WINNER)
    longer = max(trace.n_steps, other.n_steps)
    differ = longer - sum(a == b for a, b in zip(trace.tgt_ids, other.tgt_ids, strict=False))
    values = {**case.outputs(other), "do": str(change), "differ": differ, "longer": longer}
    right = "same" if same_ids else ("some" if 2 * differ <= longer else "most")
    return Answer(right, values)


def nearest_similarity(case: Case) -> Answer:
    """Which other similarity gives the row that is nearest to the trained one.

    The row's queries and keys stay what they are if only this head is changed and the output is held, so the rows can
    be computed here, without further runs.
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
    refuse_if(apart[second] - apart[first] < CLEARLY, Refusal.NO_WINNER)
    do = str(OtherSimilarity(*place, how=first, sigma=sigma))
    return Answer(first, {**apart, "sigma": sigma, "do": do, "forced": _forced(case)})


def _both(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """The weights of the open keys without the division, and with it [open key]."""
    found = walk_of(case)
    dots = found.dots[found.allowed]
    return _softmax(dots), _softmax(dots * found.how.scale)


def _slope(weights: np.ndarray) -> float:
    """The norm of the softmax's derivative, diag(w) - w wᵀ."""
    return float(np.linalg.norm(np.diag(weights) - np.outer(weights, weights)))
