"""The effect of rotary positions: how fast each pair of dimensions turns in each layer, and what follows for scores.

A query at position m and a key at position n are turned by m w and n w in each pair. Their product is that of the
unturned query with the key turned by (n - m) w. So it depends on n - m, and on nothing else about the two positions.

Pairs are (i, i + n / 2), as in `transformer.model.rotary`, which computes the same for the model.

Source: Su et al., "RoFormer" (2021), section 3.4, equations 14 to 16. Not known here: how a head uses it.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch

from transformer.model.anatomy import StackName, anatomy
from transformer.model.config import ModelConfig
from transformer.model.features import Rotary
from transformer.model.rotary import frequencies, magnitude, rotate, rotation


@dataclass(frozen=True, eq=False)
class Turning:
    """How some layers of a stack turn their queries and keys."""

    layers: tuple[int, ...]  # the layers, from 0
    # Radians by which each pair turns from one token to the next [pair]; empty where nothing turns.
    speeds: np.ndarray
    unscaled: np.ndarray  # what they were before a scaling for longer texts [pair]
    size: float  # what queries and keys are multiplied by
    base: float  # the base of the speeds
    d_head: int  # width of a query
    window: bool  # whether the layers have a window

    @property
    def n_pairs(self) -> int:
        """Number of pairs that turn."""
        return len(self.speeds)

    @property
    def scaled(self) -> bool:
        """Whether scaling has slowed any pair down."""
        return not np.array_equal(self.speeds, self.unscaled)

    @property
    def wavelengths(self) -> np.ndarray:
        """Positions until each pair has turned once [pair]."""
        return 2 * np.pi / self.speeds

    def angles(self, n_positions: int) -> np.ndarray:
        """How far the token at each position from 0 is turned, in radians [position, pair]."""
        return np.arange(n_positions)[:, None] * self.speeds


def turnings(config: ModelConfig, stack: StackName) -> tuple[Turning, ...]:
    """The layers of a stack, grouped by how rotary positions turn them, in the order of each group's first layer."""
    if config.rotary is None:
        raise ValueError("The model has no rotary positions.")
    found: dict[tuple[bool, bool], list[int]] = {}
    for layer in range(anatomy(config).stack(stack).n_layers):
        window = stack == "decoder" and config.window(layer) > 0
        local = window and config.rotary.local_base is not None
        found.setdefault((layer not in config.unplaced_layers, local), []).append(layer)
    return tuple(_turning(config.of(stack), config.rotary, layers, stack, *how) for how, layers in found.items())


def _turning(
    config: ModelConfig, rotary: Rotary, layers: list[int], stack: StackName, placed: bool, local: bool
) -> Turning:
    plain = replace(rotary, scaling="none")
    speeds, unscaled = (
        frequencies(one, config.d_head, max_len=config.max_len, local=local) if placed else np.zeros(0)
        for one in (rotary, plain)
    )
    return Turning(
        tuple(layers),
        speeds,
        unscaled,
        size=magnitude(rotary, local=local) if placed else 1.0,
        base=rotary.local_base if local and rotary.local_base is not None else rotary.base,
        d_head=config.d_head,
        window=stack == "decoder" and all(config.window(layer) > 0 for layer in layers),
    )


def product_by_distance(query: np.ndarray, key: np.ndarray, speeds: np.ndarray, moved: np.ndarray) -> np.ndarray:
    """The product of a query and a key after their distance changes by `moved`, whole numbers of any shape.

        q1 k1 cos d w + q2 k2 cos d w + q2 k1 sin d w - q1 k2 sin d w    in each pair, plus what does not turn

    Query and key are those that are multiplied [d_head], at their own positions; a distance is the key's position
    minus the query's.
    """
    n_pairs = len(speeds)
    (q1, q2, q_rest), (k1, k2, k_rest) = (
        np.split(np.asarray(x, np.float64), [n_pairs, 2 * n_pairs]) for x in (query, key)
    )
    angles = np.asarray(moved)[..., None] * speeds  # [..., pair]
    return np.cos(angles) @ (q1 * k1 + q2 * k2) + np.sin(angles) @ (q2 * k1 - q1 * k2) + q_rest @ k_rest


def even_product(speeds: np.ndarray, distances: np.ndarray) -> np.ndarray:
    """The product of a query with an equal key, if each pair has the same length: the mean of cos d w; 1 at 0.

    Source: Su et al. (2021), section 3.4.3, whose bound uses the same sums.
    """
    return np.asarray(np.cos(np.asarray(distances)[..., None] * speeds).mean(axis=-1))


@torch.inference_mode()
def moved_together(query: np.ndarray, key: np.ndarray, turning: Turning, *, distance: int, n: int) -> float:
    """The largest difference of a product when query and key move by the same number of tokens, in float32.

    It uses the model's own rotation, so this is rounding, which grows with the angles. Query and key are unturned
    [d_head]; the earlier of the two is moved to n places, from 0.
    """
    like = torch.zeros(1)
    q_from, k_from = (torch.arange(n) + first for first in (max(-distance, 0), max(distance, 0)))
    q, k = (torch.tensor(np.asarray(x, np.float32)).expand(1, 1, n, -1) for x in (query, key))
    turned_q = rotate(q, rotation(turning.speeds, turning.size, q_from, like=like))
    turned_k = rotate(k, rotation(turning.speeds, turning.size, k_from, like=like))
    products = (turned_q * turned_k).sum(dim=-1)  # [1, 1, n]
    return float(products.max() - products.min())
