"""Changes of how a map is computed: similarity, scale, softmax, fill, rank, ALiBi, key bias, number of heads.

    dot        q · k
    general    x W y^T of the vectors x and y before W_Q and W_K, with W = W_Q W_K^T / sqrt(d_head)
    cosine     q · k / (|q| |k|)
    kernel     exp(-|q - k|² / 2σ²); its logarithm is the score, so weights are kernels divided by their sum
    features   φ(q) · φ(k), which is exp(q · k / sqrt(d_head)) on average; its logarithm is the score

The parameters of attention are the same for any number of heads: only the split of the vectors shows the number.

Source: Vaswani et al. (2017), section 3.2.1 and its footnote 4, for the scale, and section 3.2.2, for heads; Wang et
al., "Linformer: Self-Attention with Linear Complexity" (2020), section 3, for maps of low rank;
Luong et al., "Effective Approaches to Attention-based Neural Machine Translation" (2015), section 3.1, for dot and
general; Tsai et al., "Transformer Dissection" (2019), for kernels; Choromanski et al., "Rethinking Attention with
Performers" (2021), section 2.3, for features; Press et al., "Train Short, Test Long" (2022), section 3, for ALiBi.

Shapes: B batch, H heads, Q queries, K keys, d d_head, r features.
"""

import math
import zlib
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Final

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer.i18n import Sentence, say
from transformer.model import attention_positions
from transformer.model.anatomy import Kind, anatomy
from transformer.model.attention_scores import Scoring, Similarity, Weigh, masked_softmax, scaled_product
from transformer.model.config import MAX_LAYERS, MAX_WIDTH, ModelConfig
from transformer.model.module import widened
from transformer.model.sites import sites
from transformer.model.taps import Hook, Replacer, Rewirer
from transformer.runs.interventions.base import Intervention, InterventionContext, InterventionError
from transformer.runs.interventions.fields import ALL, choice, number, place, whole, yes
from transformer.runs.interventions.targets import SELF, AtPlace, AttentionChange, part_name, where

SCALES: Final[dict[str, str]] = {
    "off": say("No scale: q·k unchanged"),
    "model": say("Divided by √d_model"),
    "number": say("Times the number"),
}


class ScoringChange(AttentionChange):
    def rewired(
        self, ground: InterventionContext, change: Callable[[Scoring], Scoring], **how: Any
    ) -> tuple[Hook, ...]:
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

    def visitors(self, ground: InterventionContext) -> tuple[Hook, ...]:
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

    def visitors(self, ground: InterventionContext) -> tuple[Hook, ...]:
        return self.rewired(ground, self._rewire, causal=self.closed)

    def _rewire(self, how: Scoring) -> Scoring:
        once: Weigh = how.weigh or (lambda now, scores, mask: masked_softmax(scores, mask, fill=now.fill))

        def twice(now: Scoring, scores: Tensor, mask: Tensor | None) -> Tensor:
            return masked_softmax(once(now, scores, mask), mask if self.closed else None, fill=now.fill)

        return replace(how, weigh=twice)


class FillChange(ScoringChange):
    group = "masks"

    @property
    def target(self) -> tuple[object, ...]:
        return ("fill", self.where)


class FillValue(FillChange):
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

    def visitors(self, ground: InterventionContext) -> tuple[Hook, ...]:
        """Fills in the number. Keys after a query may then get weight, so no cache is right."""
        return self.rewired(ground, lambda how: replace(how, fill=self.fill), causal=False)


class NoGuard(FillChange):
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

    def visitors(self, ground: InterventionContext) -> tuple[Hook, ...]:
        return self.rewired(ground, lambda how: replace(how, fill=-torch.inf))


