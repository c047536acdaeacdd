"""How a score is made of q . k where it is not the paper's q . k / sqrt(d_head), and weights of scores.

    score = cap tanh((q . k * scale + bias) / cap)

Source: Raffel et al. (2020) for a scale of 1; Gemma team, "Gemma 2" (2024), section 2, for the cap.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from transformer.model.config import ModelConfig


@dataclass(frozen=True)
class Scoring:
    """What is done to q . k before the softmax."""

    scale: float  # what it is multiplied by
    cap: float | None = None  # no score is larger, nor smaller than -cap; None: no limit
    # What a closed score is replaced by; None: minus infinity, and a row of nothing else weighs 0.
    fill: float | None = None
    # What is taken instead of q . k times the scale: a function of queries [B, H, Q, d], keys [B, H, K, d] and the
    # scale that gives scores [B, H, Q, K]; None: that product.
    similarity: "Similarity | None" = None
    # What is taken instead of the softmax: a function of this record, of scores [B, H, Q, K] and of the mask, which
    # broadcasts to them, that gives weights; None: the softmax over the keys that may be seen.
    weigh: "Weigh | None" = None

    @property
    def fused(self) -> bool:
        """Whether torch's fused attention computes it."""
        return self.cap is None and self.fill is None and self.similarity is None and self.weigh is None

    def scores(self, q: Tensor, k: Tensor, bias: Tensor | None = None) -> Tensor:
        """Scores [B, H, Q, K] of queries [B, H, Q, d] and keys [B, H, K, d], before the mask."""
        scores = (self.similarity or scaled_product)(q, k, self.scale)
        return capped(scores if bias is None else scores + bias, self.cap)

    def weights(self, scores: Tensor, mask: Tensor | None) -> Tensor:
        """Weights [B, H, Q, K] of scores, under a mask."""
        if self.weigh is not None:
            return self.weigh(self, scores, mask)
        return masked_softmax(scores, mask, fill=self.fill)


Similarity = Callable[[Tensor, Tensor, float], Tensor]
Weigh = Callable[[Scoring, Tensor, Tensor | None], Tensor]


def scaled_product(q: Tensor, k: Tensor, scale: float) -> Tensor:
    """q . k times a scale: [B, H, Q, d] and [B, H, K, d] -> [B, H, Q, K]."""
    return q @ k.transpose(-2, -1) * scale


def scoring(config: ModelConfig) -> Scoring:
    """What a model does to q . k."""
    # Divided, because a sum of d products of independent numbers of size 1 has size sqrt(d): undivided, the softmax
    # of wide heads would be nearly all on one key and have hardly any gradient.
    scale = 1 / math.sqrt(config.d_head) if config.score_scale is None else config.score_scale
    return Scoring(scale, config.score_cap, config.mask_fill)


def plain_scores(config: ModelConfig) -> bool:
    """Whether all scores are q . k / sqrt(d_head), as in the paper, of queries and keys as they are projected."""
    plain = config.score_scale is None and config.score_cap is None and not config.qk_norm
    return plain and config.placing.adds in ("table", "nothing")


def capped(scores: Tensor, cap: float | None) -> Tensor:
    """cap tanh(score / cap): almost the score where it is small, and never beyond the cap."""
    return scores if cap is None else cap * (scores / cap).tanh()


def masked_softmax(scores: Tensor, mask: Tensor | None, *, fill: float | None = None) -> Tensor:
    """Softmax over the keys that may be seen: the others weigh exactly 0, and so does a row without any.

    Scores are [B, H, Q, K], and the mask, bool, broadcasts to that; None if every key may be seen. With `fill` closed
    scores are replaced by it and take part. Minus infinity as a number leaves a row without any key at NaN.
    """
    if mask is None:
        return scores.softmax(dim=-1)
    hidden = ~mask
    if fill is not None:
        return scores.masked_fill(hidden, fill).softmax(dim=-1)
    weights = scores.masked_fill(hidden, -torch.inf).softmax(dim=-1)
    return weights.masked_fill(hidden, 0.0)  # a row of only -inf is NaN after the softmax
