"""Changes of what whole heads write: nothing, or at every token the same.

Source: Michel et al., "Are Sixteen Heads Really Better than One?" (2019), section 2.3, for heads set to 0; Wang et
al., "Interpretability in the Wild" (2022), section 2, for a mean in the place of an output.

Shapes: B batch, H heads, Q queries, K keys, d d_head.
"""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Final, get_args

import torch
from torch import Tensor

from transformer.errors import QueryError
from transformer.model.anatomy import Attention, Kind, anatomy
from transformer.model.config import MAX_LAYERS, MAX_WIDTH, ModelConfig
from transformer.model.tap import Replacer, Visitor
from transformer.runs.interventions.base import ChangeError, Ground, Group, Intervention
from transformer.runs.interventions.spelling import choice, place
from transformer.runs.interventions.visiting import AtPlace, UnderMask, of_heads, seen_keys
from words import Sentence, say

ATTENTIONS: Final[dict[Kind, str]] = {
    "encoder": say("Encoder self-attention"),
    "decoder": say("Decoder self-attention"),
    "cross": say("Cross-attention"),
}
assert tuple(ATTENTIONS) == get_args(Kind)


@dataclass(frozen=True)
class ZeroHead(Intervention):
    """One head writes nothing: its part of the joined heads is 0 before W_O."""

    # Which attention.
    kind: Kind = choice(say("Attention"), ATTENTIONS, what="attention", key="attention", target=True)
    layer: int = place(say("Layer"), MAX_LAYERS, what="layer")  # which one, from 0
    head: int = place(say("Head"), MAX_WIDTH, what="head")  # which one, from 0

    word: ClassVar[str] = "zero"
    group: ClassVar[Group] = "heads"
    title: ClassVar[Sentence] = say("A head writes nothing")
    about: ClassVar[Sentence] = say(
        "Its part of the joined heads is 0 before W_O. Michel et al. (2019), section 2.3."
    )

    def check(self, config: ModelConfig) -> None:
        """See whether a model has this head."""
        super().check(config)
        check_head(self, config, self.kind, self.layer, self.head)

    def told(self) -> str:
        """In words."""
        return say("{head}: writes nothing", head=head_name(self.kind, self.layer, self.head))

    def visitors(self, ground: Ground) -> tuple[Visitor, ...]:
        """Sets the head to 0."""
        site = anatomy(ground.config).attention(self.kind).site(self.layer, "heads")
        return (Replacer({site: partial(_without, self.head)}, causal=True),)


def _without(head: int, heads: Tensor) -> Tensor:
    changed = heads.clone()  # [B, H, Q, d]
    changed[:, head] = 0.0
    return changed


@dataclass(frozen=True)
class HeadChange(Intervention):
    """What acts on one head, or on all heads of a layer or of an attention."""

    # Which attention.
    kind: Kind = choice(say("Attention"), ATTENTIONS, what="attention", key="attention", target=True)
    # Which one, from 0; None for all.
    layer: int | None = place(say("Layer"), MAX_LAYERS, what="layer", optional=True)
    head: int | None = place(say("Head"), MAX_WIDTH, what="head", optional=True)  # which one, from 0; None for all

    def check(self, config: ModelConfig) -> None:
        """See whether a model has this attention, layer and head."""
        super().check(config)
        check_head(self, config, self.kind, self.layer, self.head)

    @property
    def name(self) -> str:
        """How a sentence calls what is changed."""
        return head_name(self.kind, self.layer, self.head)

    def attention(self, config: ModelConfig) -> Attention:
        """The one that is changed."""
        return anatomy(config).attention(self.kind)

    def where(self, config: ModelConfig) -> str:
        """Its place in the model, or a pattern for all layers."""
        return self.attention(config).place("*" if self.layer is None else self.layer)


