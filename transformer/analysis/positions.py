"""Position numbers: a table's formula, similarity, shift fit; rotary turns; bias by distance; spreads of scores.

**A table** is an array [position, d_model], positions and dimensions counted from 0 as in the paper; functions use
nothing else, so sinusoids and learned tables are measured in the same way. `own_table` is a model's.

**Rotary positions** turn each pair of dimensions (i, i + n / 2) at its own speed, in each layer, as in
`transformer.model.rotary`. A query at position m and a key at position n are turned by m w and n w in each pair. Their
product is that of the unturned query with the key turned by (n - m) w: of the two positions, only n - m counts.

**ALiBi and relative positions** add a number by the distance of query and key (`DistanceBias`, by the functions of
`transformer.model.attention_positions`, which names their sources).

Source: Vaswani et al. (2017), section 3.5; Su et al., "RoFormer" (2021), section 3.4, equations 14 to 16. Not known
here: whether the model, or a head, uses what is measured.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from transformer.model import rotary as turns
from transformer.model.anatomy import StackName, anatomy
from transformer.model.attention_features import Rotary
from transformer.model.attention_positions import BIASES
from transformer.model.config import ModelConfig
from transformer.model.transformer import Transformer

BASE = 10_000.0
_ROWS_AT_ONCE = 1024


def own_table(model: Transformer, stack: StackName) -> np.ndarray:
    """The table [position, d_model] that a stack adds to its embeddings, which must have one; do not write to it."""
    positions: Any = model.stack(stack).embedding.positions  # its table is a buffer or a parameter
    return in_turns(positions.table.numpy(force=True), model.config)


def in_turns(table: np.ndarray, config: ModelConfig) -> np.ndarray:
    """A table whose sines come before its cosines, reordered to alternate as in the paper; others unchanged."""
    if config.positions != "sinusoidal" or config.sinusoid_layout == "interleaved":
        return table
    d_model = table.shape[1]
    n_sines = d_model // 2 if config.sinusoid_layout in ("fairseq", "tensor2tensor") else -(-d_model // 2)
    turns = [n_sines + dim // 2 if dim % 2 else dim // 2 for dim in range(d_model - d_model % 2)]
    return table[:, [*turns, *(dim for dim in range(d_model) if dim not in turns)]]


def frequencies(d_model: int) -> np.ndarray:
    """The angle by which each pair of dimensions turns from one position to the next: 10000^(-2i / d_model).

    In radians, float64 [ceil(d_model / 2)]; for an odd width the last entry belongs to a sine without a cosine.
    """
    return BASE ** -(np.arange(0, d_model, 2) / d_model)


def wavelengths(d_model: int) -> np.ndarray:
    """Positions until each pair of dimensions has turned once, 2 pi to almost 10000 * 2 pi: [ceil(d_model / 2)]."""
    return 2 * np.pi / frequencies(d_model)


def formula(n_positions: int, d_model: int, *, first: int = 0) -> np.ndarray:
    """The sinusoids of the paper from position `first` on.

        table[p, 2i]     = sin(p / 10000^(2i / d_model))
        table[p, 2i + 1] = cos(p / 10000^(2i / d_model))

    Float64 [position, d_model].
    """
    angle = np.arange(first, first + n_positions)[:, None] * frequencies(d_model)  # [position, pair]
    waves = np.stack((np.sin(angle), np.cos(angle)), axis=-1)  # [position, pair, 2]
    return waves.reshape(n_positions, -1)[:, :d_model]


def difference_from_formula(table: np.ndarray) -> float:
    """The largest absolute difference between any value of a table [position, d_model] and the formula's."""
    n_positions, d_model = table.shape
    largest = 0.0
    for first in range(0, n_positions, _ROWS_AT_ONCE):
        rows = table[first : first + _ROWS_AT_ONCE]
        largest = max(largest, float(np.abs(rows - formula(len(rows), d_model, first=first)).max()))
    return largest


def similarity(table: np.ndarray, *, cosine: bool = False) -> np.ndarray:
    """Compare every position with every other: p . q, or its cosine, which is 0 for a vector of length 0; float64."""
    vectors = table.astype(np.float64)
    if cosine:
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return vectors @ vectors.T


@dataclass(frozen=True)
class ByDistance:
    """A similarity [position, position] by the distance of the two: mean, least and largest, each [distance]."""

    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @property
    def spread(self) -> float:
        """The largest difference of pairs at the same distance; 0 if only the distance matters."""
        return float((self.high - self.low).max())


