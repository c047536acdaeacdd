"""Statistics of a model's parameters: histograms, singular values, and tests whether a matrix looks random.

Everything is computed in float64, one slice of a tensor at a time: a tensor of 500 MB is never copied whole. NaN and
infinite numbers are counted, and left out of all other numbers. A tensor that two components share is listed once.

Singular values are computed from the matrix itself, so small ones keep their digits; the product with its transpose
would lose those below 1e-8 of the largest. A matrix with many rows is first reduced to a triangle with the same
singular values by QR decompositions of slices, so no large copy is made.

A matrix that was drawn has values evenly spread, and no structure. The largest value alone does not show it: that of
sinusoids in any order, a ramp or a mask is low, too. The largest singular value of m x n independent values of
deviation s is about s (root m + root n); structure makes it larger.

Source: Chan, Golub and LeVeque, "Updating Formulae and a Pairwise Algorithm for Computing Sample Variances" (1979),
section 2, for the deviation of all slices together; Demmel, Grigori, Hoemmen and Langou, "Communication-optimal
Parallel and Sequential QR and LU Factorizations" (2012), section 4, for the slices; Roy and Vetterli, "The Effective
Rank: A Measure of Effective Dimensionality" (EUSIPCO 2007), definition 1; Yin, Bai and Krishnaiah, "On the limit of the
largest eigenvalue of the large dimensional sample covariance matrix" (1988); Kolmogorov (1933), for the distance of two
distributions.

Shapes: M rows, N columns.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from torch import Tensor, nn

SLICE: Final = 2**20  # numbers that are made 64 bits wide at once: 8 MB
N_BINS: Final = 80
_LEAST_WIDTH: Final = 1e-9  # of a histogram, relative to its numbers: less, and its edges would fall together


@dataclass(frozen=True, eq=False)
class Parameter:
    """A learned tensor of a model."""

    name: str  # in the code
    also: tuple[str, ...]  # its other names, where several components share it
    values: Tensor  # the tensor itself, detached; not to be written to


@dataclass(frozen=True)
class Statistics:
    """Statistics of a tensor. If it has no finite number, mean to largest are NaN."""

    name: str  # in the code
    also: tuple[str, ...]  # its other names, where several components share it
    shape: tuple[int, ...]  # entries along each axis; empty for a single number
    dtype: str  # what it is stored as in memory, such as "float32"
    size: int  # how many numbers
    mean: float  # of its finite numbers; the deviation is that of the whole, divided by n
    deviation: float  # of its finite numbers; the deviation is that of the whole, divided by n
    smallest: float  # of its finite numbers
    largest: float  # of its finite numbers
    zeros: int  # how many are exactly 0
    nan: int  # how many are NaN, and plus or minus infinity
    infinite: int  # how many are NaN, and plus or minus infinity

    @property
    def zero_share(self) -> float:
        """Share of its numbers that are exactly 0, 0 to 1; NaN if it is empty."""
        return self.zeros / self.size if self.size else math.nan

    @property
    def is_finite(self) -> bool:
        """Whether none of its numbers is NaN or infinite."""
        return not self.nan and not self.infinite

    @property
    def is_constant(self) -> bool:
        """Whether it holds several numbers, all the same."""
        return self.size > 1 and self.is_finite and self.smallest == self.largest


@dataclass(frozen=True, eq=False)
class Histogram:
    """Counts of numbers in bins."""

    edges: np.ndarray  # of the bins, rising [bin + 1]; the last bin holds its upper edge, too
    counts: np.ndarray  # int64 [bin]
    nan: int  # how many are in no bin
    infinite: int  # how many are in no bin


@dataclass(frozen=True)
class _Moments:
    """Of the finite numbers of one slice, or of several together: how many, mean, sum of squared deviations, ends."""

    n: int = 0
    mean: float = 0.0
    squares: float = 0.0
    smallest: float = math.inf
    largest: float = -math.inf

    def __add__(self, other: "_Moments") -> "_Moments":
        n = self.n + other.n
        if not n:
            return self
        apart = other.mean - self.mean
        return _Moments(
            n=n,
            mean=self.mean + apart * other.n / n,
            squares=self.squares + other.squares + apart**2 * self.n * other.n / n,
            smallest=min(self.smallest, other.smallest),
            largest=max(self.largest, other.largest),
        )


def parameters(model: nn.Module) -> tuple[Parameter, ...]:
    """The learned tensors of a model in the model's order, each once."""
    names: dict[int, list[str]] = {}
    tensors: dict[int, Tensor] = {}
    for name, tensor in model.named_parameters(remove_duplicate=False):
        names.setdefault(id(tensor), []).append(name)
        tensors[id(tensor)] = tensor.detach()
    return tuple(Parameter(first, tuple(more), tensors[key]) for key, (first, *more) in names.items())


