"""Layers and sub-layers that are skipped: the stream passes by them.

Source: Fan et al., "Reducing Transformer Depth on Demand with Structured Dropout" (2020), section 3.1, for whole
layers; Veit et al., "Residual Networks Behave Like Ensembles of Relatively Shallow Networks" (2016), section 4.1, who
take single blocks out of a trained network.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Final, Literal, get_args

from transformer.errors import QueryError
from transformer.model.anatomy import StackName, Sublayer, anatomy
from transformer.model.config import MAX_LAYERS, ModelConfig
from transformer.model.layers import Around
from transformer.model.tap import Rewirer, Visitor
from transformer.runs.interventions.base import ChangeError, Ground, Group, Intervention
from transformer.runs.interventions.heads import check_layer
from transformer.runs.interventions.spelling import choice, place
from words import Sentence, say

Part = Literal["whole", "self", "cross", "ffn"]

STACKS: Final[dict[StackName, str]] = {"encoder": say("Encoder"), "decoder": say("Decoder")}
PARTS: Final[dict[Part, str]] = {
    "whole": say("The whole layer"),
    "self": say("Self-attention"),
    "cross": say("Cross-attention"),
    "ffn": say("Feed-forward"),
}
SUBLAYERS: Final[dict[Part, Sublayer]] = {"self": "self_attn", "cross": "cross_attn", "ffn": "ffn"}
assert tuple(PARTS) == get_args(Part)


@dataclass(frozen=True)
class Skip(Intervention):
    """A sub-layer is skipped, or all of a layer: what it computes is let go, and so is the norm around it."""

    stack: StackName = choice(say("Stack"), STACKS, target=True)  # whose layer
    # Which one, from 0; None for all.
    layer: int | None = place(say("Layer"), MAX_LAYERS, what="layer", optional=True)
    part: Part = choice(say("Skipped part"), PARTS, "whole", target=True)  # which sub-layer, or the whole layer

    word: ClassVar[str] = "skip"
    group: ClassVar[Group] = "layers"
    title: ClassVar[Sentence] = say("A layer or a sub-layer is skipped")
    about: ClassVar[Sentence] = say(
        "The stream passes by it as it came, without the norm around it. Veit et al. (2016), section 4.1."
    )

    def check(self, config: ModelConfig) -> None:
        """See whether a model has this part."""
        super().check(config)
        check_part(self, config, self.stack, self.layer, SUBLAYERS.get(self.part))

    def told(self) -> str:
        """In words."""
        stack, part = STACKS[self.stack], PARTS[self.part]
        if self.layer is None:
            if self.part == "whole":
                return say("{stack}: every layer is skipped", stack=stack)
            return say("{stack}, every layer: {part} is skipped", stack=stack, part=part)
        if self.part == "whole":
            return say("{stack}, layer {layer}: skipped", stack=stack, layer=self.layer + 1)
        return say("{stack}, layer {layer}: {part} is skipped", stack=stack, layer=self.layer + 1, part=part)

    def visitors(self, ground: Ground) -> tuple[Visitor, ...]:
        """Has the stream pass by."""
        layer = "*" if self.layer is None else str(self.layer)
        names = anatomy(ground.config).stack(self.stack).sublayers
        parts = names if self.part == "whole" else (SUBLAYERS[self.part],)
        return (Rewirer({f"{self.stack}.{layer}.{part}.around": _skipping for part in parts}),)


def _skipping(around: Around) -> Around:
    return replace(around, skips=True)


def check_part(
    change: Intervention, config: ModelConfig, stack: StackName, layer: int | None, sublayer: Sublayer | None
) -> None:
    """See whether a model has a stack, a layer of it and a sub-layer, where they are named.

    Raises:
        ChangeError: It has not; names the limit.
    """
    try:
        found = anatomy(config).stack(stack)
        if sublayer == "cross_attn" and sublayer not in found.sublayers:
            anatomy(config).attention("cross")  # says why it is missing, unless the encoder was asked
    except QueryError as error:
        raise ChangeError(error.sentence) from None
    if sublayer is not None and sublayer not in found.sublayers:
        raise ChangeError(
            "{change} names the encoder's cross-attention; an encoder has none. Choose the decoder.",
            change=str(change),
        )
    check_layer(change, layer, found.n_layers)
