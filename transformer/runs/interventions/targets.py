"""Base classes of interventions by head, attention, stack, layer, sub-layer; hooks that apply them.

A change of a head is a `HeadChange`. Other changes are made in one attention or all (`AttentionChange`), in one stack
or both (`StackChange`), in one layer of these or all (`LayerChange`).

The visitors `AtPlace` and `UnderMask` apply a change: they know the place of the first token, and what a map's mask
closes. A visitor is made for one run, so it may remember a mask until it sees the weights under it.

Shapes: B batch, H heads, Q queries, K keys.
"""

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import Any, ClassVar, Final, get_args

import torch
from torch import Tensor

from transformer.errors import QueryError
from transformer.i18n import say
from transformer.model.anatomy import Attention, Kind, StackName, Sublayer, anatomy
from transformer.model.config import MAX_LAYERS, MAX_WIDTH, ModelConfig
from transformer.runs.interventions.base import Group, Intervention, InterventionError
from transformer.runs.interventions.fields import ALL as ALL
from transformer.runs.interventions.fields import choice, place, spelled

ATTENTIONS: Final[dict[Kind, str]] = {
    "encoder": say("Encoder self-attention"),
    "decoder": say("Decoder self-attention"),
    "cross": say("Cross-attention"),
}
assert tuple(ATTENTIONS) == get_args(Kind)
WHERE: Final[dict[str, str]] = {ALL: say("All attentions"), **{str(kind): name for kind, name in ATTENTIONS.items()}}
SELF: Final[dict[str, str]] = {
    ALL: say("All self-attentions"),
    "encoder": ATTENTIONS["encoder"],
    "decoder": ATTENTIONS["decoder"],
}
STACKS: Final[dict[StackName, str]] = {"encoder": say("Encoder"), "decoder": say("Decoder")}
ANY_STACK: Final[dict[str, str]] = {ALL: say("Both stacks"), "encoder": say("Encoder"), "decoder": say("Decoder")}


class HeadChange(Intervention):
    """A change of one head, or of all heads of a layer or an attention."""

    # Which attention.
    kind: Kind = choice(say("Attention"), ATTENTIONS, what="attention", key="attention", target=True)
    # Which one, from 0; None for all.
    layer: int | None = place(say("Layer"), MAX_LAYERS, what="layer", optional=True)
    head: int | None = place(say("Head"), MAX_WIDTH, what="head", optional=True)  # which one, from 0; None for all

    group: ClassVar[Group] = "heads"

    def check(self, config: ModelConfig) -> None:
        super().check(config)
        check_head(self, config, self.kind, self.layer, self.head)

    @property
    def name(self) -> str:
        """How a sentence calls what is changed."""
        if self.layer is None and self.head is None:
            return say("{attention}, all layers and heads", attention=ATTENTIONS[self.kind])
        return part_name(ATTENTIONS[self.kind], self.layer, self.head)

    def attention(self, config: ModelConfig) -> Attention:
        """The attention that is changed."""
        return anatomy(config).attention(self.kind)

    def where(self, config: ModelConfig) -> str:
        """Its place in the model, or a pattern for all layers."""
        return self.attention(config).place("*" if self.layer is None else self.layer)


def part_name(attention: str, layer: int | None, head: int | None) -> str:
    """What a sentence calls a head of a named attention; None is all layers or heads, but not both."""
    if layer is None:
        return say("{attention}, head {head} of every layer", attention=attention, head=(head or 0) + 1)
    if head is None:
        return say("{attention}, layer {layer}, every head", attention=attention, layer=layer + 1)
    return say("{attention}, layer {layer}, head {head}", attention=attention, layer=layer + 1, head=head + 1)


def where(options: dict[str, str] = WHERE) -> Any:
    """A field that names one attention, or all of them."""
    return choice(say("Attention"), options, ALL, target=True)


