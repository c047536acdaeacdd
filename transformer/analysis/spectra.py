"""How much a matrix stretches vectors: its singular values, and whether it may still be as it was drawn.

They are computed in float64 from the matrix itself, so small ones keep their digits; the product with its transpose
would lose those below 1e-8 of the largest. A matrix with many rows is first reduced, some rows at a time (a QR
decomposition in slices), to a triangle with the same singular values, so no large copy is made.

A matrix that was drawn has values evenly spread, and no structure. The largest value alone does not tell: that of
sinusoids in any order, a ramp or a mask is low, too. The largest singular value of m x n independent values of
deviation s is about s (root m + root n); structure makes it larger.

Source: Demmel, Grigori, Hoemmen and Langou, "Communication-optimal Parallel and Sequential QR and LU Factorizations"
(2012), section 4, for the slices; Roy and Vetterli, "The Effective Rank: A Measure of Effective Dimensionality"
(EUSIPCO 2007), definition 1; Yin, Bai and Krishnaiah, "On the limit of the largest eigenvalue of the large
dimensional sample covariance matrix" (1988); Kolmogorov (1933), for the distance of two distributions.

Shapes: M rows, N columns.
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from torch import Tensor

from transformer.analysis.parameters import SLICE, slices

SMALL: Final = 2**20  # numbers of a matrix that is decomposed in one go


@dataclass(frozen=True, eq=False)
class Spectrum:
    """The singular values of a matrix."""

    values: np.ndarray  # largest first, float64 [min(M, N)]

    @property
    def largest(self) -> float:
        """The largest factor by which the matrix stretches a vector (its spectral norm)."""
        return float(self.values[0])

    @property
    def smallest(self) -> float:
        """The smallest singular value; 0, up to rounding, if the matrix does not have full rank."""
        return float(self.values[-1])

    @property
    def ratio(self) -> float:
        """Largest by smallest, the condition number, 1 to infinity; NaN for a matrix of zeros."""
        if self.smallest > 0:
            return self.largest / self.smallest
        return math.inf if self.largest > 0 else math.nan

    @property
    def effective_rank(self) -> float:
        """How many directions the matrix uses, 1 to min(M, N): e to the entropy of the values' shares of their sum.

        NaN for a matrix of zeros. Everything that speaks of an effective rank means this one.
        """
        if not self.largest > 0:
            return math.nan
        shares = self.values / self.values.sum()
        shares = shares[shares > 0]
        return math.exp(-float((shares * np.log(shares)).sum()))


def work_of(shape: tuple[int, ...]) -> int:
    """The approximate cost of a tensor's singular values, in multiplications; 0 if it is not a matrix.

    A core does about 5e9 of them per second. The second term counts the slower ones, for the triangle.
    """
    return min(shape) * (shape[0] * shape[1] + 3 * min(shape) ** 2) if len(shape) == 2 else 0


def spectrum(matrix: Tensor) -> Spectrum | None:
    """The singular values of a matrix [M, N]; None if it is not a matrix, is empty, or is not finite everywhere."""
    if matrix.dim() != 2 or not matrix.numel() or not all(torch.isfinite(part).all() for part in slices(matrix)):
        return None
    tall = matrix if matrix.size(0) >= matrix.size(1) else matrix.T
    values = torch.linalg.svdvals(_triangle(tall))
    return Spectrum(values.numpy())


def _triangle(tall: Tensor) -> Tensor:
    """A matrix with the singular values of a tall one [M, N]: itself, or if it is large the R of its QR [N, N]."""
    if tall.numel() <= SMALL:
        return tall.to("cpu", torch.float64)
    n = tall.size(1)
    upper = torch.empty(0, n, dtype=torch.float64)
    for rows in tall.split(max(4 * n, SLICE // n)):  # several times as many as the triangle above them
        _, upper = torch.linalg.qr(torch.cat([upper, rows.to("cpu", torch.float64)]), mode="r")
    return upper


UNIFORM = 1.8
"""Largest value over root mean square. Uniform values give 1.73 at most (the root of 3), but for the chance in their
mean; the matrices of nine healthy models from 2.10 up."""
EDGE = 1.2  # of the largest singular value that independent values give; chance moves that of 16 x 16 values by 0.1
TURNS = 24  # of the power iteration, which finds a direction that stands out in a few
APART = 0.03  # the most that shares below a value are from an even spread's, but for chance; sinusoids are 0.21 away


@torch.inference_mode()
def is_unstructured(matrix: Tensor) -> bool:
    """Whether no direction of a matrix [M, N] is longer than independent values of its size make it."""
    values = matrix.float()
    size = float(values.pow(2).mean().sqrt())
    vector = torch.randn(values.size(1), generator=torch.Generator().manual_seed(0)).to(values.device)
    for _ in range(TURNS):
        vector = values.T @ (values @ (vector / vector.norm()))  # [N]
    return float(vector.norm().sqrt()) <= EDGE * size * sum(n**0.5 for n in values.shape)


@torch.inference_mode()
def largest_of(matrix: Tensor) -> float | None:
    """The largest value of a matrix over its root mean square; None where that is small, and it was not drawn."""
    size = float(matrix.float().pow(2).mean().sqrt())
    if size == 0:
        return None
    ratio = float(matrix.abs().max()) / size
    return ratio if ratio >= UNIFORM or (_is_even(matrix) and is_unstructured(matrix)) else None


def _is_even(matrix: Tensor) -> bool:
    """Whether values are spread evenly between minus and plus the largest of them."""
    found = matrix.float().flatten().sort().values
    even = (found / found.abs().max() + 1) / 2  # the share of an even spread below each, 0 to 1
    shares = torch.arange(1, len(found) + 1, device=found.device) / len(found)
    return float((even - shares).abs().max()) <= APART + 1.4 / len(found) ** 0.5
