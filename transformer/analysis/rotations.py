"""Positions inside attention: what rotations make of scores, and what a bias adds to them by distance.

**Rotary positions** turn each pair of dimensions at its own speed, in each layer.
A query at position m and a key at position n are turned by m w and n w in each pair. Their product is that of the
unturned query with the key turned by (n - m) w. So it depends on n - m, and on nothing else about the two positions.

Pairs are (i, i + n / 2), as in `transformer.model.rotary`, which computes the same for the model.

**ALiBi and relative positions** add a number by the distance of query and key (`DistanceBias`, by the functions of
`transformer.model.distance`, which names their sources).

Source: Su et al., "RoFormer" (2021), section 3.4, equations 14 to 16. Not known here: how a head uses it.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch

from transformer.model.anatomy import StackName, anatomy
from transformer.model.attention_features import Rotary
from transformer.model.config import ModelConfig
from transformer.model.distance import BIASES
from transformer.model.rotary import frequencies, magnitude, rotate, rotation
from transformer.model.transformer import Transformer


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


@dataclass(frozen=True, eq=False)
class DistanceBias:
    """What a stack's self-attentions add to scores, the same in all layers."""

    distances: np.ndarray  # the key's position minus the query's, ascending [distance]
    bias: np.ndarray  # what is added [head, distance]
    buckets: np.ndarray | None = None  # the bucket of each distance [distance]; None: there are none
    # How much each head's score falls with a token of distance [head]; None: that is learned.
    slopes: np.ndarray | None = None

    def edges(self) -> tuple[float, ...]:
        """The borders between buckets, each between two distances."""
        if self.buckets is None:
            return ()
        places = np.flatnonzero(np.diff(self.buckets))
        return tuple(float(self.distances[place]) + 0.5 for place in places)


@torch.inference_mode()
def distance_bias(model: Transformer, stack: StackName, *, most: int) -> DistanceBias:
    """The bias of a stack for distances up to `most` tokens; a decoder's keys never come after the query."""
    config, causal = model.config.of(stack), model.anatomy.attention(stack).causal
    steps = torch.arange(-most, 1 if causal else most + 1)  # [distance]
    if (kind := BIASES.get(config.positions)) is None:
        raise ValueError(f"Positions of the kind {config.positions} add nothing to scores.")
    apart, like = steps[None].to(model.device), torch.zeros(1, device=model.device)
    found = model.stack(stack).order.bias(apart, like)[0, :, 0]  # [H, distance]
    return DistanceBias(
        steps.numpy(),
        found.float().numpy(force=True),
        buckets=kind.buckets(config, steps, causal).numpy() if kind.buckets else None,
        slopes=np.array(kind.slopes(config.n_heads)) if kind.slopes else None,
    )


@dataclass(frozen=True, eq=False)
class Spreads:
    """How much the scores of one query vary from key to key, averaged over queries; each [layer, head]."""

    content: np.ndarray  # By what q . k alone gives.
    bias: np.ndarray  # by what the distance adds


def spreads(scores: np.ndarray, bias: np.ndarray, allowed: np.ndarray) -> Spreads:
    """Separate two reasons why a query's scores vary: the keys themselves, and their distance.

    The softmax depends only on differences between the scores of a row. So each part is measured by its standard
    deviation over the open keys, in rows with at least two of them. Scores [layer, head, query, key] include the
    bias, which broadcasts to them, but no mask and no cap; the mask is [query, key] or [layer, query, key].
    """
    there = np.broadcast_to(allowed if allowed.ndim == 3 else allowed[None], (len(scores), *scores.shape[2:]))[:, None]
    content, added = scores - bias, np.broadcast_to(bias, scores.shape)
    return Spreads(_spread(content, there), _spread(added, there))


def _spread(values: np.ndarray, there: np.ndarray) -> np.ndarray:
    """Standard deviation over the keys of each row, in the mean over rows; 0 if no row has two keys."""
    count = there.sum(axis=-1)  # [layer, 1, query]
    shown = np.where(there, values.astype(np.float64), 0.0)
    mean = shown.sum(axis=-1) / np.maximum(count, 1)  # [layer, head, query]
    square = np.where(there, (shown - mean[..., None]) ** 2, 0.0).sum(axis=-1) / np.maximum(count, 1)
    rows = count > 1
    deviation = np.where(rows, np.sqrt(square), 0.0)
    return np.asarray(deviation.sum(axis=-1) / np.maximum(rows.sum(axis=-1), 1))
