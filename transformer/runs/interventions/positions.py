"""Changes of what gives the model order: none, shifted, scaled, shuffled.

A table's vectors are taken from other rows or multiplied. Positions inside attention are taken from other places:
rotary ones turn by other angles, and a bias is that of other distances.

Source: Vaswani et al. (2017), section 3.5; `transformer.model.order` for positions inside attention.

Shapes: T tokens.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from transformer.model.config import ModelConfig
from transformer.model.features import TABLES
from transformer.model.tap import Replacer, Rewirer, Visitor
from transformer.runs.interventions.base import Ground, Group, Intervention
from transformer.runs.interventions.spelling import number, whole
from transformer.runs.interventions.where import STACKS, stack, stacks
from words import Sentence, say

MOST_SHIFT = 4096


@dataclass(frozen=True)
class _OfStacks(Intervention):
    """What can be done to the positions of one stack or of both."""

    stack: str = stack()

    group: ClassVar[Group] = "positions"

    @classmethod
    def unfit(cls, config: ModelConfig) -> Sentence | None:
        """A model without positions has none to change."""
        if config.positions == "none":
            return say("This model has no positions: only its causal mask gives order, if it has one.")
        return None

    def check(self, config: ModelConfig) -> None:
        """See whether a model has this stack."""
        super().check(config)
        stacks(config, self.stack)

    def _moved(self, ground: Ground, moves: Callable[[Tensor], Tensor]) -> Visitor:
        """Takes vectors or angles of other places."""
        config = ground.config
        part = "embedding" if config.positions in TABLES else "order"
        return Rewirer({f"{name}.{part}.moves": lambda before: _after(before, moves)
                        for name in stacks(config, self.stack)})  # fmt: skip

    def _sized(self, ground: Ground, by: float) -> Visitor:
        """Multiplies vectors or a bias."""
        config = ground.config
        part = "embedding.positions" if config.positions in TABLES else "*.self_attn.bias"
        return Replacer({f"{name}.{part}": lambda value: value * by for name in stacks(config, self.stack)},
                        causal=True)  # fmt: skip


def _after(
    before: Callable[[Tensor], Tensor] | None, moves: Callable[[Tensor], Tensor]
) -> Callable[[Tensor], Tensor]:
    """First what another change does with places, if there is one."""
    return moves if before is None else lambda places: moves(before(places))


@dataclass(frozen=True)
class NoPositions(_OfStacks):
    """Nothing says where a token stands."""

    word: ClassVar[str] = "unplaced"
    title: ClassVar[Sentence] = say("No positions")
    about: ClassVar[Sentence] = say(
        "Nothing says where a token stands: vectors of positions or a bias are 0, or queries and keys are not "
        "turned. Without order an encoder reads a bag of words; Vaswani et al. (2017), section 3.5."
    )

    def told(self) -> str:
        """In words."""
        return say("{stack}: no positions", stack=STACKS[self.stack])

    def visitors(self, ground: Ground) -> tuple[Visitor, ...]:
        """Sets vectors or a bias to 0; where positions turn, all tokens are at the first place."""
        if ground.config.positions == "rotary":
            return (self._moved(ground, torch.zeros_like),)
        return (self._sized(ground, 0.0),)


@dataclass(frozen=True)
class ShiftPositions(_OfStacks):
    """All tokens stand some places further on.

    Attributes:
        stack: Of which stack.
        by: How many; behind the last row of a table comes the first again.
    """

    by: int = whole(say("Places"), -MOST_SHIFT, MOST_SHIFT, 1)

    word: ClassVar[str] = "shift"
    title: ClassVar[Sentence] = say("Positions shifted")
    about: ClassVar[Sentence] = say(
        "All tokens stand some places further on. With a table the model sees rows that it was not trained to see "
        "there; positions inside attention count only distances, which stay as they are, so that nothing changes."
    )

    def told(self) -> str:
        """In words."""
        return say("{stack}: positions are shifted by {n}", stack=STACKS[self.stack], n=self.by)

    def visitors(self, ground: Ground) -> tuple[Visitor, ...]:
        """Adds to places."""
        return (self._moved(ground, lambda places: places + self.by),)


@dataclass(frozen=True)
class ScalePositions(_OfStacks):
    """Positions count more or less.

    Attributes:
        stack: Of which stack.
        by: What vectors, a bias or angles are multiplied by.
    """

    by: float = number(say("Factor"), 0, 100, 2)

    word: ClassVar[str] = "stretch"
    title: ClassVar[Sentence] = say("Positions scaled")
    about: ClassVar[Sentence] = say(
        "What positions do is multiplied: the vectors of a table, a bias, or the angles by which queries and keys "
        "turn, as position interpolation does it with a factor below 1; Chen et al. (2023)."
    )

    def told(self) -> str:
        """In words."""
        return say("{stack}: positions times {factor:g}", stack=STACKS[self.stack], factor=self.by)

    def visitors(self, ground: Ground) -> tuple[Visitor, ...]:
        """Multiplies vectors or a bias; where positions turn, places, and so the angles."""
        if ground.config.positions == "rotary":
            return (self._moved(ground, lambda places: places * self.by),)
        return (self._sized(ground, self.by),)


@dataclass(frozen=True)
class ShufflePositions(_OfStacks):
    """Tokens stand at each other's places: a fixed shuffle of each group of neighbouring places.

    A place's new one depends on nothing but the seed and the size of a group, so that it is the same however long
    the text is and however it is decoded.

    Attributes:
        stack: Of which stack.
        seed: Gives the shuffle.
        among: Places in a group, the first group from the first place on.
    """

    seed: int = whole(say("Seed"), 0, 2**31 - 1, 0)
    among: int = whole(say("Places in a group"), 2, 512, 8)

    word: ClassVar[str] = "misplaced"
    title: ClassVar[Sentence] = say("Positions shuffled")
    about: ClassVar[Sentence] = say(
        "Tokens stand at each other's places: in every group of neighbouring places the same shuffle, which the seed "
        "gives. The tokens themselves stay where they are."
    )

    def told(self) -> str:
        """In words."""
        return say(
            "{stack}: positions are shuffled in groups of {n}, seed {seed}",
            stack=STACKS[self.stack],
            n=self.among,
            seed=self.seed,
        )

    def visitors(self, ground: Ground) -> tuple[Visitor, ...]:
        """Takes each place's new one."""
        return (self._moved(ground, self._shuffled),)

    def _shuffled(self, places: Tensor) -> Tensor:
        order = torch.randperm(self.among, generator=torch.Generator().manual_seed(self.seed)).to(places.device)
        group = places.long() // self.among
        return group * self.among + order[places.long() % self.among]
