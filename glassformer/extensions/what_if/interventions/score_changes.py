"""Changes of how a map is computed: from q . k to a score, from a score to a weight, and the number of heads.

The parameters of attention are the same for any number of heads: only the split of the vectors shows the number.

Source: Vaswani et al. (2017), section 3.2.1 and its footnote 4, for the scale, and section 3.2.2, for heads; Wang et
al., "Linformer: Self-Attention with Linear Complexity" (2020), section 3, for maps of low rank.

Shapes: B batch, H heads, Q queries, K keys.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Final

import torch
from torch import Tensor

from transformer.i18n import Sentence, say
from transformer.model.anatomy import Kind, anatomy
from transformer.model.config import MAX_WIDTH, ModelConfig
from transformer.model.scores import Scoring, Weigh, masked_softmax
from transformer.model.taps import Replacer, Rewirer, Visitor
from transformer.runs.interventions.base import ChangeError, Ground, Intervention
from transformer.runs.interventions.spelling import ALL, choice, number, whole, yes
from transformer.runs.interventions.where import AttentionChange

SCALES: Final[dict[str, str]] = {
    "off": say("No scale: q·k unchanged"),
    "model": say("Divided by √d_model"),
    "number": say("Times the number"),
}


class ScoringChange(AttentionChange):
    """A change of how one attention, or all, compute weights."""

    def rewired(self, ground: Ground, change: Callable[[Scoring], Scoring], **how: Any) -> tuple[Visitor, ...]:
        """The changed way."""
        return (Rewirer({one.site("*", "scoring"): change for one in self.chosen(ground.config)}, **how),)


class ScoreScale(ScoringChange):
    how: str = choice(say("Scale"), SCALES, "off")  # no scale, 1 / sqrt(d_model), or the number
    by: float = number(say("Number", about="a factor"), 0, 100, 1)

    word = "scale"
    title = say("Another score scale")
    about = say(
        "q·k is normally divided by √d_head, which keeps the softmax from putting all weight on one key (Vaswani "
        "et al., 2017, section 3.2.1). With this change, you choose a different factor."
    )

    def told(self) -> str:
        return {
            "off": say("{attention}: scores are not scaled", attention=self.name),
            "model": say("{attention}: scores are divided by √d_model", attention=self.name),
            "number": say("{attention}: q·k is multiplied by {number:g}", attention=self.name, number=self.by),
        }[self.how]

    def visitors(self, ground: Ground) -> tuple[Visitor, ...]:
        scale = {"off": 1.0, "model": 1 / math.sqrt(ground.config.d_model), "number": self.by}[self.how]
        return self.rewired(ground, lambda how: replace(how, scale=scale))


class SoftmaxTwice(ScoringChange):
    # The mask closes keys for the second softmax as well; if not, closed keys get a weight by it.
    closed: bool = yes(say("Closed keys stay closed"), True)

    word = "twice"
    title = say("The softmax twice")
    about = say(
        "The softmax is applied to the weights a second time. This mistake happens when a loss or another function "
        "already includes a softmax. The new weights are nearly equal, because the old ones are all between 0 and "
        "1."
    )

    def told(self) -> str:
        if self.closed:
            return say("{attention}: weights go through the softmax twice", attention=self.name)
        return say(
            "{attention}: weights go through the softmax twice, the second time without the mask", attention=self.name
        )

    def visitors(self, ground: Ground) -> tuple[Visitor, ...]:
        return self.rewired(ground, self._rewire, causal=self.closed)

    def _rewire(self, how: Scoring) -> Scoring:
        once: Weigh = how.weigh or (lambda now, scores, mask: masked_softmax(scores, mask, fill=now.fill))

        def twice(now: Scoring, scores: Tensor, mask: Tensor | None) -> Tensor:
            return masked_softmax(once(now, scores, mask), mask if self.closed else None, fill=now.fill)

        return replace(how, weigh=twice)


class _OfFill(ScoringChange):
    """What closed scores are replaced by."""

    group = "masks"

    @property
    def target(self) -> tuple[object, ...]:
        """The fill value of an attention."""
        return ("fill", self.where)


class FillValue(_OfFill):
    fill: float = number(say("Fill value"), -1e9, 0, -1)

    word = "fill"
    title = say("A different fill value for masks")
    about = say(
        "Before the softmax, the scores of closed keys are set to this number. Unless it is far below all other "
        "scores, closed keys still get some weight. If every key of a row is closed, all of them get the same "
        "weight."
    )

    def told(self) -> str:
        return say("{attention}: scores of closed keys are {fill:g}", attention=self.name, fill=self.fill)

    def closed_score(self, kind: Kind, own: float | None) -> float | None:
        return self.fill if self.where in (ALL, kind) else own

    def visitors(self, ground: Ground) -> tuple[Visitor, ...]:
        """Fills in the number. Keys after a query may then get weight, so no cache is right."""
        return self.rewired(ground, lambda how: replace(how, fill=self.fill), causal=False)


class NoGuard(_OfFill):
    word = "unguarded"
    title = say("Minus infinity, with no safeguard for closed rows")
    about = say(
        "The scores of closed keys are minus infinity, as in nearly every implementation, but rows whose keys are "
        "all closed get no special treatment. They become NaN, and so does everything computed from them. If there "
        "is no such row, nothing changes."
    )

    def told(self) -> str:
        return say(
            "{attention}: scores of closed keys are −∞, with no safeguard for rows whose keys are all closed",
            attention=self.name,
        )

    def closed_score(self, kind: Kind, own: float | None) -> float | None:
        return None if self.where in (ALL, kind) else own

    def visitors(self, ground: Ground) -> tuple[Visitor, ...]:
        return self.rewired(ground, lambda how: replace(how, fill=-torch.inf))


class LowRank(AttentionChange):
    rank: int = whole(say("Rank", about="a matrix"), 1, 4096, 2)  # which

    word = "rank"
    title = say("Low-rank attention maps")
    about = say(
        "Each map is replaced by the closest matrix of this rank, computed by singular value decomposition (Wang "
        "et al., 2020, section 3). To make the result a map again, cells that are negative or had weight 0 are set "
        "to 0, and each row is scaled back to its original sum. A row of which nothing is left stays as it was."
    )

    def told(self) -> str:
        return say("{attention}: maps of rank {rank:,}", attention=self.name, rank=self.rank)

    def visitors(self, ground: Ground) -> tuple[Visitor, ...]:
        """Approximates maps. While a text is being written, every new row changes the whole map."""
        chosen = self.chosen(ground.config)
        causal = all(one.stack == "encoder" for one in chosen)
        return (Replacer({one.site("*", "weights"): self._nearest for one in chosen}, causal=causal),)

    def _nearest(self, weights: Tensor) -> Tensor:
        if self.rank >= min(weights.shape[-2:]):
            return weights
        left, sizes, right = torch.linalg.svd(weights, full_matrices=False)
        near = left[..., : self.rank] * sizes[..., None, : self.rank] @ right[..., : self.rank, :]  # [B, H, Q, K]
        near = near.clamp(min=0).masked_fill(weights == 0, 0.0)
        sums, own = near.sum(-1, keepdim=True), weights.sum(-1, keepdim=True)
        return torch.where(sums > 1e-6 * own, near / sums * own, weights)  # what is left may be rounding


class HeadsTold(Intervention):
    n: int = whole(say("Heads"), 1, MAX_WIDTH, 1)  # how many

    word = "heads"
    group = "attention"
    title = say("A different number of heads")
    about = say(
        "All attention sub-layers split their vectors into a different number of heads than in training. All "
        "shapes still fit, so a wrong number goes unnoticed when weights are loaded (Vaswani et al., 2017, section "
        "3.2.2)."
    )

    @classmethod
    def unfit(cls, config: ModelConfig) -> Sentence | None:
        """Parameters that belong to a head, or to a width of heads, fix the number of heads."""
        if config.placing.adds == "turn":
            return say(
                "Rotary positions rotate pairs of dimensions within each head, so heads of a different width would "
                "have different pairs."
            )
        if config.placing.adds == "bias":
            return say(
                "Each head of this model has its own distance bias, so there are no biases for a different number "
                "of heads."
            )
        if config.qk_norm:
            return say(
                "The norms of queries and keys are as wide as a head, so heads of a different width do not fit them."
            )
        if config.n_kv_heads != config.n_heads:
            return say(
                "In this model, groups of heads share keys and values; a different number of heads does not fit "
                "these groups."
            )
        return None

    def check(self, config: ModelConfig) -> None:
        super().check(config)
        width = config.n_heads * config.d_head
        if width % self.n:
            raise ChangeError(
                "{change}: vectors of {width} numbers cannot be split into {n} heads of equal width; choose a "
                "number that divides the width evenly, for example {divisors}.",
                change=str(self),
                width=width,
                n=self.n,
                divisors=", ".join(str(n) for n in range(1, min(width, 64) + 1) if width % n == 0),
            )

    def told(self) -> str:
        return say("All attention sub-layers: number of heads set to {n:,}", n=self.n)

    def seen_by_others(self, config: ModelConfig) -> ModelConfig:
        """The config with this number of heads."""
        width = config.n_heads * config.d_head
        return replace(config, n_heads=self.n, n_kv_heads=self.n, n_decoder_heads=0, d_head=width // self.n)

    def visitors(self, ground: Ground) -> tuple[Visitor, ...]:
        width = ground.config.n_heads * ground.config.d_head // self.n
        scoring = partial(_scaled, ground.config, width)
        return (Rewirer({"*_attn.d_head": lambda own: width, "*_attn.scoring": scoring}),)


def _scaled(config: ModelConfig, width: int, how: Scoring) -> Scoring:
    """Divided by sqrt(width) where the model divides by its own width's root, and nobody has changed that."""
    own = {1 / math.sqrt(config.of(stack.name).d_head) for stack in anatomy(config).stacks}
    if config.score_scale is not None or how.scale not in own:
        return how
    return replace(how, scale=1 / math.sqrt(width))
