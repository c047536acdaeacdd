"""Positions that act inside self-attention, instead of a table that is added to the token embeddings.

An `Order` says what they do to a layer's attention: rotary positions turn queries and keys; relative ones and ALiBi
add a bias to the scores that depends on the distance. Cross-attention has none: a query's position in one text says
nothing about a key's in another. Each stack makes its orders once per call, for all of its layers.

Source: `transformer.model.rotary` and `transformer.model.distance`, which have the equations.

Shapes: H heads, Q queries, K keys.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from transformer.model import distance, rotary
from transformer.model.config import ModelConfig
from transformer.model.module import Module
from transformer.model.positions import AS_THEY_STAND
from transformer.model.rotary import Rotation
from transformer.model.taps import NO_TAP, Tap


@dataclass(frozen=True)
class AttentionPositions:
    """What positions do to one layer's attention."""

    rotation: Rotation | None = None  # how the call's queries and keys are turned; None: not at all
    bias: Tensor | None = None  # what is added to the scores [1, H, Q, K]; None: nothing


NO_ORDER = AttentionPositions()


class StackOrder(Module):
    """The orders of a stack's layers; holds the table of a learned bias, if there is one."""

    def __init__(self, config: ModelConfig, *, n_layers: int, causal: bool) -> None:
        super().__init__()
        self.config, self.n_layers, self.causal = config, n_layers, causal
        if config.placing.adds == "bias" and config.placing.parameters:
            self.table = nn.Parameter(torch.zeros(config.placing.parameters(config)))

    def forward(self, length: int, *, offset: int, like: Tensor, tap: Tap = NO_TAP) -> list[AttentionPositions]:
        """The order of each layer, for queries at positions offset to offset + length - 1 and keys from 0 on."""
        if self.config.placing.adds not in ("turn", "bias"):
            return [NO_ORDER] * self.n_layers
        places = torch.arange(offset + length, device=like.device)  # [K]
        if (moves := tap.setting("moves", AS_THEY_STAND)) is not None:
            places = moves(places)
        if self.config.placing.adds == "turn":
            return self._rotations(places[offset:], like)
        apart = distance.distances(places, offset=offset)  # [Q, K]
        return [AttentionPositions(bias=self.bias(apart, like))] * self.n_layers

    def bias(self, apart: Tensor, like: Tensor) -> Tensor:
        """The bias added to scores at these distances, [Q, K] -> [1, H, Q, K]."""
        found = distance.BIASES[self.config.positions]
        return found.added(self.config, apart, getattr(self, "table", like), self.causal)

    def _rotations(self, places: Tensor, like: Tensor) -> list[AttentionPositions]:
        c, numbers = self.config, self.config.rotary
        assert numbers is not None  # `ModelConfig` sees to it

        def turn(local: bool) -> AttentionPositions:
            speeds = rotary.frequencies(numbers, c.d_head, max_len=c.max_len, local=local)
            size = rotary.magnitude(numbers, local=local)
            return AttentionPositions(rotary.rotation(speeds, size, places, like=like))

        whole = turn(False)
        local = whole if numbers.local_base is None else turn(True)
        windows = [self.causal and c.window(layer) > 0 for layer in range(self.n_layers)]
        turns = [local if window else whole for window in windows]
        return [NO_ORDER if layer in c.unplaced_layers else order for layer, order in enumerate(turns)]