class LowRank(AttentionChange):
    rank: int = whole(say("Rank", about="a matrix"), 1, 4096, 2)  # which

    word = "rank"
    swept = "rank"
    title = say("Low-rank attention maps")
    about = say(
        "Each map is replaced by the closest matrix of this rank, computed by singular value decomposition (Wang "
        "et al., 2020, section 3). To make the result a map again, cells that are negative or had weight 0 are set "
        "to 0, and each row is scaled back to its original sum. A row of which nothing is left stays as it was."
    )

    def told(self) -> str:
        return say("{attention}: maps of rank {rank:,}", attention=self.name, rank=self.rank)

    def visitors(self, ground: InterventionContext) -> tuple[Hook, ...]:
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
        return torch.where(sums > 1e-6 * own, near / sums * own, weights)  # the remainder may be rounding


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
            raise InterventionError(
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
        width = config.n_heads * config.d_head
        return replace(config, n_heads=self.n, n_kv_heads=self.n, n_decoder_heads=0, d_head=width // self.n)

    def visitors(self, ground: InterventionContext) -> tuple[Hook, ...]:
        width = ground.config.n_heads * ground.config.d_head // self.n
        scoring = partial(_scaled, ground.config, width)
        return (Rewirer({"*_attn.d_head": lambda own: width, "*_attn.scoring": scoring}),)


def _scaled(config: ModelConfig, width: int, how: Scoring) -> Scoring:
    """Divided by sqrt(width) if the model divides by its own width's root, and no other change replaced that."""
    own = {1 / math.sqrt(config.of(stack.name).d_head) for stack in anatomy(config).stacks}
    if config.score_scale is not None or how.scale not in own:
        return how
    return replace(how, scale=1 / math.sqrt(width))


SIMILARITIES: Final[dict[str, str]] = {
    "dot": say("Dot product, not scaled"),
    "general": say("General: x W y, with the vectors x and y from which q and k are computed"),
    "cosine": say("Cosine"),
    "kernel": say("Kernel: how close query and key are"),
}


class OtherSimilarity(AttentionChange):
    layer: int | None = place(say("Layer"), MAX_LAYERS, what="layer", optional=True)  # which
    head: int | None = place(say("Head"), MAX_WIDTH, what="head", optional=True)  # which
    how: str = choice(say("Similarity"), SIMILARITIES, "cosine")  # which similarity
    sigma: float = number(say("σ of the kernel"), 0.01, 100, 2)  # of a kernel

    word = "similar"
    title = say("Another similarity")
    about = say(
        "A score measures how similar a query and a key are. In a trained head, it has the general form x W y with "
        "W = W_Q W_Kᵀ / √d_head, plus terms from the biases (Luong et al., 2015, section 3.1). For kernels, see "
        "Tsai et al. (2019)."
    )

    def check_part(self, config: ModelConfig, layer: int | None = None, head: int | None = None) -> None:
        super().check_part(config, self.layer, self.head)

    def check(self, config: ModelConfig) -> None:
        super().check(config)
        if self.how == "general" and (config.placing.adds == "turn" or config.qk_norm):
            raise InterventionError(
                "{change}: this model rotates or normalises queries after W_Q and keys after W_K, so their score "
                "cannot be written as x W y with a single W.",
                change=str(self),
            )

    def told(self) -> str:
        whole = self.layer is None and self.head is None
        where = self.name if whole else part_name(self.name, self.layer, self.head)
        return {
            "dot": say("{place}: similarity is q·k, not scaled", place=where),
            "general": say("{place}: similarity is x W y, without biases", place=where),
            "cosine": say("{place}: similarity is the cosine", place=where),
            "kernel": say("{place}: similarity is a kernel with σ {sigma:g}", place=where, sigma=self.sigma),
        }[self.how]

    def visitors(self, ground: InterventionContext) -> tuple[Hook, ...]:
        changes: dict[str, Callable[[Scoring], Scoring]] = {}
        for one in self.chosen(ground.config):
            for layer in range(one.n_layers) if self.layer is None else [self.layer]:
                module = f"{one.stack}.layers.{layer}.{one.sublayer}"
                changes[one.site(layer, "scoring")] = partial(self._rewired, self._function(ground, module))
        return (Rewirer(changes),)

    def _rewired(self, function: Similarity, how: Scoring) -> Scoring:
        before = how.similarity or scaled_product
        if self.head is None:
            return replace(how, similarity=function)
        return replace(how, similarity=partial(_on_one_head, before, function, self.head))

    def _function(self, ground: InterventionContext, module: str) -> Similarity:
        if self.how == "general" and ground.config.biases.attention:
            q_bias, k_bias = (widened(ground.parameter(f"{module}.{name}_proj.bias")) for name in ("q", "k"))
            return partial(_without_biases, q_bias, k_bias)
        if self.how == "kernel":
            return partial(_kernel, self.sigma)
        return {
            "dot": lambda q, k, scale: scaled_product(q, k, 1.0),
            "cosine": lambda q, k, scale: scaled_product(F.normalize(q, dim=-1), F.normalize(k, dim=-1), 1.0),
            "general": scaled_product,
        }[self.how]


def _on_one_head(before: Similarity, then: Similarity, head: int, q: Tensor, k: Tensor, scale: float) -> Tensor:
    scores = before(q, k, scale).clone()
    scores[:, head] = then(q, k, scale)[:, head]
    return scores


def _without_biases(q_bias: Tensor, k_bias: Tensor, q: Tensor, k: Tensor, scale: float) -> Tensor:
    heads_of_queries, heads_of_keys = q_bias.view(-1, 1, q.size(-1)), k_bias.view(-1, 1, k.size(-1))  # [H, 1, d]
    shared = q.size(1) // heads_of_keys.size(0)  # heads of queries that one of keys belongs to
    return scaled_product(q - heads_of_queries, k - heads_of_keys.repeat_interleave(shared, dim=0), scale)


def _kernel(sigma: float, q: Tensor, k: Tensor, scale: float) -> Tensor:
    lengths = q.square().sum(-1)[..., :, None] + k.square().sum(-1)[..., None, :]  # [B, H, Q, K]
    return -(lengths - 2 * scaled_product(q, k, 1.0)) / (2 * sigma**2)


class RandomFeatures(ScoringChange):
    n: int = whole(say("Features"), 1, 4096, 64)  # how many features; the more, the nearer to the softmax
    seed: int = whole(say("Seed"), 0, 2**31 - 1, 0)  # gives them

    word = "features"
    swept = "n"
    title = say("Linear attention with random features")
    about = say(
        "A weight is φ(q)·φ(k) divided by the sum of these products over all keys that the query may see. φ gives "
        "random positive features, chosen so that φ(q)·φ(k) is exp(q·k / √d_head) on average (Choromanski et al., "
        "2021, section 2.3). All weights are computed here only to draw them; a fast implementation never computes "
        "them."
    )

    def told(self) -> str:
        return say(
            "{attention}: weights from {n:,} random features, seed {seed}",
            attention=self.name,
            n=self.n,
            seed=self.seed,
        )

    def visitors(self, ground: InterventionContext) -> tuple[Hook, ...]:
        return self.rewired(ground, lambda how: replace(how, similarity=self._scores))

    def _scores(self, q: Tensor, k: Tensor, scale: float) -> Tensor:
        directions = random_features(self.n, q.size(-1), self.seed).to(q)  # [r, d]
        of_queries, of_keys = (_logarithms(x * math.sqrt(scale), directions) for x in (q, k))
        most_q, most_k = of_queries.amax(-1, keepdim=True), of_keys.amax(-1, keepdim=True)
        product = (of_queries - most_q).exp() @ (of_keys - most_k).exp().mT  # [B, H, Q, K]
        return product.clamp(min=torch.finfo(q.dtype).tiny).log() + most_q + most_k.mT - math.log(self.n)


def _logarithms(x: Tensor, directions: Tensor) -> Tensor:
    """log φ: [B, H, T, d] -> [B, H, T, r]."""
    return x @ directions.T - x.square().sum(-1, keepdim=True) / 2


def random_features(n: int, width: int, seed: int) -> Tensor:
    """Random directions of features, normally distributed, float64 [n, width]."""
    return torch.randn(n, width, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


class AddAlibi(AttentionChange):
    where: str = where(SELF)  # in which self-attention
    by: float = number(say("Times"), 0, 100, 1)  # what the slopes are multiplied by

    word = "alibi"
    group = "positions"
    title = say("ALiBi added")
    about = say(
        "The farther a key is from its query, the more its score is lowered; each head has its own slope (Press et "
        "al., 2022, section 3). In an encoder, this applies to keys on both sides of the query."
    )

    def told(self) -> str:
        return say("{attention}: ALiBi times {factor:g} is added", attention=self.name, factor=self.by)

    def visitors(self, ground: InterventionContext) -> tuple[Hook, ...]:
        chosen = self.chosen(ground.config)
        return tuple(AtPlace(one.site("*", "scores"), self._added) for one in chosen)

    def _added(self, scores: Tensor, offset: int) -> Tensor:
        apart = attention_positions.distances(
            torch.arange(scores.size(-1), device=scores.device), offset=offset
        )  # [Q, K]
        return scores + attention_positions.alibi(scores.size(1), apart, like=scores) * self.by


class KeyBias(AttentionChange):
    size: float = number(say("Size"), 0, 100, 3)  # standard deviation of its numbers
    seed: int = whole(say("Seed"), 0, 2**31 - 1, 0)  # gives them

    word = "keybias"
    title = say("A random bias on all keys")
    about = say(
        "The same random vector is added to every key of a head, as if W_K had a different bias. Every score in a "
        "row changes by the same amount, which the softmax cancels, so the weights stay the same unless keys are "
        "rotated or normalised after W_K."
    )

    def told(self) -> str:
        return say(
            "{attention}: a random bias of size {size:g} on all keys, seed {seed}",
            attention=self.name,
            size=self.size,
            seed=self.seed,
        )

    def visitors(self, ground: InterventionContext) -> tuple[Hook, ...]:
        """Adds it after W_K, before keys are turned or normalised."""
        changes, there = dict[str, Callable[[Tensor], Tensor]](), sites(ground.config)
        for one in self.chosen(ground.config):
            for layer in range(one.n_layers):
                projected, keys = one.site(layer, "projected_keys"), one.site(layer, "keys")
                changes[projected if projected in there else keys] = partial(self._added, one.place(layer))
        return (Replacer(changes, causal=True),)

    def _added(self, attention: str, keys: Tensor) -> Tensor:
        n_heads, width = keys.size(1), keys.size(3)  # [B, G, K, d]
        return keys + self.size * random_bias(attention, n_heads * width, self.seed).view(n_heads, 1, width).to(keys)


def random_bias(attention: str, width: int, seed: int) -> Tensor:
    """One bias for all heads of an attention such as "decoder.1.cross_attn", float64 [width]."""
    generator = torch.Generator().manual_seed(zlib.crc32(f"{seed} {attention}".encode()))
    return torch.randn(width, dtype=torch.float64, generator=generator)
