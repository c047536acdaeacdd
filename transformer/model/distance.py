"""Numbers that are added to scores by how far apart query and key are: T5's learned ones, and ALiBi's straight lines.

Source: Raffel et al., "Exploring the Limits of Transfer Learning" (2020), section 2.1, for buckets; Press et al.,
"Train Short, Test Long" (2022), section 3, for ALiBi, which is for decoders: in an encoder the line is the same to
both sides here.

Shapes: H heads, Q queries, K keys.
"""

import math

import torch
from torch import Tensor


def distances(places: Tensor, *, offset: int) -> Tensor:
    """Key's position minus query's [Q, K], for keys at these places [K]; the queries are those from `offset` on."""
    return places[None, :] - places[offset:, None]  # [Q, K]


def buckets(distance: Tensor, *, n_buckets: int, max_distance: int, causal: bool) -> Tensor:
    """The bucket of each distance: near ones have one each, far ones share one the more the farther they are.

    Without a causal mask half of the buckets are for keys after the query; with one these share the query's own.

    Args:
        distance: Key's position minus query's, any shape.
        n_buckets: How many buckets there are.
        max_distance: From here on all are in the last one.
        causal: Whether a query sees nothing that comes after it.

    Returns:
        Whole numbers from 0 to n_buckets - 1, the same shape.
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
    """By how much each head's score falls with every token of distance.

    For a power of 2 of heads: 2^(-8 / H), 2^(-16 / H), ..., 2^-8. Else those of the next lower power of 2, and then
    every second one of the next higher.
    """
    power = 2 ** math.floor(math.log2(n_heads))
    found = [2 ** (-8 * (head + 1) / power) for head in range(power)]
    return found + [2 ** (-8 * (2 * head + 1) / (2 * power)) for head in range(n_heads - power)]


def alibi(n_heads: int, distance: Tensor, *, like: Tensor) -> Tensor:
    """-slope |distance| for each head: [Q, K] -> [1, H, Q, K]."""
    slope = torch.tensor(slopes(n_heads), dtype=torch.float64, device=distance.device)[:, None, None]  # [H, 1, 1]
    return (-slope * distance.abs()).to(like)[None]
