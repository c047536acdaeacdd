"""Measurements of a table of positions: formula, waves, similarity of its rows, and the effect of a shift.

All functions take the table as an array [position, d_model], positions and dimensions counted from 0 as in the paper,
and use nothing else: sinusoids and learned tables are measured in the same way. `own_table` is a model's.

Source: Vaswani et al. (2017), section 3.5. Not known here: whether the model uses what is measured.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from transformer.model.anatomy import StackName
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
    table = np.empty((n_positions, d_model))
    table[:, 0::2] = np.sin(angle)
    table[:, 1::2] = np.cos(angle[:, : d_model // 2])
    return table


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
    diagonals = [similar.diagonal(distance) for distance in range(len(similar))]
    return ByDistance(
        np.array([diagonal.mean() for diagonal in diagonals]),
        np.array([diagonal.min() for diagonal in diagonals]),
        np.array([diagonal.max() for diagonal in diagonals]),
    )


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
    turned = np.empty_like(paired)
    turned[:, 0::2] = np.cos(angle) * sine + np.sin(angle) * cosine
    turned[:, 1::2] = np.cos(angle) * cosine - np.sin(angle) * sine
    return turned


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
