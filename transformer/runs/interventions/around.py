"""Changes of what stands around the sub-layers: the residual stream, norms, feed-forward, the embedding's scale.

Source: Vaswani et al. (2017), sections 3.1, 3.3 and 3.4; He et al., "Deep Residual Learning" (2016), for the stream;
Xiong et al., "On Layer Normalization in the Transformer Architecture" (2020), for the two places of a norm.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Final

import torch

from transformer.model.anatomy import StackName, anatomy
from transformer.model.config import MAX_LAYERS, ModelConfig
from transformer.model.feed_forward import unchanged
from transformer.model.layers import Around
from transformer.model.tap import Replacer, Rewirer, Visitor
from transformer.runs.interventions.base import ChangeError, Ground, Group, Intervention
from transformer.runs.interventions.heads import check_layer
from transformer.runs.interventions.spelling import choice, number, place
from transformer.runs.interventions.where import ALL, STACKS, stack, stacks
from words import Sentence, say

SUBLAYERS: Final[dict[str, str]] = {
    ALL: say("All sub-layers"),
    "selfattn": say("Self-attention"),
    "crossattn": say("Cross-attention"),
    "ffn": say("Feed-forward"),
}
NORMS: Final[dict[str, str]] = SUBLAYERS | {"final": say("The final norm")}
_NAMES: Final = {"selfattn": "self_attn", "crossattn": "cross_attn", "ffn": "ffn"}


@dataclass(frozen=True)
class _OfLayers(Intervention):
    """What can be done to one layer of a stack or to all."""

    stack: str = stack()
    layer: int | None = place(say("Layer"), MAX_LAYERS, what="layer", optional=True)

    group: ClassVar[Group] = "layers"

    def check(self, config: ModelConfig) -> None:
        """See whether a model has this stack and this layer."""
        super().check(config)
        most = max(anatomy(config).stack(name).n_layers for name in stacks(config, self.stack))
        check_layer(self, self.layer, most)

    def _place(self) -> str:
        """The stack and the layer, in words."""
        if self.layer is None:
            return say("{stack}, every layer", stack=STACKS[self.stack])
        return say("{stack}, layer {layer}", stack=STACKS[self.stack], layer=self.layer + 1)

    def _of(self, config: ModelConfig, name: str) -> list[str]:
        """Patterns of what each layer that is named has under this name."""
        layer = "*" if self.layer is None else self.layer
        return [f"{one}.{layer}.{name}" for one in stacks(config, self.stack)]


def _check_sublayer(change: Intervention, config: ModelConfig, named: Sequence[StackName], sublayer: str) -> None:
    """See whether any of these stacks has a sub-layer.

    Raises:
        ChangeError: None has.
    """
    if sublayer == "crossattn" and ("decoder" not in named or "cross" not in anatomy(config).kinds):
        raise ChangeError("{change} names cross-attention; there is none there in this model.", change=str(change))


@dataclass(frozen=True)
class NoResidual(_OfLayers):
    """A sub-layer's output takes the place of the stream.

    Attributes:
        stack, layer: Where.
        sublayer: Around which sub-layer.
    """

    sublayer: str = choice(say("Sub-layer"), SUBLAYERS, ALL, target=True)

    word: ClassVar[str] = "noresidual"
    title: ClassVar[Sentence] = say("No residual connection")
    about: ClassVar[Sentence] = say(
        "What a sub-layer computes takes the place of the residual stream instead of being added to it, so that a "
        "token's own vector is gone; He et al. (2016), section 3.1."
    )

    @classmethod
    def unfit(cls, config: ModelConfig) -> Sentence | None:
        """Some models of tutorials have none."""
        return None if config.residual else say("This model has no residual connections anyway.")

    def check(self, config: ModelConfig) -> None:
        """See whether a model has this sub-layer."""
        super().check(config)
        _check_sublayer(self, config, stacks(config, self.stack), self.sublayer)

    def told(self) -> str:
        """In words."""
        if self.sublayer == ALL:
            return say("{place}: no residual connections", place=self._place())
        return say(
            "{place}: no residual connection around {sublayer}", place=self._place(), sublayer=_INSIDE[self.sublayer]
        )

    def visitors(self, ground: Ground) -> tuple[Visitor, ...]:
        """Does not add the stream."""
        name = f"{_NAMES.get(self.sublayer, '*')}.around"
        change = partial(replace, adds=False)
        return (Rewirer(dict.fromkeys(self._of(ground.config, name), change)),)


_INSIDE: Final[dict[str, str]] = {
    "selfattn": say("self-attention"),
    "crossattn": say("cross-attention"),
    "ffn": say("feed-forward"),
}


@dataclass(frozen=True)
class NoNorm(_OfLayers):
    """Vectors are not brought to one size.

    Attributes:
        stack, layer: Where.
        sublayer: The norms around which sub-layer, or the final norm, or all of these; a final norm has no layer.
    """

    sublayer: str = choice(say("Norm"), NORMS, ALL, target=True)

    word: ClassVar[str] = "nonorm"
    title: ClassVar[Sentence] = say("No norm")
    about: ClassVar[Sentence] = say(
        "Vectors go on as they are, neither brought to one size nor scaled by what the norm has learned. All norms "
        "of all layers include the final norm, and that of the embedding where there is one."
    )

    @classmethod
    def unfit(cls, config: ModelConfig) -> Sentence | None:
        """Some models of tutorials have none."""
        return say("This model has no norms anyway.") if config.norm_kind == "none" else None

    def check(self, config: ModelConfig) -> None:
        """See whether a model has this norm."""
        super().check(config)
        _check_sublayer(self, config, stacks(config, self.stack), self.sublayer)
        if self.sublayer == "final" and not config.final_norm:
            raise ChangeError("{change} names the final norm; this model has none.", change=str(self))
        if self.sublayer == "final" and self.layer is not None:
            raise ChangeError("{change} names a layer; the final norm comes after all layers.", change=str(self))

    def told(self) -> str:
        """In words."""
        if self.sublayer == "final":
            return say("{stack}: no final norm", stack=STACKS[self.stack])
        if self.sublayer == ALL:
            return say("{place}: no norms", place=self._place())
        return say("{place}: no norm around {sublayer}", place=self._place(), sublayer=_INSIDE[self.sublayer])

    def visitors(self, ground: Ground) -> tuple[Visitor, ...]:
        """Puts what changes nothing in the place of norms."""
        config, changes = ground.config, dict[str, Callable[[Any], Any]]()
        if self.sublayer != "final":
            name = f"{_NAMES.get(self.sublayer, '*')}.around"
            changes = dict.fromkeys(self._of(config, name), partial(replace, norms=False))
        if self.sublayer == "final" or (self.sublayer == ALL and self.layer is None):
            names = ["final_norm"] if self.sublayer == "final" else ["final_norm", "embedding.norm"]
            changes |= {f"{one}.{name}": _nothing for one in stacks(config, self.stack) for name in names}
        return (Rewirer(changes),)


def _nothing(norm: object) -> object:
    return unchanged


@dataclass(frozen=True)
class SwapNorms(Intervention):
    """Norms before the sub-layers stand after the sums, and those after before."""

    stack: str = stack()  # in which stack

    word: ClassVar[str] = "swapnorms"
    group: ClassVar[Group] = "layers"
    title: ClassVar[Sentence] = say("Pre-norm and post-norm swapped")
    about: ClassVar[Sentence] = say(
        "A norm before the sub-layer stands after the sum, or the other way round, as when trained weights are put "
        "into a program of the other kind. A final norm stays, and none comes to it; Xiong et al. (2020), section 3."
    )

    @classmethod
    def unfit(cls, config: ModelConfig) -> Sentence | None:
        """Where there is one norm a sub-layer, it can stand in the other place."""
        if config.norm_kind == "none":
            return say("This model has no norms to swap.")
        if config.norm == "both":
            return say("This model has norms before and after its sub-layers; there is no other place for them.")
        if config.parallel_residual:
            return say(
                "Both sub-layers of a layer of this model read the same vectors, so that there is no sum between "
                "them for a norm to stand after."
            )
        return None

    def check(self, config: ModelConfig) -> None:
        """See whether a model has this stack."""
        super().check(config)
        stacks(config, self.stack)

    def told(self) -> str:
        """In words."""
        return say("{stack}: norms stand in the other place, pre for post", stack=STACKS[self.stack])

    def visitors(self, ground: Ground) -> tuple[Visitor, ...]:
        """Says the other place."""
        return (Rewirer({f"{one}.*.around": _swapped for one in stacks(ground.config, self.stack)}),)


def _swapped(around: Around) -> Around:
    return replace(around, post=not around.post)


@dataclass(frozen=True)
class NoFeedForward(_OfLayers):
    """A feed-forward network writes nothing.

    Attributes:
        stack, layer: Which.
    """

    word: ClassVar[str] = "noffn"
    title: ClassVar[Sentence] = say("No feed-forward")
    about: ClassVar[Sentence] = say(
        "What the feed-forward network writes is 0, its bias included; norms and the stream stay. Vaswani et al. "
        "(2017), section 3.3."
    )

    def told(self) -> str:
        """In words."""
        return say("{place}: feed-forward writes nothing", place=self._place())

    def visitors(self, ground: Ground) -> tuple[Visitor, ...]:
        """Sets its output to 0."""
        return (Replacer(dict.fromkeys(self._of(ground.config, "ffn.output"), torch.zeros_like), causal=True),)


@dataclass(frozen=True)
class EmbeddingScale(Intervention):
    """Token embeddings are multiplied by another number before positions are added."""

    stack: str = stack()  # of which stack
    by: float = number(say("Factor"), 0, 1000, 1)  # the number

    word: ClassVar[str] = "embed"
    group: ClassVar[Group] = "layers"
    title: ClassVar[Sentence] = say("Another scale of embeddings")
    about: ClassVar[Sentence] = say(
        "Token embeddings are multiplied by this number before positions are added to them: by √d_model in Vaswani "
        "et al. (2017), section 3.4, by 1 where there is no scale. Too large, and positions drown; too small, and "
        "the tokens do."
    )

    def check(self, config: ModelConfig) -> None:
        """See whether a model has this stack."""
        super().check(config)
        stacks(config, self.stack)

    def told(self) -> str:
        """In words."""
        return say("{stack}: token embeddings times {factor:g}", stack=STACKS[self.stack], factor=self.by)

    def visitors(self, ground: Ground) -> tuple[Visitor, ...]:
        """Says the number."""
        names = [f"{one}.embedding.scale" for one in stacks(ground.config, self.stack)]
        return (Rewirer({name: lambda scale: self.by for name in names}),)
