"""Changes of positions: removed, shifted, scaled, shuffled.

A table's vectors are taken from other rows or multiplied. Positions inside attention are taken from other places:
rotary ones turn by different angles, and a bias is that of different distances.

Source: Vaswani et al. (2017), section 3.5; `transformer.model.attention_positions` for positions inside attention.

Shapes: T tokens.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from transformer.i18n import Sentence, say
from transformer.model.config import ModelConfig
from transformer.model.taps import Hook, Replacer, Rewirer
from transformer.runs.interventions.base import InterventionContext
from transformer.runs.interventions.fields import number, whole
from transformer.runs.interventions.targets import StackChange

MOST_SHIFT = 4096


class _OfPositions(StackChange):
    """What can be done to the positions of one stack or of both."""

    group = "positions"

    @classmethod
    def unfit(cls, config: ModelConfig) -> Sentence | None:
        if config.placing.adds == "nothing":
            return say(
                "This model has no positional encoding: only its causal mask, if it has one, shows the order of tokens."
            )
        return None

    def _moved(self, ground: InterventionContext, moves: Callable[[Tensor], Tensor]) -> Hook:
        """Takes vectors or angles of other places."""
        config = ground.config
        part = "embedding" if config.placing.adds == "table" else "order"

        def after(before: Callable[[Tensor], Tensor] | None) -> Callable[[Tensor], Tensor]:
            """First what another change does with places, if there is one."""
            return moves if before is None else lambda places: moves(before(places))

        return Rewirer({f"{name}.{part}.moves": after for name in self.stacks(config)})

    def _sized(self, ground: InterventionContext, by: float) -> Hook:
        """Multiplies vectors or a bias."""
        config = ground.config
        part = "embedding.positions" if config.placing.adds == "table" else "*.self_attn.bias"
        return Replacer({f"{name}.{part}": lambda value: value * by for name in self.stacks(config)},
                        causal=True)  # fmt: skip


class NoPositions(_OfPositions):
    word = "unplaced"
    title = say("No positions")
    about = say(
        "Nothing tells the model where a token is: its position vectors or biases are 0, or its queries and keys "
        "are not rotated. Without positions, an encoder reads only a bag of words (Vaswani et al., 2017, section "
        "3.5)."
    )

    def told(self) -> str:
        return say("{stack}: no positions", stack=self.name)

    def visitors(self, ground: InterventionContext) -> tuple[Hook, ...]:
        """Sets vectors or a bias to 0; with rotary positions, all tokens are at the first place."""
        if ground.config.placing.adds == "turn":
            return (self._moved(ground, torch.zeros_like),)
        return (self._sized(ground, 0.0),)


class ShiftPositions(_OfPositions):
    by: int = whole(say("Places"), -MOST_SHIFT, MOST_SHIFT, 1)  # behind a table's last row comes the first again

    word = "shift"
    title = say("Positions shifted")
    about = say(
        "All tokens move by this many positions. With a table of positions, each token then gets a different row "
        "than in training. Positions inside attention depend only on distances, which stay the same, so nothing "
        "changes."
    )

    def told(self) -> str:
        return say("{stack}: positions are shifted by {n}", stack=self.name, n=self.by)

    def visitors(self, ground: InterventionContext) -> tuple[Hook, ...]:
        return (self._moved(ground, lambda places: places + self.by),)


class ScalePositions(_OfPositions):
    by: float = number(say("Factor"), 0, 100, 2)  # what vectors, a bias or angles are multiplied by

    word = "stretch"
    title = say("Positions scaled")
    about = say(
        "The effect of positions is multiplied by a factor: the vectors of a table, a bias, or the angles by which "
        "queries and keys rotate. Position interpolation does this with a factor below 1 (Chen et al., 2023)."
    )

    def told(self) -> str:
        return say("{stack}: positions times {factor:g}", stack=self.name, factor=self.by)

    def visitors(self, ground: InterventionContext) -> tuple[Hook, ...]:
        """Multiplies vectors or a bias; with rotary positions, the places and so the angles."""
        if ground.config.placing.adds == "turn":
            return (self._moved(ground, lambda places: places * self.by),)
        return (self._sized(ground, self.by),)


class ShufflePositions(_OfPositions):
    """Tokens swap places: a fixed shuffle of each group of neighbouring places.

    A token's new place depends only on the seed and the size of a group, so it is the same for any length of text
    and any way of decoding.
    """

    seed: int = whole(say("Seed"), 0, 2**31 - 1, 0)  # gives the shuffle
    among: int = whole(say("Positions per group"), 2, 512, 8)  # the first group from the first place on

    word = "misplaced"
    title = say("Positions shuffled")
    about = say(
        "Tokens take each other's positions. Neighbouring positions form groups, and all groups are shuffled in "
        "the same way, which the seed determines. The tokens themselves stay where they are."
    )

    def told(self) -> str:
        return say(
            "{stack}: positions are shuffled in groups of {n}, seed {seed}",
            stack=self.name,
            n=self.among,
            seed=self.seed,
        )

    def visitors(self, ground: InterventionContext) -> tuple[Hook, ...]:
        return (self._moved(ground, self._shuffled),)

    def _shuffled(self, places: Tensor) -> Tensor:
        order = torch.randperm(self.among, generator=torch.Generator().manual_seed(self.seed)).to(places.device)
        group = places.long() // self.among
        return group * self.among + order[places.long() % self.among]
