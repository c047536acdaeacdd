"""Maps of low rank: how much of attention stays if a map may hold little.

Source: Wang et al., "Linformer: Self-Attention with Linear Complexity" (2020), section 3.

Shapes: B batch, H heads, Q queries, K keys.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from transformer.model.config import ModelConfig
from transformer.model.tap import Replacer, Visitor
from transformer.runs.interventions.base import Ground, Group, Intervention
from transformer.runs.interventions.spelling import whole
from transformer.runs.interventions.where import WHERE, attentions, check_where, where
from words import Sentence, say


@dataclass(frozen=True)
class LowRank(Intervention):
    """Each map is replaced by the nearest one of a low rank, made a map again."""

    where: str = where()  # in which attention
    rank: int = whole(say("Rank", about="a matrix"), 1, 4096, 2)  # which

    word: ClassVar[str] = "rank"
    group: ClassVar[Group] = "attention"
    title: ClassVar[Sentence] = say("Maps of low rank")
    about: ClassVar[Sentence] = say(
        "Each map is replaced by the nearest matrix of this rank, by its singular value decomposition; Wang et al. "
        "(2020), section 3. To be a map again, cells that weighed 0 and negative ones become 0, and each row is "
        "brought back to its sum."
    )

    def check(self, config: ModelConfig) -> None:
        """See whether a model has this attention."""
        super().check(config)
        check_where(self, config, self.where)

    def told(self) -> str:
        """In words."""
        return say("{attention}: maps of rank {rank:,}", attention=WHERE[self.where], rank=self.rank)

    def visitors(self, ground: Ground) -> tuple[Visitor, ...]:
        """Approximates maps. Those of a text that is still written are others with every row that comes to them."""
        chosen = attentions(ground.config, self.where)
        causal = all(one.stack == "encoder" for one in chosen)
        return (Replacer({one.site("*", "weights"): self._nearest for one in chosen}, causal=causal),)

    def _nearest(self, weights: Tensor) -> Tensor:
        if self.rank >= min(weights.shape[-2:]):
            return weights
        left, sizes, right = torch.linalg.svd(weights, full_matrices=False)
        near = left[..., : self.rank] * sizes[..., None, : self.rank] @ right[..., : self.rank, :]  # [B, H, Q, K]
        near = near.clamp(min=0).masked_fill(weights == 0, 0.0)
        sums, own = near.sum(-1, keepdim=True), weights.sum(-1, keepdim=True)
        return near / sums.masked_fill(sums == 0, 1.0) * own
