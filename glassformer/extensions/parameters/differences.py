"""Pairing of two models' tensors by name and shape; their difference: max, mean, relative norm, cosine.

All is computed in float64, a slice at a time. Elements that are NaN or infinite in either model are counted and
skipped.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from transformer.analysis.parameters import Parameter, slices


@dataclass(frozen=True)
class Difference:
    """The difference b - a of two tensors."""

    name: str  # of the first
    shape: tuple[int, ...]  # of both
    largest: float  # max |b - a|; NaN if nothing could be compared, as all that follows
    mean: float  # mean of |b - a|
    relative: float  # ‖b - a‖ / ‖a‖; infinite where a alone is 0
    cosine: float  # of the angle between the two as vectors, -1 to 1; NaN where one of them is 0
    left_out: int  # places where one of the two is not finite


@dataclass(frozen=True, eq=False)
class Paired:
    """Which tensors of two models are paired: those with the same name and shape."""

    pairs: tuple[tuple[Parameter, Parameter], ...]  # tensor of the first and of the second, in the order of the first
    only_first: tuple[str, ...]  # names that the other one lacks
    only_second: tuple[str, ...]  # names that the other one lacks
    reshaped: tuple[str, ...]  # names that both have, of different shapes

    @property
    def unmatched(self) -> tuple[str, ...]:
        """All names that are not paired."""
        return (*self.reshaped, *self.only_first, *self.only_second)


def paired(first: Sequence[Parameter], second: Sequence[Parameter]) -> Paired:
    """Pair the tensors of two models; a shared tensor can be found by any of its names."""
    there = {name: one for one in second for name in (one.name, *one.also)}
    pairs, missing, reshaped, met = [], [], [], set()
    for one in first:
        other = next((there[name] for name in (one.name, *one.also) if name in there), None)
        if other is None:
            missing.append(one.name)
            continue
        met.add(other.name)
        if other.values.shape == one.values.shape:
            pairs.append((one, other))
        else:
            reshaped.append(one.name)
    left = tuple(one.name for one in second if one.name not in met)
    return Paired(tuple(pairs), tuple(missing), left, tuple(reshaped))


def difference(name: str, a: Tensor, b: Tensor) -> Difference:
    """The difference of two tensors of the same shape, of any floating-point types."""
    largest, total, compared = 0.0, 0.0, 0
    squares = torch.zeros(4, dtype=torch.float64)  # of b - a, of a, of b; and a · b
    for x, y in zip(slices(a), slices(b, like=a), strict=True):
        good = torch.isfinite(x) & torch.isfinite(y)
        if not bool(good.all()):
            x, y = x[good], y[good]
        if not x.numel():
            continue
        d = y - x
        size = d.abs()
        largest, total, compared = max(largest, float(size.max())), total + float(size.sum()), compared + len(d)
        squares += torch.stack([d @ d, x @ x, y @ y, x @ y])
    apart, of_a, of_b, product = squares.tolist()
    lengths = math.sqrt(of_a) * math.sqrt(of_b)
    return Difference(
        name=name,
        shape=tuple(a.shape),
        largest=largest if compared else math.nan,
        mean=total / compared if compared else math.nan,
        relative=_ratio(math.sqrt(apart), math.sqrt(of_a)) if compared else math.nan,
        cosine=max(-1.0, min(1.0, product / lengths)) if lengths else math.nan,
        left_out=a.numel() - compared,
    )


def _ratio(above: float, below: float) -> float:
    if below:
        return above / below
    return math.inf if above else 0.0
