"""What the part One weight says where its steps are not the paper's, or where a change of the run acts within them.

Knows nothing of Streamlit.
"""

from __future__ import annotations

import numpy as np

from transformer.analysis.one_weight import Walk, biased
from transformer.model.config import ModelConfig
from ui.attention import one_weight_text
from words import joined, say

APART = 1e-3  # rounding in single precision is far below it, what a change does far above


def is_otherwise(config: ModelConfig, walk: Walk) -> bool:
    """Whether a score is made otherwise."""
    scaled = walk.how.scale == 1 / np.sqrt(walk.d_head)
    return not scaled or config.score_cap is not None or biased(config, walk.kind)


def is_changed(config: ModelConfig, walk: Walk) -> bool:
    """Whether queries and keys are normed or turned before they are multiplied."""
    turned = config.rotary is not None and walk.kind != "cross" and walk.layer not in config.unplaced_layers
    return config.qk_norm or turned


def stage(config: ModelConfig, walk: Walk) -> tuple[str, str, str]:
    """The stage's heading, its text and its formula."""
    said = [_scale(walk)]
    if config.positions == "relative" and biased(config, walk.kind):
        said.append(say("Relative positions add a number that this head has learned for this distance."))
    if config.positions == "alibi" and biased(config, walk.kind):
        said.append(say("ALiBi adds a number below 0 that grows with the distance."))
    if walk.how.cap is not None:
        cap = walk.how.cap
        said.append(say("Then the score is capped: {cap:g} · tanh(s / {cap:g}) never passes ±{cap:g}.", cap=cap))
    formula = one_weight_text.score_otherwise(walk, biased=biased(config, walk.kind))
    return say("##### 2. The score"), joined(" ", said), formula


def _scale(walk: Walk) -> str:
    if walk.how.scale == 1:
        return say("The same is done with every key. This model does not divide by √{n}.", n=walk.d_head)
    if walk.how.scale == 1 / np.sqrt(walk.d_head):
        return say("The same is done with every key. Dividing by √{n} is to multiply by {scale:.6g}.", n=walk.d_head,
                   scale=walk.how.scale)  # fmt: skip
    return say("The same is done with every key. This model multiplies by {scale:.6g}.", scale=walk.how.scale)


def replaced(fill: float) -> str:
    """What a mask does that fills in a number."""
    return say(
        "The mask leaves the score where the query may look and replaces it by {fill:g} where it may not: e to that "
        "is 0, unless the whole row is closed.",
        fill=fill,
    )


def is_apart(walk: Walk) -> bool:
    """Whether the steps give other numbers than the run had, by more than rounding."""
    d = walk.differences
    return max(d.scores, d.weights, d.head, d.output) > APART


def changed(walk: Walk) -> str:
    """What is said where a change of the run acts between the steps."""
    d = walk.differences
    return say(
        "What is changed in this run acts within this attention: from the recorded queries, keys and values the "
        "steps below give other numbers than the run had, scores by up to {scores:.2g}, weights by {weights:.2g}, "
        "the head by {head:.2g}, the output by {output:.2g}. The other parts of this page show what the run had.",
        scores=d.scores,
        weights=d.weights,
        head=d.head,
        output=d.output,
    )