def statistics(model: nn.Module) -> tuple[Statistics, ...]:
    """Statistics of each learned tensor of a model, in the model's order; a shared tensor appears once."""
    return tuple(map(measured, parameters(model)))


def measured(parameter: Parameter) -> Statistics:
    """Statistics of a tensor of any shape and floating-point type; it may be empty."""
    values, moments, zeros, nan, infinite = parameter.values, _Moments(), 0, 0, 0
    for part in slices(values):
        finite, odd = _finite(part)
        nan, infinite = nan + odd[0], infinite + odd[1]
        zeros += int((finite == 0).sum())
        moments += _moments(finite)
    there = moments.n > 0
    return Statistics(
        name=parameter.name,
        also=parameter.also,
        shape=tuple(values.shape),
        dtype=str(values.dtype).removeprefix("torch."),
        size=values.numel(),
        mean=moments.mean if there else math.nan,
        deviation=math.sqrt(moments.squares / moments.n) if there else math.nan,
        smallest=moments.smallest if there else math.nan,
        largest=moments.largest if there else math.nan,
        zeros=zeros,
        nan=nan,
        infinite=infinite,
    )


def histogram(values: Tensor, *, minus: Tensor | None = None, n_bins: int = N_BINS) -> Histogram:
    """The distribution of a tensor's finite numbers, or of their differences from another, in bins of equal width."""
    ends, nan, infinite = _Moments(), 0, 0
    for part in _differences(values, minus):
        finite, odd = _finite(part)
        nan, infinite = nan + odd[0], infinite + odd[1]
        ends += _moments(finite)
    if not ends.n:
        return Histogram(np.zeros(1), np.zeros(0, np.int64), nan, infinite)
    low, high = _apart(ends.smallest, ends.largest)
    counts = torch.zeros(n_bins, dtype=torch.float64)
    for part in _differences(values, minus):
        counts += torch.histc(_finite(part)[0], n_bins, low, high)
    return Histogram(np.linspace(low, high, n_bins + 1), counts.to(torch.int64).numpy(), nan, infinite)


def slices(values: Tensor, *, like: Tensor | None = None) -> Iterator[Tensor]:
    """All numbers of a tensor in float64 on the processor, some at a time [n]; ordered as `like`, or as in memory."""
    lies = values if like is None else like
    if lies.dim() == 2 and lies.T.is_contiguous():  # a matrix by columns: by rows it would be copied or read in leaps
        values = values.T
    rows = values.reshape(-1, 1) if values.dim() < 2 else values.flatten(1)
    for part in rows.split(max(1, SLICE // max(1, rows.size(1)))):
        yield part.to("cpu", torch.float64).reshape(-1)


def _differences(values: Tensor, minus: Tensor | None) -> Iterator[Tensor]:
    if minus is None:
        return slices(values)
    return (one - other for one, other in zip(slices(values), slices(minus, like=values), strict=True))


def _finite(part: Tensor) -> tuple[Tensor, tuple[int, int]]:
    """The finite numbers, and how many of the others are NaN and infinite."""
    good = torch.isfinite(part)
    if bool(good.all()):
        return part, (0, 0)
    nan = int(torch.isnan(part).sum())
    return part[good], (nan, int((~good).sum()) - nan)


def _moments(finite: Tensor) -> _Moments:
    if not finite.numel():
        return _Moments()
    smallest, largest = torch.aminmax(finite)
    variance, mean = torch.var_mean(finite, correction=0)
    return _Moments(finite.numel(), float(mean), float(variance) * finite.numel(), float(smallest), float(largest))


def _apart(low: float, high: float) -> tuple[float, float]:
    """Two ends between which there is room for bins."""
    least = _LEAST_WIDTH * max(abs(low), abs(high)) or 1.0
    room = max(0.0, least - (high - low)) / 2
    return low - room, high + room


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
        """How many directions the matrix uses: e to the entropy of its values' shares; NaN for a matrix of zeros."""
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
