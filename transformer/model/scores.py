"""How a score is made of q . k where it is not the paper's q . k / sqrt(d_head).

    score = cap tanh((q . k * scale + bias) / cap)

Source: Raffel et al. (2020) for a scale of 1; Gemma team, "Gemma 2" (2024), section 2, for the cap.
"""

import math
from dataclasses import dataclass

from torch import Tensor

from transformer.model.config import ModelConfig
from transformer.model.features import TABLES


@dataclass(frozen=True)
class Scoring:
    """What is done to q . k before the softmax.

    Attributes:
        scale: What it is multiplied by.
        cap: No score is larger, nor smaller than -cap; None: no limit.
        fill: What a closed score is replaced by; None: minus infinity.
    """

    scale: float
    cap: float | None = None
    fill: float | None = None

    @property
    def fused(self) -> bool:
        """Whether torch's fused attention computes it."""
        return self.cap is None and self.fill is None


def scoring(config: ModelConfig) -> Scoring:
    """What a model does to q . k."""
    # Divided, because a sum of d products of independent numbers of size 1 has size sqrt(d): undivided, the softmax
    # of wide heads would be nearly all on one key and have hardly any gradient.
    scale = 1 / math.sqrt(config.d_head) if config.score_scale is None else config.score_scale
    return Scoring(scale, config.score_cap, config.mask_fill)


def plain_scores(config: ModelConfig) -> bool:
    """Whether all scores are q . k / sqrt(d_head), as in the paper, of queries and keys as they are projected."""
    plain = config.score_scale is None and config.score_cap is None and not config.qk_norm
    return plain and config.positions in (*TABLES, "none")


def capped(scores: Tensor, cap: float | None) -> Tensor:
    """cap tanh(score / cap): almost the score where it is small, and never beyond the cap."""
    return scores if cap is None else cap * (scores / cap).tanh()
