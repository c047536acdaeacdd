"""Changes that make a model smaller or cheaper: neurons off, width, low rank, projected keys, half precision.

Source: He et al., "Reshaping Deep Neural Network for Fast Decoding by Node-Pruning" (2014), for strengths by weights;
Eckart and Young, "The approximation of one matrix by another of lower rank" (1936); Wang et al., "Linformer" (2020),
section 4, for means in place of a learned projection; Micikevicius et al., "Mixed Precision Training" (2018).

Shapes: B batch, H heads, G key-value heads, Q queries, K keys, d d_head, F d_ff, r rows.
"""

import math
import zlib
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

import torch
from torch import Tensor

from glassformer.extensions.what_if.interventions.layer_changes import once
from glassformer.extensions.what_if.interventions.score_changes import FillChange, ScoringChange
from transformer.i18n import say
from transformer.model.anatomy import Kind, StackName, anatomy
from transformer.model.attention_scores import Scoring, scaled_product
from transformer.model.config import MAX_WIDTH, ModelConfig
from transformer.model.module import widened
from transformer.model.sites import sites
from transformer.model.taps import Hook, Replacer, Rewirer
from transformer.runs.interventions.base import InterventionContext, InterventionError
from transformer.runs.interventions.fields import choice, number, place, whole
from transformer.runs.interventions.targets import ALL, LayerChange, open_cells


class NeuronOff(LayerChange, kw_only=True):
    neuron: int = place(say("Neuron"), 8 * MAX_WIDTH, what="neuron")  # which, from 0

    word = "neuron"
    title = say("A neuron writes nothing")
    about = say(
        "The activation of this neuron of the feed-forward network is set to 0. The part Feed-forward of the page "
        "Inside shows which neurons are active."
    )

    def check(self, config: ModelConfig) -> None:
        super().check(config)
        if self.neuron >= (most := min(config.of(name).d_ff for name in self.stacks(config))):
            raise InterventionError(
                "{change} names neuron {n:,}, but this part of the model has only neurons 1 to {most:,}.",
                change=str(self),
                n=self.neuron + 1,
                most=most,
            )

    def told(self) -> str:
        return say("{place}: neuron {n:,} writes nothing", place=self.name, n=self.neuron + 1)

    def visitors(self, ground: InterventionContext) -> tuple[Hook, ...]:
        def off(activation: Tensor) -> Tensor:
            return activation.index_fill(-1, torch.tensor(self.neuron, device=activation.device), 0.0)

        return (Replacer(dict.fromkeys(self.patterns(ground.config, "ffn.activation"), off), causal=True),)


PARTS: Final[dict[str, str]] = {"ffn": say("Neurons of feed-forward"), "heads": say("Dimensions of each head")}
STAYS: Final[dict[str, str]] = {
    "strongest": say("The strongest stay"),
    "first": say("The first stay"),
    "random": say("Random ones stay"),
}


