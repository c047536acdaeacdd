"""Other measures of how similar a query and a key are, and numbers added to them.

    dot        q · k
    general    x W y^T of the vectors x and y before W_Q and W_K, with W = W_Q W_K^T / sqrt(d_head)
    cosine     q · k / (|q| |k|)
    kernel     exp(-|q - k|² / 2σ²); its logarithm is the score, so weights are kernels divided by their sum
    features   φ(q) · φ(k), which is exp(q · k / sqrt(d_head)) on average; its logarithm is the score

Source: Luong et al., "Effective Approaches to Attention-based Neural Machine Translation" (2015), section 3.1, for
dot and general; Tsai et al., "Transformer Dissection" (2019), for kernels; Choromanski et al., "Rethinking Attention
with Performers" (2021), section 2.3, for features; Press et al., "Train Short, Test Long" (2022), section 3, for
ALiBi.

Shapes: B batch, H heads, Q queries, K keys, d d_head, r features.
"""

import math
import zlib
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

import torch
import torch.nn.functional as F
from torch import Tensor

from glassformer.extensions.what_if.interventions.score_changes import ScoringChange
from transformer.i18n import say
from transformer.model import distance
from transformer.model.config import MAX_LAYERS, MAX_WIDTH, ModelConfig
from transformer.model.linear import widened
from transformer.model.scores import Scoring, Similarity, scaled_product
from transformer.model.sites import sites
from transformer.model.taps import Replacer, Rewirer, Visitor
from transformer.runs.interventions.base import ChangeError, Ground
from transformer.runs.interventions.spelling import choice, number, place, whole
from transformer.runs.interventions.where import SELF, AtPlace, AttentionChange, part_name, where

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
            raise ChangeError(
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

    def visitors(self, ground: Ground) -> tuple[Visitor, ...]:
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

    def _function(self, ground: Ground, module: str) -> Similarity:
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

    def visitors(self, ground: Ground) -> tuple[Visitor, ...]:
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
        if self.by == 1:
            return say("{attention}: ALiBi is added", attention=self.name)
        return say("{attention}: ALiBi times {factor:g} is added", attention=self.name, factor=self.by)

    def visitors(self, ground: Ground) -> tuple[Visitor, ...]:
        chosen = self.chosen(ground.config)
        return tuple(AtPlace(one.site("*", "scores"), self._added) for one in chosen)

    def _added(self, scores: Tensor, offset: int) -> Tensor:
        apart = distance.distances(torch.arange(scores.size(-1), device=scores.device), offset=offset)  # [Q, K]
        return scores + distance.alibi(scores.size(1), apart, like=scores) * self.by


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

    def visitors(self, ground: Ground) -> tuple[Visitor, ...]:
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