def by_distance(similar: np.ndarray) -> ByDistance:
    """Summarise a symmetric similarity [position, position] for each distance from 0 to the last."""
    diagonals = (similar.diagonal(distance) for distance in range(len(similar)))
    found = np.array([(diagonal.mean(), diagonal.min(), diagonal.max()) for diagonal in diagonals])  # [distance, 3]
    return ByDistance(*found.T)


def rotate(table: np.ndarray, shift: int) -> np.ndarray:
    """Turn each pair of dimensions (2i, 2i + 1) by the angle shift * w_i: R_k PE(p) for every p.

        [ cos k w_i   sin k w_i ] [ sin p w_i ]   [ sin (p + k) w_i ]
        [-sin k w_i   cos k w_i ] [ cos p w_i ] = [ cos (p + k) w_i ]

    Float64 [position, 2 * (d_model // 2)]: the last sine of an odd table has no cosine and is left out.
    """
    d_model = table.shape[1]
    paired = table[:, : d_model - d_model % 2].astype(np.float64)
    angle = shift * frequencies(d_model)[: d_model // 2]  # [pair]
    sine, cosine = paired[:, 0::2], paired[:, 1::2]  # [position, pair]
    turned = np.cos(angle) * sine + np.sin(angle) * cosine, np.cos(angle) * cosine - np.sin(angle) * sine
    return np.stack(turned, axis=-1).reshape(paired.shape)


def rotation_errors(table: np.ndarray, shift: int) -> np.ndarray:
    """How far R_k PE(p) is from PE(p + k): the largest absolute difference at each p, float64 [position - shift]."""
    _check_shift(table, shift, most=len(table) - 1)
    turned = rotate(table[:-shift], shift)
    if not turned.shape[1]:  # d_model 1: a sine alone
        return np.zeros(len(turned))
    return np.abs(turned - table[shift:, : turned.shape[1]]).max(axis=1)


@dataclass(frozen=True)
class ShiftFit:
    """The best linear map from PE(p) to PE(p + k), and how good it is at positions outside the fit."""

    predicted: np.ndarray  # M PE(p) for every p that has a p + k, float64 [position - shift, d_model]
    held_out: np.ndarray  # True where p took no part in the fit, bool [position - shift]
    fitted_error: float  # error at the positions of the fit, relative: 0 is exact, 1 is as far off as answering 0
    held_out_error: float  # the same at the other positions
    constant_error: float  # what answering the mean of the fitted positions everywhere gives at the other positions

    @property
    def n_fitted(self) -> int:
        """Number of positions in the fit."""
        return int((~self.held_out).sum())


def fit_shift(table: np.ndarray, shift: int) -> ShiftFit:
    """Fit one matrix M with M PE(p) = PE(p + k) by least squares on every second p, and test it on the others.

    With fewer positions than dimensions such a map exists for any table. So the error at the fitted positions means
    nothing; only the other half does. If several maps are best, the smallest is taken. A ValueError says that fewer
    than two positions have another position that far after them.
    """
    _check_shift(table, shift, most=len(table) - 2)
    values = table.astype(np.float64)
    inputs, outputs = values[:-shift], values[shift:]  # [position - shift, d_model]
    held_out = np.arange(len(inputs)) % 2 == 1
    matrix, *_ = np.linalg.lstsq(inputs[~held_out], outputs[~held_out], rcond=1e-6)  # float32 holds no more
    predicted = inputs @ matrix
    constant = np.broadcast_to(outputs[~held_out].mean(axis=0), outputs.shape)
    return ShiftFit(
        predicted,
        held_out,
        fitted_error=_relative(predicted, outputs, ~held_out),
        held_out_error=_relative(predicted, outputs, held_out),
        constant_error=_relative(constant, outputs, held_out),
    )


def _relative(found: np.ndarray, wanted: np.ndarray, rows: np.ndarray) -> float:
    size = float(np.linalg.norm(wanted[rows]))
    return float(np.linalg.norm((found - wanted)[rows])) / size if size else 0.0


def _check_shift(table: np.ndarray, shift: int, *, most: int) -> None:
    if not 1 <= shift <= most:
        raise ValueError(f"A shift of {shift} was asked for; in a table of {len(table)} positions 1 to {most} can be.")


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
        turns.frequencies(one, config.d_head, max_len=config.max_len, local=local) if placed else np.zeros(0)
        for one in (rotary, plain)
    )
    return Turning(
        tuple(layers),
        speeds,
        unscaled,
        size=turns.magnitude(rotary, local=local) if placed else 1.0,
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
    turned_q = turns.rotate(q, turns.rotation(turning.speeds, turning.size, q_from, like=like))
    turned_k = turns.rotate(k, turns.rotation(turning.speeds, turning.size, k_from, like=like))
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
