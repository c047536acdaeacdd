"""Nearest rows in a table of embeddings, by cosine or distance; a 2-D map of rows by principal components.

Two measures: the cosine, which ignores lengths, and the Euclidean distance. All rows are compared with one by a
single matrix-vector product. The few nearest are measured again in float64, because the fast formula for a distance,
‖a‖² − 2 a·b + ‖b‖², loses digits when two rows are almost the same.

A map of some rows is their projection on the two directions in which they vary most (principal components).

Source: Pearson, "On Lines and Planes of Closest Fit" (1901) for the map.

Shapes: V vocabulary, D d_model, N chosen rows, K neighbours of each.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

Measure = Literal["cosine", "distance"]

_BLOCK = 32  # rows compared at once: V x 32 numbers
_SPARE = 8  # measured again beyond those requested, as rounding may change their order


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The rows nearest to one row, nearest first."""

    ids: np.ndarray  # which rows [K]
    cosine: np.ndarray  # their cosine with it, -1 to 1; NaN where a row is 0 [K]
    distance: np.ndarray  # their Euclidean distance from it [K]


@dataclass(frozen=True, eq=False)
class Plane:
    """Rows on a plane."""

    points: np.ndarray  # [N, 2]
    shares: tuple[float, float]  # share of the rows' variance that each axis holds, 0 to 1


def row_norms(table: np.ndarray) -> np.ndarray:
    """Euclidean length of each row of a table [V, D], float64 [V]."""
    return np.sqrt(np.einsum("vd,vd->v", table, table, dtype=np.float64))


def nearest(
    table: np.ndarray, norms: np.ndarray, row: int, *, count: int, by: Measure, allowed: np.ndarray
) -> Neighbours:
    """The rows nearest to one of a table [V, D], without itself; at most `count` of those that are allowed [V].

    `norms` are those of `row_norms`. By cosine, a row of 0 has no neighbours and is never one: 0 has no direction.
    """
    nearness = _nearness(table, norms, [row], by, allowed)[:, 0]
    candidates = _best(nearness, count + _SPARE)
    rows, own = table[candidates].astype(np.float64), table[row].astype(np.float64)
    lengths = norms[candidates] * norms[row]
    cosine = np.divide(rows @ own, lengths, out=np.full(len(rows), np.nan), where=lengths > 0)
    distance = np.sqrt(((rows - own) ** 2).sum(axis=1))
    order = np.argsort(-cosine if by == "cosine" else distance, kind="stable")[:count]
    return Neighbours(candidates[order], np.clip(cosine[order], -1, 1), distance[order])


def neighbourhoods(
    table: np.ndarray, norms: np.ndarray, rows: Sequence[int], *, count: int, by: Measure, allowed: np.ndarray
) -> list[np.ndarray]:
    """The ids of the nearest rows of each of several rows, nearest first; see `nearest`."""
    found: list[np.ndarray] = []
    for start in range(0, len(rows), _BLOCK):
        nearness = _nearness(table, norms, rows[start : start + _BLOCK], by, allowed)
        found += [_best(column, count) for column in nearness.T]
    return found


def _nearness(
    table: np.ndarray, norms: np.ndarray, rows: Sequence[int], by: Measure, allowed: np.ndarray
) -> np.ndarray:
    """How near every row is to each of some, up to a constant for each; -inf where it may not be returned [V, N]."""
    chosen = list(rows)
    products = table @ table[chosen].T  # [V, N]
    if by == "cosine":
        lengths = norms[:, None] * norms[chosen]
        near = np.divide(products, lengths, out=np.full(products.shape, -np.inf), where=lengths > 0)
    else:
        near = 2 * products - (norms**2)[:, None]
    near[~allowed] = -np.inf
    near[chosen, np.arange(len(chosen))] = -np.inf
    return near


def _best(nearness: np.ndarray, count: int) -> np.ndarray:
    """The places of the largest numbers, largest first, ties by place; never one of -inf."""
    there = np.flatnonzero(nearness > -np.inf)
    if len(there) > count > 0:
        least = np.partition(nearness[there], len(there) - count)[len(there) - count]
        there = there[nearness[there] >= least]
    return there[np.argsort(-nearness[there], kind="stable")[:count]]


def plane(rows: np.ndarray, *, unit: bool) -> Plane:
    """Project rows [N, D] on their first two principal components; with `unit`, after scaling each to length 1.

    The rows' mean is the origin. The largest number of each direction is made positive, so the map is never mirrored.
    """
    vectors = rows.astype(np.float64)
    if unit:
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    vectors = vectors - vectors.mean(axis=0)
    if len(vectors) > 4 * vectors.shape[1]:  # for thousands of rows a decomposition takes seconds under load
        squares, columns = np.linalg.eigh(vectors.T @ vectors)  # rising
        squares, directions = np.maximum(squares[::-1], 0), columns.T[::-1]
    else:
        _, sizes, directions = np.linalg.svd(vectors, full_matrices=False)
        squares = sizes**2
    shares, points = np.zeros(2), np.zeros((len(vectors), 2))
    total = float(squares.sum())
    for axis, direction in enumerate(directions[:2] if total > 0 else []):
        sign = 1 if direction[np.abs(direction).argmax()] > 0 else -1
        points[:, axis] = vectors @ (sign * direction)
        shares[axis] = squares[axis] / total
    return Plane(points, (float(shares[0]), float(shares[1])))
