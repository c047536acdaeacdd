"""Numbers added to scores that depend on the distance between query and key: T5's learned ones, and ALiBi's lines.

Source: Raffel et al., "Exploring the Limits of Transfer Learning" (2020), section 2.1, for buckets; Press et al.,
"Train Short, Test Long" (2022), section 3, for ALiBi, which is for decoders; in an encoder both sides have the same
line here.

Shapes: H heads, Q queries, K keys.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer.model.config import ModelConfig
from transformer.model.position_kinds import PositionKind


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
