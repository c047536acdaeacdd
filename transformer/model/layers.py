"""The layers: what stands around attention.

Each sub-layer (attention or feed-forward) adds its output to the residual stream. A norm stands either before the
sub-layer ("pre", x + f(norm(x))) or after the sum ("post", norm(x + f(x))).

Source: Vaswani et al. (2017), sections 3.1 and 3.3 (post-norm); Xiong et al., "On Layer Normalization in the
Transformer Architecture" (2020) for pre-norm.

Shapes: B batch, T tokens, S source tokens, D d_model, F d_ff.
"""

from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor, nn

from transformer.model.anatomy import anatomy
from transformer.model.attention import MultiHeadAttention
from transformer.model.cache import AttentionCache
from transformer.model.config import ModelConfig
from transformer.model.dropout import Dropout
from transformer.model.linear import Linear
from transformer.model.tap import NO_TAP, Tap

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": F.relu, "gelu": F.gelu}


def make_norm(config: ModelConfig) -> nn.LayerNorm:
    """A layer norm over d_model."""
    return nn.LayerNorm(config.d_model, eps=config.norm_eps, bias=config.bias)


class FeedForward(nn.Module):
    """Two linear maps with a non-linearity between, applied to each token by itself."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.up_proj = Linear(config.d_model, config.d_ff, bias=config.bias)
        self.down_proj = Linear(config.d_ff, config.d_model, bias=config.bias)
        self.activation = ACTIVATIONS[config.activation]

    def forward(self, x: Tensor, *, tap: Tap = NO_TAP) -> Tensor:
        """[B, T, D] -> [B, T, D]."""
        hidden = tap("pre_activation", self.up_proj(x))  # [B, T, F]
        hidden = tap("activation", self.activation(hidden))
        return tap("output", self.down_proj(hidden))


class Residual(nn.Module):
    """The norm and the residual connection around one sub-layer."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.norm = make_norm(config)
        self.dropout = Dropout(config.dropout)
        self.pre = config.norm == "pre"

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor], *, tap: Tap = NO_TAP) -> Tensor:
        """Add `sublayer`'s output to the stream `x` [B, T, D]."""
        if self.pre:
            return tap("residual", x + self.dropout(sublayer(tap("norm", self.norm(x)))))
        return tap("norm", self.norm(tap("residual", x + self.dropout(sublayer(x)))))


class EncoderLayer(nn.Module):
    """Self-attention over the whole source, then feed-forward."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.self_attn = MultiHeadAttention(config)
        self.ffn = FeedForward(config)
        self.self_attn_residual = Residual(config)
        self.ffn_residual = Residual(config)

    def forward(self, x: Tensor, mask: Tensor, *, tap: Tap = NO_TAP) -> Tensor:
        """One layer of the encoder.

        Args:
            x: The source stream [B, S, D].
            mask: Bool, broadcasts to [B, H, S, S].
            tap: Sees the layer's sites.

        Returns:
            [B, S, D].
        """
        attn, ffn = tap.child("self_attn"), tap.child("ffn")
        x = self.self_attn_residual(x, lambda h: self.self_attn(h, h, mask, tap=attn), tap=attn)
        x = self.ffn_residual(x, lambda h: self.ffn(h, tap=ffn), tap=ffn)
        return tap("output", x)


class DecoderLayer(nn.Module):
    """Self-attention over the target so far, cross-attention over the source if there is one, then feed-forward."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.self_attn = MultiHeadAttention(config)
        self.self_attn_residual = Residual(config)
        self.reads_memory = "cross" in anatomy(config).kinds
        if self.reads_memory:
            self.cross_attn = MultiHeadAttention(config)
            self.cross_attn_residual = Residual(config)
        self.ffn = FeedForward(config)
        self.ffn_residual = Residual(config)

    def forward(
        self,
        x: Tensor,
        memory: Tensor | None,
        self_mask: Tensor | None,
        cross_mask: Tensor | None,
        *,
        tap: Tap = NO_TAP,
        caches: tuple[AttentionCache, AttentionCache] | tuple[None, None] = (None, None),
    ) -> Tensor:
        """One layer of the decoder.

        Args:
            x: The target stream [B, T, D].
            memory: The encoder's output [B, S, D]; None for a decoder alone.
            self_mask: Bool, broadcasts to [B, H, T, T] (with a cache: keys of all tokens so far). None if every key
                may be seen.
            cross_mask: Bool, broadcasts to [B, H, T, S]. None if every key may be seen.
            tap: Sees the layer's sites.
            caches: Of self-attention and cross-attention; extended in place.

        Returns:
            [B, T, D].
        """
        attn, cross, ffn = tap.child("self_attn"), tap.child("cross_attn"), tap.child("ffn")
        x = self.self_attn_residual(x, lambda h: self.self_attn(h, h, self_mask, tap=attn, cache=caches[0]), tap=attn)
        if self.reads_memory:
            x = self.cross_attn_residual(
                x, lambda h: self.cross_attn(h, memory, cross_mask, tap=cross, cache=caches[1]), tap=cross
            )
        x = self.ffn_residual(x, lambda h: self.ffn(h, tap=ffn), tap=ffn)
        return tap("output", x)
