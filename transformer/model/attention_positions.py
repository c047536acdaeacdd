"""Positions inside self-attention: rotations, and numbers added to scores by distance (T5, ALiBi), per layer.

An `AttentionPositions` says what they do to a layer's attention: rotary positions turn queries and keys; relative ones
(T5's learned ones) and ALiBi (a line for each head) add a bias to the scores that depends on the distance between query
and key. Cross-attention has none: a query's position in one text says nothing about a key's in another. Each stack
makes them once per call, for all of its layers.

Source: Raffel et al., "Exploring the Limits of Transfer Learning" (2020), section 2.1, for buckets; Press et al.,
"Train Short, Test Long" (2022), section 3, for ALiBi, which is for decoders; in an encoder both sides have the same
line here. `transformer.model.rotary` has the equations of rotations.

Shapes: H heads, Q queries, K keys.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer.model import rotary
from transformer.model.config import ModelConfig
from transformer.model.module import Module
from transformer.model.position_kinds import PositionKind
from transformer.model.positions import AS_THEY_STAND
from transformer.model.rotary import Rotation
from transformer.model.taps import NO_TAP, Tap


def distances(places: Tensor, *, offset: int) -> Tensor:
    """The key's position minus the query's [Q, K], for keys at these places [K] and queries from `offset` on."""
    return places[None, :] - places[offset:, None]  # [Q, K]


def buckets(distance: Tensor, *, n_buckets: int, max_distance: int, causal: bool) -> Tensor:
    """The bucket of each distance, of any shape: short ones have one each; the longer, the more of them share one.

    A distance is the key's position minus the query's; from `max_distance` on all are in the last bucket. Without a
    causal mask half of the buckets are for keys after the query; with one, those keys share the bucket of distance 0.
    """
    start = torch.zeros_like(distance)
    if causal:
        back = (-distance).clamp(min=0)
    else:
        n_buckets //= 2
        start, back = (distance > 0) * n_buckets, distance.abs()
    exact = n_buckets // 2
    # In float32, whatever the model's type: at a border between two buckets the rounding decides, as in training.
    growth = torch.log(back.clamp(min=1).float() / exact) / math.log(max_distance / exact)
    shared = (exact + (growth * (n_buckets - exact)).long()).clamp(max=n_buckets - 1)
    return start + torch.where(back < exact, back, shared)


def slopes(n_heads: int) -> list[float]:
    """How much each head's score falls per token of distance.

    If H is a power of 2: 2^(-8 / H), 2^(-16 / H), ..., 2^-8. Otherwise the slopes of the next lower power of 2, then
    every second slope of the next higher one.
    """
    power = 2 ** math.floor(math.log2(n_heads))
    found = [2 ** (-8 * (head + 1) / power) for head in range(power)]
    return found + [2 ** (-8 * (2 * head + 1) / (2 * power)) for head in range(n_heads - power)]


def alibi(n_heads: int, distance: Tensor, *, like: Tensor) -> Tensor:
    """-slope |distance| for each head: [Q, K] -> [1, H, Q, K]."""
    slope = torch.tensor(slopes(n_heads), dtype=torch.float64, device=distance.device)[:, None, None]  # [H, 1, 1]
    return (-slope * distance.abs()).to(like)[None]


@dataclass(frozen=True)
class Bias:
    """What a kind of positions adds to scores."""

    # The bias [1, H, Q, K], from the stack's config, distances [Q, K], its parameters (if none, a tensor of the
    # model's type) and whether a query sees nothing after it.
    added: Callable[[ModelConfig, Tensor, Tensor, bool], Tensor]
    buckets: Callable[[ModelConfig, Tensor, bool], Tensor] | None = None  # the buckets of distances; None: it has none
    slopes: Callable[[int], list[float]] | None = None  # the slopes for H heads, if a formula gives them


def _bucket(config: ModelConfig, apart: Tensor, causal: bool) -> Tensor:
    n, most = config.relative_buckets, config.relative_distance
    return buckets(apart, n_buckets=n, max_distance=most, causal=causal)


def reached(config: ModelConfig, causal: bool) -> tuple[int, int, int]:
    """How many buckets a stack uses in the longest text, and the distances back of the last: least and largest."""
    back = torch.arange(config.max_len)
    before = _bucket(config, -back, causal)
    found = before if causal else torch.cat((before, _bucket(config, back, causal)))
    return len(found.unique()), int((before == before[-1]).nonzero()[0]), config.max_len - 1


def _relative(config: ModelConfig, apart: Tensor, table: Tensor, causal: bool) -> Tensor:
    found = _bucket(config, apart.round().long(), causal)
    return F.embedding(found, table).permute(2, 0, 1)[None]  # [Q, K, H] -> [1, H, Q, K]


BIASES: Final[Mapping[PositionKind, Bias]] = {
    "relative": Bias(_relative, buckets=_bucket),
    "alibi": Bias(lambda config, apart, like, causal: alibi(config.n_heads, apart, like=like), slopes=slopes),
}


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
        apart = distances(places, offset=offset)  # [Q, K]
        return [AttentionPositions(bias=self.bias(apart, like))] * self.n_layers

    def bias(self, apart: Tensor, like: Tensor) -> Tensor:
        """The bias added to scores at these distances, [Q, K] -> [1, H, Q, K]."""
        found = BIASES[self.config.positions]
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
