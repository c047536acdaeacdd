"""What a model holds, and the lengths of a sentence: what the blocks of its diagram and its costs are made from.

Knows nothing of Streamlit.
"""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

from transformer.analysis.costs import Holding, Part, buffers, holdings, multiply_adds
from transformer.model.anatomy import StackName
from transformer.model.config import ModelConfig
from transformer.model.transformer import Transformer
from words import say

STREAM = say("the part Residual stream")


@dataclass(frozen=True)
class Contents:
    """What a model holds, which no sentence changes."""

    parameters: tuple[tuple[str, int], ...]  # the full name of each tensor, and how many values are learned in it
    held: dict[Part, Holding]  # the parameters of each component
    buffers: dict[str, tuple[int, ...]]  # what is kept that is not learned: the shape of each by its name


# A walk through all modules takes longer than drawing a table, and a page is drawn at every step.
_READ: WeakKeyDictionary[Transformer, Contents] = WeakKeyDictionary()


def contents(model: Transformer) -> Contents:
    """What a model holds, read off it once."""
    found = _READ.get(model)
    if found is None:
        counts = tuple((name, tensor.numel()) for name, tensor in model.named_parameters())
        _READ[model] = found = Contents(counts, holdings(model), buffers(model))
    return found


@dataclass(frozen=True)
class Sized:
    """A model and the lengths of a sentence."""

    config: ModelConfig  # the features of the model
    parameters: tuple[tuple[str, int], ...]  # the full name of each tensor, and how many values are learned in it
    n_source: int  # tokens on each side
    n_target: int  # tokens on each side

    def held(self, *beginnings: str) -> int:
        """Learned values of all tensors whose names begin so."""
        return sum(count for name, count in self.parameters if name.startswith(beginnings))

    def length(self, stack: StackName) -> int:
        """Tokens that a stack reads."""
        return self.n_source if stack == "encoder" else self.n_target

    def done(self, *components: Part) -> int:
        """Multiply-adds of components in one pass."""
        counts = multiply_adds(self.config, n_source=self.n_source, n_target=self.n_target)
        return sum(counts[component] for component in components)

    def stream(self, stack: StackName) -> str:
        """Shape of a stack's residual stream."""
        return f"[{self.length(stack)}, {self.config.d_model}]"


def sized(model: Transformer, *, n_source: int, n_target: int) -> Sized:
    """What the blocks are made from; lengths count tokens."""
    return Sized(model.config, contents(model).parameters, n_source, n_target)