class AttentionChange(Intervention):
    """A change of one attention or of all."""

    where: str = where()

    group: ClassVar[Group] = "attention"

    def check(self, config: ModelConfig) -> None:
        super().check(config)
        self.check_part(config)

    def check_part(self, config: ModelConfig, layer: int | None = None, head: int | None = None) -> None:
        """Check that a model has the attention, and a layer and a head of it, or raise an InterventionError."""
        layers: dict[str, int] = {one.kind: one.n_layers for one in anatomy(config).attentions}
        found = list(layers) if self.where == ALL else [self.where]
        deepest = max(found, key=lambda kind: layers.get(kind, 0))
        check_head(self, config, deepest, layer, head)  # type: ignore[arg-type]  # a field's options are the kinds

    @property
    def name(self) -> str:
        """How a sentence calls what is changed."""
        return spelled(self)["where"][1].options[self.where]

    def chosen(self, config: ModelConfig) -> tuple[Attention, ...]:
        """The attentions that are changed."""
        named = spelled(self)["where"][1].options if self.where == ALL else (self.where,)
        return tuple(one for one in anatomy(config).attentions if one.kind in named)


class StackChange(Intervention):
    """A change of one stack or of both."""

    stack: str = choice(say("Stack"), ANY_STACK, ALL, target=True)

    group: ClassVar[Group] = "layers"

    def check(self, config: ModelConfig) -> None:
        super().check(config)
        self.stacks(config)

    @property
    def name(self) -> str:
        """How a sentence calls what is changed."""
        return ANY_STACK[self.stack]

    def stacks(self, config: ModelConfig) -> Sequence[StackName]:
        """The stacks that are changed; an InterventionError if the model lacks the one that is named."""
        parts = anatomy(config)
        if self.stack == ALL:
            return [one.name for one in parts.stacks]
        try:
            return [parts.stack("encoder" if self.stack == "encoder" else "decoder").name]
        except QueryError as error:
            raise InterventionError(error.sentence) from None


class LayerChange(StackChange):
    """A change of one layer of a stack or of all."""

    layer: int | None = place(say("Layer"), MAX_LAYERS, what="layer", optional=True)

    def check(self, config: ModelConfig) -> None:
        super().check(config)
        check_layer(self, self.layer, max(anatomy(config).stack(name).n_layers for name in self.stacks(config)))

    @property
    def name(self) -> str:
        if self.layer is None:
            return say("{stack}, every layer", stack=super().name)
        return say("{stack}, layer {layer}", stack=super().name, layer=self.layer + 1)

    def patterns(self, config: ModelConfig, name: str) -> list[str]:
        """Patterns for this name in each chosen layer."""
        layer = "*" if self.layer is None else self.layer
        return [f"{one}.{layer}.{name}" for one in self.stacks(config)]


class PartChange(Intervention):
    """A change of one layer of a stack or of all, or of a sub-layer of these."""

    stack: StackName = choice(say("Stack"), STACKS, target=True)  # the encoder or the decoder
    # Which one, from 0; None for all, or for what is not in a layer.
    layer: int | None = place(say("Layer"), MAX_LAYERS, what="layer", optional=True)

    group: ClassVar[Group] = "layers"

    @property
    def sublayer(self) -> Sublayer | None:
        """Which sub-layer, if it is only one."""
        raise NotImplementedError

    def check(self, config: ModelConfig) -> None:
        super().check(config)
        try:
            found = anatomy(config).stack(self.stack)
            if self.sublayer == "cross_attn" and self.sublayer not in found.sublayers:
                anatomy(config).attention("cross")  # says why it is missing, unless the encoder was asked
        except QueryError as error:
            raise InterventionError(error.sentence) from None
        if self.sublayer is not None and self.sublayer not in found.sublayers:
            raise InterventionError(
                "{change} names cross-attention in the encoder, but an encoder has none. Choose the decoder.",
                change=str(self),
            )
        check_layer(self, self.layer, found.n_layers)


def check_head(
    change: Intervention, config: ModelConfig, kind: Kind, layer: int | None = None, head: int | None = None
) -> None:
    """Check that a model has the attention, layer and head that are named; an InterventionError if not."""
    try:
        attention = anatomy(config).attention(kind)
    except QueryError as error:
        raise InterventionError(error.sentence) from None
    check_layer(change, layer, attention.n_layers)
    n_heads = config.of(attention.stack).n_heads
    if head is not None and head >= n_heads:
        raise InterventionError(
            "{change} names head {head}, but this model has only heads 1 to {n_heads}.",
            change=str(change),
            head=head + 1,
            n_heads=n_heads,
        )


