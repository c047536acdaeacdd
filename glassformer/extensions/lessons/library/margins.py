"""How an oracle decides, so that no rounding does: beside a bar, among numbers, and whether numbers are the same.

Processors and numbers of threads sum in different orders, which moves what a model computes by about 1e-6. That may
not change an answer. So each of these functions raises `NotHere` where a number is so near what it is compared with
that rounding could decide, and of numbers that rounding could exchange the first is taken.
"""

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from glassformer.extensions.lessons.library.case import NEAR, NotHere

APART: Final = 1e-3  # of a bar, or of 1 beside the bar 0: what is nearer to it lies on it
ROUNDING: Final = 1e-4  # of numbers that are around 1 or smaller: the most that rounding makes
VISIBLE: Final = 10  # times as much is no rounding; between the two nobody knows


def above(value: float, bar: float = 0.0, *, by: float = APART) -> bool:
    """Whether a number is above a bar."""
    if abs(value - bar) <= by * (abs(bar) or 1.0):
        raise NotHere(NEAR)
    return value > bar


def between(bars: Sequence[float], value: float, words: Sequence[str], *, by: float = APART) -> str:
    """The word for where a number lies among bars: one more than there are bars, the lowest first."""
    return words[sum(above(value, bar, by=by) for bar in bars)]


def only_rounding(apart: float, limit: float = ROUNDING) -> bool:
    """Whether numbers that are so far apart are the same but for rounding."""
    if limit < apart < VISIBLE * limit:
        raise NotHere(NEAR)
    return apart <= limit


def largest(values: np.ndarray) -> int:
    """The place of the largest number, in a flat array the first of those that are as large."""
    top = values.max()
    return int((values >= top - ROUNDING * max(abs(float(top)), 1.0)).argmax())


def clear(rows: np.ndarray) -> np.ndarray:
    """Whether the largest number of each row [..., n] is ahead of all others by more than rounding."""
    if rows.shape[-1] < 2:
        return np.ones(rows.shape[:-1], bool)
    two = np.sort(rows, axis=-1)[..., -2:]
    ahead: np.ndarray = two[..., 1] - two[..., 0] > ROUNDING * np.maximum(np.abs(two[..., 1]), 1.0)
    return ahead


def counted(hits: np.ndarray, sure: np.ndarray, word: Callable[[int], str]) -> str:
    """The word for how many hits there are, if it is the same whatever those come to that are not sure."""
    if word(int((hits & sure).sum())) != word(int((hits | ~sure).sum())):
        raise NotHere(NEAR)
    return word(int(hits.sum()))