@dataclass(frozen=True)
class MeanHead(HeadChange):
    """A head writes at every token the mean of what it would write.

    In the encoder the mean is over the tokens that are no padding. In a decoder it is over the tokens read so far:
    what comes later weighs nothing, as ever.
    """

    word: ClassVar[str] = "mean"
    group: ClassVar[Group] = "heads"
    title: ClassVar[Sentence] = say("A head writes its mean")
    about: ClassVar[Sentence] = say(
        "The same at every token: its mean over the source, or over what the decoder has read so far. Wang et al. "
        "(2022), section 2."
    )

    def told(self) -> str:
        """In words."""
        if self.kind == "encoder":
            return say("{head}: writes its mean over the source", head=self.name)
        return say("{head}: writes its mean over the tokens so far", head=self.name)

    def visitors(self, ground: Ground) -> tuple[Visitor, ...]:
        """Puts the mean in the place of what is written."""
        where = self.where(ground.config)
        if self.attention(ground.config).stack == "encoder":
            return (UnderMask(where, "heads", partial(_mean_of_all, self.head)),)
        # Of a cache only the last token's output would be there, and not those before it.
        return (AtPlace(f"{where}.heads", partial(_mean_so_far, self.head), causal=False),)


def _mean_of_all(head: int | None, heads: Tensor, mask: Tensor | None, offset: int) -> Tensor:
    """Outputs [B, H, Q, d] of a self-attention -> the mean over all tokens that are seen."""
    seen = seen_keys(mask, heads)[:, None, :, None].to(heads.dtype)  # [B, 1, Q, 1]
    mean = (heads * seen).sum(-2, keepdim=True) / seen.sum(-2, keepdim=True)  # [B, H, 1, d]
    return of_heads(head, heads, mean.expand_as(heads))


def _mean_so_far(head: int | None, heads: Tensor, offset: int) -> Tensor:
    """Outputs [B, H, Q, d] -> the mean over each token and those before it."""
    count = torch.arange(1, heads.size(-2) + 1, dtype=heads.dtype, device=heads.device)[:, None]  # [Q, 1]
    return of_heads(head, heads, heads.cumsum(-2) / count)


def head_name(kind: Kind, layer: int | None, head: int | None) -> str:
    """How a sentence calls a head, or all of a layer's or an attention's."""
    if layer is None and head is None:
        return say("{attention}, all layers and heads", attention=ATTENTIONS[kind])
    return part_name(ATTENTIONS[kind], layer, head)


def part_name(attention: str, layer: int | None, head: int | None) -> str:
    """How a sentence calls a head of an attention that has a name; None is all layers or heads, but not both."""
    if layer is None:
        return say("{attention}, head {head} of every layer", attention=attention, head=(head or 0) + 1)
    if head is None:
        return say("{attention}, layer {layer}, every head", attention=attention, layer=layer + 1)
    return say("{attention}, layer {layer}, head {head}", attention=attention, layer=layer + 1, head=head + 1)


def check_head(
    change: Intervention, config: ModelConfig, kind: Kind, layer: int | None = None, head: int | None = None
) -> Attention:
    """See whether a model has an attention, a layer of it and a head, where they are named; returns the attention.

    Raises:
        ChangeError: It has not; names the limit.
    """
    try:
        attention = anatomy(config).attention(kind)
    except QueryError as error:
        raise ChangeError(error.sentence) from None
    check_layer(change, layer, attention.n_layers)
    n_heads = config.of(attention.stack).n_heads
    if head is not None and head >= n_heads:
        raise ChangeError(
            "{change} names head {head}; this model has heads 1 to {n_heads}.",
            change=str(change),
            head=head + 1,
            n_heads=n_heads,
        )
    return attention


def check_layer(change: Intervention, layer: int | None, n_layers: int) -> None:
    """See whether there is a layer, if one is named.

    Raises:
        ChangeError: There is not; names the limit.
    """
    if layer is not None and layer >= n_layers:
        raise ChangeError(
            "{change} names layer {layer}; this model has layers 1 to {n_layers} there.",
            change=str(change),
            layer=layer + 1,
            n_layers=n_layers,
        )