def check_layer(change: Intervention, layer: int | None, n_layers: int) -> None:
    """Check that a named layer exists; an InterventionError gives the limit."""
    if layer is not None and layer >= n_layers:
        raise InterventionError(
            "{change} names layer {layer}, but this part of the model has only layers 1 to {n_layers}.",
            change=str(change),
            layer=layer + 1,
            n_layers=n_layers,
        )


def check_readable(change: Intervention, token: int | None, config: ModelConfig) -> None:
    """Check that a named token is within what a model may read; an InterventionError gives the limit."""
    if token is not None and token >= config.max_len:
        raise InterventionError(
            "{change} names token {place}, but this model reads at most {n} tokens. Choose an earlier token.",
            change=str(change),
            place=token + 1,
            n=config.max_len,
        )


def check_read(change: Intervention, token: int | None, ids: tuple[int, ...]) -> None:
    """Check that a source has a named token; an InterventionError gives the number of its tokens."""
    if token is not None and token >= len(ids):
        raise InterventionError(
            "{change} names token {place} of the source, but this source has only tokens 1 to {n}. Choose one of "
            "these.",
            change=str(change),
            place=token + 1,
            n=len(ids),
        )


class AtPlace:
    """Changes values at one site or pattern, by a function of the value and the place of its first token, from 0.

    It is causal if a token's new value depends only on its old one; see `transformer.model.taps.Tap.causal`. If a
    head is named, only that head of a value [B, H, ...] changes.
    """

    def __init__(
        self, site: str, change: Callable[[Tensor, int], Tensor], *, head: int | None = None, causal: bool = True
    ) -> None:
        self._site, self._change, self._head, self.causal = site, change, head, causal

    def wants(self, site: str) -> bool:
        """Whether it is this site."""
        return fnmatchcase(site, self._site)

    def visit(self, site: str, value: Tensor, offset: int) -> Tensor:
        """Change it."""
        return of_heads(self._head, value, self._change(value, offset))


class UnderMask:
    """Changes values of an attention by a function of the value, its mask and the place of its first query.

    The attention is named by its place in the model or a pattern, such as `decoder.*.cross_attn`, and by a site:
    "scores", "weights" or "heads". The mask is the attention's own (bool, broadcasts to [B, H, Q, K]; None if every
    key may be seen).
    """

    causal = True

    def __init__(
        self, place: str, name: str, change: Callable[[Tensor, Tensor | None, int], Tensor], *, head: int | None = None
    ) -> None:
        self._mask, self._site, self._change, self._head = f"{place}.mask", f"{place}.{name}", change, head
        self._masks: dict[str, Tensor] = {}

    def wants(self, site: str) -> bool:
        """Whether it is the site, or the mask."""
        return fnmatchcase(site, self._site) or fnmatchcase(site, self._mask)

    def visit(self, site: str, value: Tensor, offset: int) -> Tensor:
        """Remember the mask; change the value."""
        attention, _, name = site.rpartition(".")
        if name == "mask":
            self._masks[attention] = value
            return value
        return of_heads(self._head, value, self._change(value, self._masks.pop(attention, None), offset))


def of_heads(head: int | None, old: Tensor, new: Tensor) -> Tensor:
    """`new` in one head [B, H, ...] and `old` in the others; `new` in all for None."""
    if head is None:
        return new
    changed = old.clone()
    changed[:, head] = new[:, head]
    return changed


def open_cells(mask: Tensor | None, weights: Tensor) -> Tensor:
    """The mask in the shape of the weights, bool [B, H, Q, K]."""
    return torch.ones_like(weights, dtype=torch.bool) if mask is None else mask.expand_as(weights)


def seen_keys(mask: Tensor | None, heads: Tensor) -> Tensor:
    """Which tokens some query of a self-attention may see, by its mask: bool [B, K]; `heads` is [B, H, K, d]."""
    if mask is None:
        return torch.ones(heads.size(0), heads.size(-2), dtype=torch.bool, device=heads.device)
    return mask.flatten(1, 2).any(1).expand(heads.size(0), heads.size(-2))