class Narrower(LayerChange):
    part: str = choice(say("What is cut"), PARTS, "ffn", target=True)
    share: float = number(say("Share that stays"), 0, 1, 0.5)
    how: str = choice(say("Which stay"), STAYS, "strongest")
    seed: int = whole(say("Seed"), 0, 2**31 - 1, 0)  # of random ones

    word = "width"
    swept = "share"
    title = say("A narrower network")
    about = say(
        "Only a share of the neurons, or of each head's dimensions, stays; the others are 0, as if their rows and "
        "columns were cut from the matrices. The strongest have the longest weights before and after them (He et "
        "al., 2014). The score scale stays as it is."
    )

    def told(self) -> str:
        part, how = PARTS[self.part], STAYS[self.how]
        return say("{place}: {share:.0%} left ({part}; {how})", place=self.name, share=self.share, part=part, how=how)

    def visitors(self, ground: InterventionContext) -> tuple[Hook, ...]:
        changes = dict[str, Callable[[Tensor], Tensor]]()
        make, depths = self._neurons if self.part == "ffn" else self._dimensions, anatomy(ground.config).stack
        for stack in self.stacks(ground.config):
            for layer in (n for n in range(depths(stack).n_layers) if self.layer in (None, n)):
                changes |= {site: partial(torch.mul, stays) for site, stays in make(ground, stack, layer).items()}
        return (Replacer(changes, causal=True),)

    def _neurons(self, ground: InterventionContext, stack: StackName, layer: int) -> dict[str, Tensor]:
        """1 for each neuron that stays and 0 for others [F], by site."""
        module, names = f"{stack}.layers.{layer}.ffn", ["up_proj", *["gate_proj"] * ground.config.gated]
        before = sum(_squares(ground, f"{module}.{name}").sum(1) for name in names)
        stays = self._staying(before * _squares(ground, f"{module}.down_proj").sum(0), module)
        return {f"{stack}.{layer}.ffn.activation": stays}

    def _dimensions(self, ground: InterventionContext, stack: StackName, layer: int) -> dict[str, Tensor]:
        """The same for dimensions [G or H, 1, d]; several heads of queries may share one of keys."""
        config, found, there = ground.config.of(stack), dict[str, Tensor](), sites(ground.config)
        for one in (one for one in anatomy(ground.config).attentions if one.stack == stack):
            module = f"{stack}.layers.{layer}.{one.sublayer}"

            def length(name: str, axis: int, module: str = module) -> Tensor:
                squares = _squares(ground, f"{module}.{name}").sum(axis)
                return squares.view(config.n_kv_heads, -1, config.d_head).sum(1, keepdim=True)

            scored = self._staying(length("q_proj", 1) * length("k_proj", 1), f"{module} scores")
            of_queries = scored.repeat_interleave(config.n_heads // config.n_kv_heads, 0)
            for name, stays in (("queries", of_queries), ("keys", scored)):
                before = one.site(layer, f"projected_{name}")  # where they are not turned or normed yet
                found[before if before in there else one.site(layer, name)] = stays
            values = length("v_proj", 1) * length("out_proj", 0)
            found[one.site(layer, "values")] = self._staying(values, f"{module} values")
        return found

    def _staying(self, strengths: Tensor, named: str) -> Tensor:
        """True for the share of the last axis that stays."""
        width = strengths.size(-1)
        if self.how == "first":
            strengths = torch.arange(width, 0, -1, device=strengths.device).expand_as(strengths)
        elif self.how == "random":
            generator = torch.Generator().manual_seed(zlib.crc32(f"{self.seed} {named}".encode()))
            strengths = torch.rand(strengths.shape, dtype=torch.float64, generator=generator).to(strengths.device)
        stays = strengths.argsort(dim=-1, descending=True, stable=True)[..., : round(self.share * width)]
        return torch.zeros_like(strengths, dtype=torch.bool).scatter(-1, stays, value=True)


def _squares(ground: InterventionContext, name: str) -> Tensor:
    return widened(ground.parameter(f"{name}.weight").detach()).square()


class LowRankFeedForward(LayerChange):
    rank: int = whole(say("Rank", about="a matrix"), 1, 4096, 8)

    word = "ffrank"
    swept = "rank"
    title = say("Low-rank feed-forward")
    about = say(
        "Each matrix of the feed-forward network is replaced by the closest one of this rank, that of its largest "
        "singular values (Eckart and Young, 1936). It is then a product of two narrow matrices."
    )

    def told(self) -> str:
        return say("{place}: feed-forward matrices of rank {rank:,}", place=self.name, rank=self.rank)

    def visitors(self, ground: InterventionContext) -> tuple[Hook, ...]:
        patterns = self.patterns(ground.config, "ffn.*proj.weight")
        return (Rewirer(dict.fromkeys(patterns, once(partial(nearest, rank=self.rank)))),)


def nearest(matrix: Tensor, *, rank: int) -> Tensor:
    """The closest matrix of this rank."""
    if rank >= min(matrix.shape):
        return matrix
    matrix = widened(matrix.detach())
    wide = matrix if matrix.size(0) <= matrix.size(1) else matrix.T
    left = torch.linalg.eigh(wide @ wide.T).eigenvectors[:, -rank:]  # left singular vectors; four times as fast as SVD
    near = left @ (left.T @ wide)
    return near if wide is matrix else near.T


class ProjectedKeys(ScoringChange):
    rows: int = whole(say("Rows"), 1, 4096, 4)  # how many

    word = "projected"
    swept = "rows"
    title = say("Projected keys and values")
    about = say(
        "The keys that a query may see, and their values, are projected along the sequence to this many rows, and "
        "attention weighs these rows only. A Linformer learns the projection (Wang et al., 2020, section 4); here each "
        "row is the mean of neighbouring tokens, so with as many rows as tokens nothing changes. The map shows the "
        "weight that each token gets through its row."
    )

    def told(self) -> str:
        return say("{attention}: keys and values are projected (rows: {n:,})", attention=self.name, n=self.rows)

    def visitors(self, ground: InterventionContext) -> tuple[Hook, ...]:
        return self.rewired(ground, lambda how: replace(how, weigh=self._weights))

    def _weights(self, how: Scoring, scores: Tensor, mask: Tensor | None) -> Tensor:
        """What each key [B, H, Q, K] weighs through its row."""
        seen = open_cells(mask, scores)
        nth, count = seen.cumsum(-1) - 1, seen.sum(-1, keepdim=True)
        row = nth.clamp(min=0) * self.rows // count.clamp(min=self.rows)  # of each key, from 0
        empty = scores.new_zeros(*scores.shape[:-1], self.rows)  # [B, H, Q, r]
        sizes = empty.scatter_add(-1, row, seen.to(scores.dtype))
        means = empty.scatter_add(-1, row, scores.masked_fill(~seen, 0.0)) / sizes.clamp(min=1)
        weights = means.masked_fill(sizes == 0, -torch.inf).softmax(-1) / sizes.clamp(min=1)
        return weights.gather(-1, row).masked_fill(~seen, 0.0)


class HalfPrecision(FillChange):
    fill: float = number(say("Fill value"), -1e9, 0, -1e9)

    word = "half"
    title = say("Scores in half precision")
    about = say(
        "Queries, keys, scores and weights are rounded to float16, whose largest number is 65,504. A fill value of "
        "−1e9 becomes −∞ there, so rows whose keys are all closed (as with an inverted causal mask) become NaN; with "
        "−1e4 they get equal weights. PyTorch’s `masked_fill` refuses −1e9 in float16; adding it raises no error."
    )

    @property
    def filled(self) -> float:
        """The fill value as float16 has it."""
        return float(torch.tensor(self.fill, dtype=torch.float64).to(torch.float16))

    def told(self) -> str:
        filled = "−∞" if math.isinf(self.filled) else f"{self.filled:g}".replace("-", "−")
        return say("{attention}: scores in float16, closed ones are {fill}", attention=self.name, fill=filled)

    def closed_score(self, kind: Kind, own: float | None) -> float | None:
        if self.where not in (ALL, kind):
            return own
        return None if math.isinf(self.filled) else self.filled

    def visitors(self, ground: InterventionContext) -> tuple[Hook, ...]:
        """Rounds what is computed; keys after a query get weight if the fill value stays finite."""
        change = partial(replace, similarity=_half_product, weigh=self._weights)
        return self.rewired(ground, change, causal=math.isinf(self.filled))

    def _weights(self, how: Scoring, scores: Tensor, mask: Tensor | None) -> Tensor:
        scores = halved(scores)
        return halved((scores if mask is None else scores.where(mask, self.filled)).softmax(-1))


def halved(values: Tensor) -> Tensor:
    """Rounded to float16, in their own type."""
    return values.to(torch.float16).to(values.dtype)


def _half_product(q: Tensor, k: Tensor, scale: float) -> Tensor:
    """Rounded after each operation; the sum of a product is exact, as on a GPU that adds in 32 bits."""
    product = halved(scaled_product(halved(q).double(), halved(k).double(), 1.0))
    return halved(product * scale).to(q.dtype)
