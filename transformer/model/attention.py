"""Attention: every query takes a weighted mean of the values, weighted by how well it matches each key.

`scaled_dot_product_attention` is the equation; `MultiHeadAttention` holds the learned projections around it.

Source: Vaswani et al. (2017), section 3.2, equation 1.

Shapes: B batch, H heads, Q queries, K keys, D d_model, d d_head.
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


class MultiHeadAttention(nn.Module):
    """Several attentions side by side, each in its own d_head-wide projection of the stream.

    The projections to queries, keys and values are the three blocks of rows of one matrix, `in_proj`: where all
    three are needed at once, one large product is faster than three small ones.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.n_heads = config.n_heads
        self.in_proj = Linear(config.d_model, 3 * config.d_model, bias=config.bias)  # W_Q, W_K, W_V
        self.out_proj = Linear(config.d_model, config.d_model, bias=config.bias)

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
            tap: Sees the sites of `transformer.model.tap.SITES`.
            cache: Keys and values of earlier calls; extended in place.

        Returns:
            [B, Q, D].
        """
        if cache is not None and cache.complete:
            (q,) = self._project(x, 0, 1)
            q = tap("queries", q)  # [B, H, Q, d]
            k, v = cache.read()  # [B, H, K, d]
        else:
            if context is x:
                q, k, v = self._project(x, 0, 3)
            else:
                (q,), (k, v) = self._project(x, 0, 1), self._project(context, 1, 3)
            q, k, v = tap("queries", q), tap("keys", k), tap("values", v)
            if cache is not None:
                k, v = cache.extend(k, v)
        if mask is not None:
            mask = tap("mask", mask)
        heads = tap("heads", scaled_dot_product_attention(q, k, v, mask, tap=tap))  # [B, H, Q, d]
        joined = heads.transpose(1, 2).flatten(2)  # [B, Q, D]
        return tap("output", self.out_proj(joined))

    def _project(self, x: Tensor, first: int, last: int) -> tuple[Tensor, ...]:
        """Project with the blocks `first` to `last - 1` of W_Q, W_K, W_V: [B, T, D] -> each [B, H, T, d]."""
        if last - first == 3:
            joined = self.in_proj(x)  # [B, T, 3 * D]
        else:
            rows = (0, first * x.size(-1), (last - first) * x.size(-1))
            bias = None if self.in_proj.bias is None else self.in_proj.bias.narrow(*rows)
            joined = linear(x, self.in_proj.weight.narrow(*rows), bias)  # [B, T, n * D]
        blocks = joined.view(*x.shape[:2], last - first, self.n_heads, -1)  # [B, T, n, H, d]
        return blocks.permute(2, 0, 3, 1, 4).unbind()
