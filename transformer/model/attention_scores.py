"""Attention scores before and in the softmax (`Scoring`): scale, cap, mask fill, similarity, masked softmax.

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
    cap: float | None = None  # scores lie between -cap and cap; None: no limit
    # What closed scores are set to; None: minus infinity, and a row without open keys gets weights of 0.
    fill: float | None = None
    # Replaces q . k times the scale: a function of queries [B, H, Q, d], keys [B, H, K, d] and the scale that returns
    # scores [B, H, Q, K]; None: that product.
    similarity: "Similarity | None" = None
    # Replaces the softmax: a function of this record, of scores [B, H, Q, K] and of the mask, which broadcasts to
    # them, that returns weights; None: the softmax over the keys that may be seen.
    weigh: "Weigh | None" = None

    @property
    def fused(self) -> bool:
        """Whether torch's fused attention can compute it."""
        return self.cap is None and self.fill is None and self.similarity is None and self.weigh is None

    def scores(self, q: Tensor, k: Tensor, bias: Tensor | None = None) -> Tensor:
        """Scores [B, H, Q, K] from queries [B, H, Q, d] and keys [B, H, K, d], before the mask."""
        scores = (self.similarity or scaled_product)(q, k, self.scale)
        return capped(scores if bias is None else scores + bias, self.cap)

    def weights(self, scores: Tensor, mask: Tensor | None) -> Tensor:
        """Weights [B, H, Q, K] from scores, under a mask."""
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
    """Whether all scores are q . k / sqrt(d_head) of the projected queries and keys, as in the paper."""
    plain = config.score_scale is None and config.score_cap is None and not config.qk_norm
    return plain and config.placing.adds in ("table", "nothing")


def capped(scores: Tensor, cap: float | None) -> Tensor:
    """cap tanh(score / cap): nearly the score itself if that is small, and never beyond the cap."""
    return scores if cap is None else cap * (scores / cap).tanh()


def masked_softmax(scores: Tensor, mask: Tensor | None, *, fill: float | None = None) -> Tensor:
    """Softmax over the keys that may be seen: all other weights are exactly 0, also in a row without such keys.

    Scores are [B, H, Q, K]; the bool mask broadcasts to that, None if every key may be seen. With `fill`, closed
    scores are set to it and take part. If `fill` is minus infinity, a row without open keys becomes NaN.
    """
    if mask is None or (not mask.is_cuda and bool(mask.all())):  # a GPU would have to wait for the answer
        return scores.softmax(dim=-1)
    if fill is not None:
        return scores.where(mask, fill).softmax(dim=-1)
    weights = scores.where(mask, -torch.inf).softmax(dim=-1)
    return weights.where(mask, 0.0)  # a row of only -inf is NaN after the softmax
