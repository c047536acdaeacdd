"""Questions about several heads: whether they look alike, what their mean loses, and what each is worth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from transformer.analysis.head_statistics import distance, entropy
from transformer.lessons.case import Answer, Case, NotHere, Option, worded
from transformer.lessons.differences import first_difference, largest_difference
from transformer.lessons.picks.heads import self_maps, without_heads, written_shares
from transformer.lessons.picks.steps import written
from transformer.runs.interventions import KeyBias, ZeroHead
from words import say

MOST_CHOICES: Final = 4
CLEAR_TOKENS: Final = 0.05  # that a head looks further than the next
CLEAR_SHARE: Final = 0.01  # that it writes more
CLEAR_BITS: Final = 0.005  # that a mean is flatter
SAME_NATS: Final = 0.2
"""Log-probabilities of a whole output that are nearer than this tell no head from another.

One output is then less than 1.25 times as probable as the other; label smoothing of 0.1 alone takes −ln 0.9 = 0.1
nats from each sure piece.
"""


def two_heads_agree(case: Case) -> Answer:
    """In how many rows the layer's first two heads have their largest weight on the same key."""
    maps = _layer(case)
    rows = slice(1, None) if case.picked["kind"] == "decoder" else slice(None)  # a first row sees one key only
    same = maps[0, rows].argmax(axis=-1) == maps[1, rows].argmax(axis=-1)
    count, n_rows = int(same.sum()), len(same)
    right = "all" if count == n_rows else ("half" if 2 * count >= n_rows else "few")
    options = worded("all", "half", "few")
    return Answer(right=right, options=options, values={"count": count, "rows": n_rows}, variant=right)


def entropy_of_mean(case: Case) -> Answer:
    """Whether the mean of all heads' maps is flatter than the heads are in the mean.

    Entropy is concave, so that it can only be; Cover and Thomas, "Elements of Information Theory" (2006), theorem
    2.7.3.
    """
    maps = _layer(case).astype(np.float64)
    own, mixed = float(entropy(maps).mean()), float(entropy(maps.mean(axis=0)).mean())
    if mixed - own < CLEAR_BITS:
        raise NotHere(
            "The heads of this layer look alike here, so that their mean shows nothing; try another sentence."
        )
    options = worded("above", "same", "below")
    return Answer(right="above", options=options, values={"own": own, "mixed": mixed, "more": mixed - own})


def furthest_head(case: Case) -> Answer:
    """Which head of the layer looks furthest in the mean over its rows."""
    far = distance(_layer(case)).mean(axis=-1)  # [head]
    return _largest(far, CLEAR_TOKENS, {"far": float(far.max()), "near": float(far.min())})


def sharpest_writes_most(case: Case) -> Answer:
    """Whether the head with the sharpest map is the one that writes most."""
    sharp, most = int(case.picked["sharp"]) - 1, int(case.picked["most"]) - 1
    shares = written_shares(case, case.picked["kind"], int(case.picked["layer"]) - 1)
    if sharp != most and shares[most] - shares[sharp] < CLEAR_SHARE:
        raise NotHere("Two heads have nearly the same number here; try another sentence.")
    right = "yes" if sharp == most else "no"
    values = {"own": float(shares[sharp]), "even": 1 / len(shares)}
    return Answer(right=right, options=worded("yes", "no"), values=values, variant=right)


def _largest(found: np.ndarray, clear: float, values: Mapping[str, Any]) -> Answer:
    """Which head has the largest number [head], if one stands out."""
    order = [int(head) for head in np.argsort(-found, kind="stable")]
    if found[order[0]] - found[order[1]] < clear:
        raise NotHere("Two heads have nearly the same number here; try another sentence.")
    chosen = sorted([order[0], *[head for head in range(len(found)) if head != order[0]][: MOST_CHOICES - 1]])
    options = tuple(Option(f"head-{head + 1}", say("Head {n}", n=head + 1)) for head in chosen)
    values = {**values, "head": order[0] + 1, "least": order[-1] + 1}
    return Answer(right=f"head-{order[0] + 1}", options=options, values=values)


def worth_of_size(case: Case) -> Answer:
    """Whether the head that writes most is worth more to the output than the one that writes least."""
    kind, layer = case.picked["kind"], int(case.picked["layer"]) - 1
    most, least = int(case.picked["most"]) - 1, int(case.picked["least"]) - 1
    effects = without_heads(case, kind, layer, (most, least))
    apart = effects[least] - effects[most]  # the more is lost, the lower
    right = "same" if abs(apart) < SAME_NATS else ("most" if apart > 0 else "least")
    values = {
        "by_most": effects[most],
        "by_least": effects[least],
        "worth": (most if right != "least" else least) + 1,
    }
    return Answer(right=right, options=worded("most", "least", "same"), values=values, variant=right)


def without_costliest(case: Case) -> Answer:
    """What the output becomes without the head that it loses most probability by."""
    zero = ZeroHead(case.picked["kind"], int(case.picked["layer"]) - 1, int(case.picked["head"]) - 1)
    other, before = case.changed(zero), case.trace.tgt_ids
    same = other.tgt_ids == before
    right = "same" if same else ("other" if other.tgt_ids[:1] != before[:1] else "later")
    at, shown = first_difference(case.trace, other)
    values = {
        "do": str(zero),
        "at": at,
        "shown": shown,
        "before": case.trace.output_text,
        "after": other.output_text,
    }
    return Answer(right=right, options=worded("same", "later", "other"), values=values, variant=right)


def random_key_bias(case: Case) -> Answer:
    """How far the logits move when a random vector is added to all keys of every head."""
    written(case, least=1)
    config, bias = case.checkpoint.config, KeyBias()
    if config.positions == "rotary" or config.qk_norm:
        raise NotHere("This model turns or norms its keys behind W_K, so that a bias there does not cancel.")
    moved = largest_difference(case.trace, case.changed(bias))  # the page shows the same run afterwards
    right = moved.verdict
    values = {"do": str(bias), "size": bias.size, "moved": moved.by}
    return Answer(right=right, options=worded("rounding", "visible"), values=values, variant=right)


def _layer(case: Case) -> np.ndarray:
    """The maps of the layer that was picked, [head, query, key]."""
    return self_maps(case, case.picked["kind"])[int(case.picked["layer"]) - 1]


ORACLES: Final = (
    two_heads_agree,
    entropy_of_mean,
    furthest_head,
    sharpest_writes_most,
    worth_of_size,
    without_costliest,
    random_key_bias,
)
