"""Where two texts of pieces part, and whether they end alike.

Places are compared as they are counted: up to the first difference piece t of the one stands beside piece t of the
other. After it nothing is aligned; only how many pieces both end with is counted.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile


@dataclass(frozen=True)
class Parting:
    """How two rows of ids agree."""

    # The first place, from 0, at which they differ, or at which only one of them goes on; None if they are equal.
    first: int | None
    tail: int  # how many pieces behind that place both end with; 0 if they are equal


def parting(one: Sequence[int], other: Sequence[int]) -> Parting:
    """Compare two rows of ids."""
    head = _alike(one, other)
    if head == len(one) == len(other):
        return Parting(None, 0)
    return Parting(head, _alike(one[head:][::-1], other[head:][::-1]))


def _alike(one: Sequence[int], other: Sequence[int]) -> int:
    """How many pieces both begin with."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
