"""Whether a matrix may still be as it was drawn: its values evenly spread, and without structure.

The largest value alone does not tell: that of sinusoids in any order, a ramp or a mask is low, too. The largest
singular value of m x n independent values of deviation s is about s (root m + root n); structure makes it larger.

Source: Yin, Bai and Krishnaiah (1988), "On the limit of the largest eigenvalue of the large dimensional sample
covariance matrix"; Kolmogorov (1933), for the distance of two distributions.
"""

import torch
from torch import Tensor

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
