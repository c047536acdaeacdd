"""Changes of whole heads: what one writes, and how sharply it looks.

Source: Michel et al., "Are Sixteen Heads Really Better than One?" (2019), section 2.3, for heads set to 0.
"""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Final, get_args

from torch import Tensor

from transformer.errors import QueryError
from transformer.model.anatomy import Attention, Kind, anatomy
from transformer.model.config import MAX_LAYERS, MAX_WIDTH, ModelConfig
from transformer.model.tap import Replacer, Visitor
from transformer.runs.interventions.base import ChangeError, Ground, Group, Intervention
from transformer.runs.interventions.spelling import choice, place
from words import Sentence, say

ATTENTIONS: Final[dict[Kind, str]] = {
    "encoder": say("Encoder self-attention"),
    "decoder": say("Decoder self-attention"),
    "cross": say("Cross-attention"),
}
assert tuple(ATTENTIONS) == get_args(Kind)


@dataclass(frozen=True)
class ZeroHead(Intervention):
    """One head writes nothing: its part of the joined heads is 0 before W_O.

    Attributes:
        kind: Which attention.
        layer, head: Which one, from 0.
    """

    kind: Kind = choice(say("Attention"), ATTENTIONS, what="attention", key="attention", target=True)
    layer: int = place(say("Layer"), MAX_LAYERS, what="layer")
    head: int = place(say("Head"), MAX_WIDTH, what="head")

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


def head_name(kind: Kind, layer: int | None, head: int | None) -> str:
    """How a sentence calls a head, or all of a layer's or an attention's."""
    name = ATTENTIONS[kind]
    if layer is None and head is None:
        return say("{attention}, all layers and heads", attention=name)
    if layer is None:
        return say("{attention}, head {head} of every layer", attention=name, head=(head or 0) + 1)
    if head is None:
        return say("{attention}, layer {layer}, every head", attention=name, layer=layer + 1)
    return say("{attention}, layer {layer}, head {head}", attention=name, layer=layer + 1, head=head + 1)


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
    if layer is not None and layer >= attention.n_layers:
        raise ChangeError(
            "{change} names layer {layer}; this model has layers 1 to {n_layers} there.",
            change=str(change),
            layer=layer + 1,
            n_layers=attention.n_layers,
        )
    if head is not None and head >= config.n_heads:
        raise ChangeError(
            "{change} names head {head}; this model has heads 1 to {n_heads}.",
            change=str(change),
            head=head + 1,
            n_heads=config.n_heads,
        )
    return attention
