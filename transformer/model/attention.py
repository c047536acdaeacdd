"""Attention: every query takes a weighted mean of the values, weighted by how well it matches each key.

`scaled_dot_product_attention` is the equation; `MultiHeadAttention` holds the learned projections around it.

Source: Vaswani et al. (2017), section 3.2, equation 1. Ainslie et al., "GQA" (2023), for heads of keys and values
that several heads of queries share.

Shapes: B batch, H heads, G heads of keys and values (H unless they are shared), Q queries, K keys, D d_model,
d d_head.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer.model.cache import AttentionCache
from transformer.model.config import ModelConfig
from transformer.model.linear import Linear, linear
from transformer.model.tap import NO_TAP, Tap


def scaled_dot_product_attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, *, tap: Tap = NO_TAP
) -> Tensor:
    """softmax(q k^T / sqrt(d_head)) v, over the keys that the mask allows.

    A query that may attend to no key at all gets weights of 0 and an output of 0, not NaN.

    Args:
        q: Queries [B, H, Q, d].
        k: Keys [B, H, K, d].
        v: Values [B, H, K, d].
        mask: Bool, broadcasts to [B, H, Q, K]; True = may attend. None if every key may be seen.
        tap: Sees `scores` and `weights`; when it wants neither, torch's fused kernel computes the same result.

    Returns:
        [B, H, Q, d].
    """
    if not (tap.wants("scores") or tap.wants("weights")):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    # Divided, because a sum of d products of independent numbers of size 1 has size sqrt(d): undivided, the softmax
    # of wide heads would be nearly all on one key and have hardly any gradient.
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))  # [B, H, Q, K]
    scores = tap("scores", scores)
    weights = tap("weights", masked_softmax(scores, mask))
    return weights @ v


def masked_softmax(scores: Tensor, mask: Tensor | None) -> Tensor:
    """Softmax over the keys that may be seen: the others weigh exactly 0, and so does a row without any.

    Args:
        scores: [B, H, Q, K].
        mask: Bool, broadcasts to the same shape; True = may attend. None if every key may be seen.
    """
    if mask is None:
        return scores.softmax(dim=-1)
    hidden = ~mask
    weights = scores.masked_fill(hidden, -torch.inf).softmax(dim=-1)
    return weights.masked_fill(hidden, 0.0)  # a row of only -inf is NaN after the softmax


def split_heads(x: Tensor, d_head: int) -> Tensor:
    """Cut each token's vector into heads: [B, T, H * d] -> [B, H, T, d]."""
    return x.view(*x.shape[:2], -1, d_head).transpose(1, 2)


def join_heads(heads: Tensor) -> Tensor:
    """Put each token's heads side by side: [B, H, T, d] -> [B, T, H * d]."""
    return heads.transpose(1, 2).flatten(2)


def share_heads(x: Tensor, n_heads: int) -> Tensor:
    """Give each head of queries its keys or values: [B, G, K, d] -> [B, H, K, d], each as often as it is shared."""
    return x if x.size(1) == n_heads else x.repeat_interleave(n_heads // x.size(1), dim=1)


class MultiHeadAttention(nn.Module):
    """Several attentions side by side, each in its own d_head-wide projection of the stream."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.n_heads, self.n_kv_heads, self.d_head = config.n_heads, config.n_kv_heads, config.d_head
        queries, keys = self.n_heads * self.d_head, self.n_kv_heads * self.d_head
        self.q_proj = Linear(config.d_model, queries, bias=config.bias)  # W_Q
        self.k_proj = Linear(config.d_model, keys, bias=config.bias)  # W_K
        self.v_proj = Linear(config.d_model, keys, bias=config.bias)  # W_V
        self.out_proj = Linear(queries, config.d_model, bias=config.bias)  # W_O
        self.joined: tuple[Tensor, Tensor | None] | None = None  # W_Q, W_K, W_V and their biases; see `_project`

    def forward(
        self,
        x: Tensor,
        context: Tensor,
        mask: Tensor | None,
        *,
        tap: Tap = NO_TAP,
        cache: AttentionCache | None = None,
    ) -> Tensor:
        """Attend from `x` to `context` (the same tensor in self-attention).

        Args:
            x: Where the queries come from [B, Q, D].
            context: Where the keys and values come from [B, K, D].
            mask: Bool, broadcasts to [B, H, Q, K]; True = may attend. None if every key may be seen.
            tap: Sees the sites of `transformer.model.sites`.
            cache: Keys and values of earlier calls; extended in place.

        Returns:
            [B, Q, D].
        """
        if cache is not None and cache.complete:
            q = tap("queries", split_heads(self.q_proj(x), self.d_head))  # [B, H, Q, d]
            k, v = cache.read()  # [B, G, K, d]
        else:
            q, k, v = self._project(x, context)  # [B, H, Q, d], [B, G, K, d], [B, G, K, d]
            q, k, v = tap("queries", q), tap("keys", k), tap("values", v)
            if cache is not None:
                k, v = cache.extend(k, v)
        if mask is not None:
            mask = tap("mask", mask)
        k, v = share_heads(k, self.n_heads), share_heads(v, self.n_heads)  # [B, H, K, d]
        heads = tap("heads", scaled_dot_product_attention(q, k, v, mask, tap=tap))  # [B, H, Q, d]
        return tap("output", self.out_proj(join_heads(heads)))

    def _project(self, x: Tensor, context: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries of `x`, keys and values of `context`: three products, or for a loaded model one that is the same.

        To whoever learns from this: read the last two lines. Decoding multiplies by one token's vector, where a
        product of three matrices below each other (`transformer.checkpoint.memory`) takes hardly longer than one.
        """
        if self.joined is not None and context is x:
            weight, bias = self.joined
            if weight.data_ptr() == self.q_proj.weight.data_ptr():  # if not, this is a copy, and W_Q was moved away
                heads = split_heads(linear(x, weight, bias), self.d_head)  # [B, H + G + G, T, d]
                q, k, v = heads.split((self.n_heads, self.n_kv_heads, self.n_kv_heads), dim=1)
                return q, k, v
        q, k, v = self.q_proj(x), self.k_proj(context), self.v_proj(context)  # [B, T, H * d], [B, T, G * d]
        return split_heads(q, self.d_head), split_heads(k, self.d_head), split_heads(v, self.d_head)
