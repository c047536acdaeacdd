"""Encoder layer and decoder layer; the residual connection around a sub-layer, with pre- or post-norm and dropout.

Each sub-layer (attention or feed-forward) adds its output to the residual stream. The norm is either before the
sub-layer ("pre", x + f(norm(x))) or after the sum ("post", norm(x + f(x))). Some models have two ("both",
x + norm(f(norm(x)))). In others both sub-layers of a layer read the same x ("parallel",
x + f(norm(x)) + g(norm(x)) with two norms). The smallest models of tutorials have neither norms nor a residual
stream: f(x) replaces x.

Source: Vaswani et al. (2017), sections 3.1 and 3.3 (post-norm) and 5.4 (dropout); Xiong et al., "On Layer
Normalization in the Transformer Architecture" (2020) for pre-norm; Gemma Team, "Gemma 2" (2024), section 2, for both;
Wang and Komatsuzaki, "GPT-J-6B" (2021), for parallel.

Shapes: B batch, T tokens, S source tokens, D d_model.
"""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from transformer.model.anatomy import anatomy
from transformer.model.attention import MultiHeadAttention
from transformer.model.attention_positions import NO_ORDER, AttentionPositions
from transformer.model.cache import AttentionCache
from transformer.model.config import ModelConfig
from transformer.model.feed_forward import FeedForward, unchanged
from transformer.model.module import Dropout, Module
from transformer.model.norms import make_norm
from transformer.model.taps import NO_TAP, Tap


@dataclass(frozen=True)
class Around:
    """Where the norm and the residual connection of a sub-layer are."""

    post: bool  # the norm is after the sum; if not, before the sub-layer
    adds: bool  # the stream is added to the sub-layer's output
    norms: bool = True  # there are norms; only a changed run sets this to False
    # The sub-layer's output is dropped, and the stream passes unchanged; only in a run changed in this way.
    skips: bool = False
    # The output is added to what the norm gave, and not to what it read; only in a run changed in this way.
    onto_norm: bool = False


class Residual(Module):
    """The norm and the residual connection around one sub-layer."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.norm = make_norm(config)
        self.dropout = Dropout(config.dropout)
        self.output_norm = make_norm(config) if config.norm == "both" else None
        self.around = Around(post=config.norm == "post", adds=config.residual)

    def forward(
        self, x: Tensor, sublayer: Callable[[Tensor], Tensor], *, onto: Tensor | None = None, tap: Tap = NO_TAP
    ) -> Tensor:
        """Add the output of `sublayer` for the stream x [B, T, D] to x, or to the stream `onto` -> [B, T, D]."""
        how = tap.setting("around", self.around)
        norm: Callable[[Tensor], Tensor] = tap.setting("norm", self.norm) if how.norms else unchanged
        stream = x if onto is None else onto
        if how.post:
            made = self.dropout(sublayer(x))
            if how.skips:
                return tap("norm", tap("residual", stream))
            return tap("norm", norm(tap("residual", stream + made if how.adds else made)))
        normed = tap("norm", norm(x))
        added, stream = sublayer(normed), normed if how.onto_norm else stream
        if self.output_norm is not None:
            added = tap("output_norm", self.output_norm(added) if how.norms else added)
        if how.skips:
            return tap("residual", stream)
        made = self.dropout(added)
        return tap("residual", stream + made if how.adds else made)


class EncoderLayer(Module):
    """Self-attention over the whole source, then feed-forward."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.self_attn = MultiHeadAttention(config)
        self.ffn = FeedForward(config)
        self.self_attn_residual = Residual(config)
        self.ffn_residual = Residual(config)
        self.parallel = config.parallel_residual

    def forward(self, x: Tensor, mask: Tensor, *, tap: Tap = NO_TAP, order: AttentionPositions = NO_ORDER) -> Tensor:
        """One layer: the source stream [B, S, D] -> [B, S, D]; the mask is bool and broadcasts to [B, H, S, S]."""
        attn, ffn = tap.child("self_attn"), tap.child("ffn")
        after = self.self_attn_residual(x, lambda h: self.self_attn(h, h, mask, tap=attn, order=order), tap=attn)
        x = self.ffn_residual(x if self.parallel else after, lambda h: self.ffn(h, tap=ffn), onto=after, tap=ffn)
        return tap("output", x)


class DecoderLayer(Module):
    """Self-attention over the target so far, cross-attention if there is an encoder, then feed-forward."""

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
        self.parallel = config.parallel_residual

    def forward(
        self,
        x: Tensor,
        memory: Tensor | None,
        self_mask: Tensor | None,
        cross_mask: Tensor | None,
        *,
        tap: Tap = NO_TAP,
        caches: tuple[AttentionCache, AttentionCache] | tuple[None, None] = (None, None),
        order: AttentionPositions = NO_ORDER,
    ) -> Tensor:
        """One layer: the target stream x [B, T, D], and the encoder's output [B, S, D] if there is one -> [B, T, D].

        Masks are bool and broadcast to [B, H, T, T] (with a cache: keys of all tokens so far) and [B, H, T, S]; None
        if every key may be seen. The caches of self-attention and cross-attention are extended in place.
        """
        attn, cross, ffn = tap.child("self_attn"), tap.child("cross_attn"), tap.child("ffn")
        after = self.self_attn_residual(
            x, lambda h: self.self_attn(h, h, self_mask, tap=attn, cache=caches[0], order=order), tap=attn
        )
        if self.reads_memory:
            after = self.cross_attn_residual(
                after, lambda h: self.cross_attn(h, memory, cross_mask, tap=cross, cache=caches[1]), tap=cross
            )
        x = self.ffn_residual(x if self.parallel else after, lambda h: self.ffn(h, tap=ffn), onto=after, tap=ffn)
        return tap("output", x)
