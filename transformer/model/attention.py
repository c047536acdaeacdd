"""Multi-head attention: scaled dot-product attention and its projections, grouped queries, QK norm, KV cache.

Every query takes a weighted mean of the values, weighted by how well it matches each key.
`scaled_dot_product_attention` is the equation; `MultiHeadAttention` holds the learned projections around it. What later
models changed is in `transformer.model.attention_scores` and `transformer.model.attention_positions`; on a first
reading, ignore every `bias`, `how` and `order`.

Source: Vaswani et al. (2017), section 3.2, equation 1. Ainslie et al., "GQA" (2023), for key-value heads that several
query heads share. Henry et al., "Query-Key Normalization" (2020), for norms of queries and keys.

Shapes: B batch, H heads, G key-value heads (H unless they are shared), Q queries, K keys, D d_model, d d_head.
"""

import math
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer.model.attention_positions import NO_ORDER, AttentionPositions
from transformer.model.attention_scores import Scoring, scoring
from transformer.model.cache import AttentionCache
from transformer.model.config import ModelConfig
from transformer.model.module import Dropout, Linear, Module, products
from transformer.model.rotary import rotate
from transformer.model.taps import NO_TAP, Tap


def scaled_dot_product_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    *,
    how: Scoring | None = None,
    bias: Tensor | None = None,
    tap: Tap = NO_TAP,
) -> Tensor:
    """softmax(q k^T / sqrt(d_head)) v, over the keys that the mask allows.

    A query that may not attend to any key gets weights of 0 and an output of 0, not NaN.

    Args:
        q: Queries [B, H, Q, d].
        k: Keys [B, H, K, d].
        v: Values [B, H, K, d].
        mask: Bool, broadcasts to [B, H, Q, K]; True = may attend. None if every key may be seen.
        how: How scores are computed from q k^T; None: as above.
        bias: Added to the scores [1, H, Q, K]; None: nothing.
        tap: Sees `scores` and `weights`; when it wants neither, torch's fused kernel computes the same result.

    Returns:
        [B, H, Q, d].
    """
    how = how or Scoring(1 / math.sqrt(q.size(-1)))
    if how.fused and not (tap.wants("scores") or tap.wants("weights")):
        added = mask if bias is None or mask is None else bias.masked_fill(~mask, -torch.inf)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=bias if mask is None else added, scale=how.scale)
    scores = tap("scores", how.scores(q, k, bias))  # [B, H, Q, K]
    weights = tap("weights", how.weights(scores, mask))
    return weights @ v


def split_heads(x: Tensor, d_head: int) -> Tensor:
    """Cut each token's vector into heads: [B, T, H * d] -> [B, H, T, d]."""
    return x.view(x.size(0), x.size(1), -1, d_head).transpose(1, 2)


def join_heads(heads: Tensor) -> Tensor:
    """Put each token's heads side by side: [B, H, T, d] -> [B, T, H * d]."""
    return heads.transpose(1, 2).flatten(2)


def share_heads(x: Tensor, n_heads: int) -> Tensor:
    """Give each query head its keys or values: [B, G, K, d] -> [B, H, K, d]; shared ones are repeated."""
    return x if x.size(1) == n_heads else x.repeat_interleave(n_heads // x.size(1), dim=1)


class MultiHeadAttention(Module):
    """Several attentions side by side, each in its own d_head-wide projection of the stream."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.n_heads, self.n_kv_heads, self.d_head = config.n_heads, config.n_kv_heads, config.d_head
        queries, keys, bias = self.n_heads * self.d_head, self.n_kv_heads * self.d_head, config.biases
        self.q_proj = Linear(config.d_model, queries, bias=bias.attention)  # W_Q
        self.k_proj = Linear(config.d_model, keys, bias=bias.attention)  # W_K
        self.v_proj = Linear(config.d_model, keys, bias=bias.attention)  # W_V
        self.out_proj = Linear(queries, config.d_model, bias=bias.attention_output)  # W_O
        self.scoring = scoring(config)
        self.dropout = Dropout(config.attention_dropout)
        norms = [nn.RMSNorm(self.d_head, eps=config.norm_eps) if config.qk_norm else None for _ in range(2)]
        self.q_norm, self.k_norm = norms

    def forward(
        self,
        x: Tensor,
        context: Tensor,
        mask: Tensor | None,
        *,
        tap: Tap = NO_TAP,
        cache: AttentionCache | None = None,
        order: AttentionPositions = NO_ORDER,
    ) -> Tensor:
        """Attend from `x` to `context` (the same tensor in self-attention).

        Args:
            x: Where the queries come from [B, Q, D].
            context: Where the keys and values come from [B, K, D].
            mask: Bool, broadcasts to [B, H, Q, K]; True = may attend. None if every key may be seen.
            tap: Sees the sites of `transformer.model.sites`.
            cache: Keys and values of earlier calls; extended in place.
            order: What positions do here.

        Returns:
            [B, Q, D].
        """
        how, d_head = tap.setting("scoring", self.scoring), tap.setting("d_head", self.d_head)
        if self.training and self.dropout.level:
            how = replace(how, weigh=lambda _, *given, how=how: self.dropout(how.weights(*given)))
        if cache is not None and cache.complete:
            q = split_heads(self.q_proj(x, tap=tap.child("q_proj")), d_head)  # [B, H, Q, d]
            q = self._ready("queries", q, self.q_norm, order, tap)
            k, v = cache.read()  # [B, G, K, d]
        else:
            q, k, v = (split_heads(each, d_head) for each in self._project(x, context, tap))  # k and v: [B, G, K, d]
            q = self._ready("queries", q, self.q_norm, order, tap)
            k = self._ready("keys", k, self.k_norm, order, tap)
            v = tap("values", v)
            if cache is not None:
                k, v = cache.extend(k, v)
        if mask is not None:
            mask = tap("mask", mask)
        k, v = share_heads(k, q.size(1)), share_heads(v, q.size(1))  # [B, H, K, d]
        bias = order.bias if order.bias is None else tap("bias", order.bias)  # [1, H, Q, K]
        heads = scaled_dot_product_attention(q, k, v, mask, how=how, bias=bias, tap=tap)  # [B, H, Q, d]
        heads = tap("heads", heads)
        return tap("output", self.out_proj(join_heads(heads), tap=tap.child("out_proj")))

    def _project(self, x: Tensor, context: Tensor, tap: Tap = NO_TAP) -> list[Tensor]:
        """Queries x W_Q, keys and values of `context` W_K and W_V, side by side for all heads."""
        maps = {"q_proj": self.q_proj, "k_proj": self.k_proj, "v_proj": self.v_proj}
        return products(maps, (x, context, context), tap=tap)  # [B, Q, H * d], [B, K, G * d], [B, K, G * d]

    def _ready(self, name: str, x: Tensor, norm: nn.RMSNorm | None, order: AttentionPositions, tap: Tap) -> Tensor:
        """Queries or keys [B, H, T, d] as they are multiplied: normed and turned, if the model does so."""
        if norm is not None or order.rotation is not None:
            x = tap(f"projected_{name}", x)
            x = x if norm is None else norm(x)
            x = x if order.rotation is None else rotate(x, order.rotation)
        return tap(name, x)
