"""Which positions and dimensions a lesson about clocks looks at. Dimensions and the p of a formula count from 0."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from transformer.analysis import position_study as study
from transformer.analysis.position_tables import own_table
from transformer.lessons.case import Case, NotHere
from transformer.lessons.picks.steps import written
from transformer.model.anatomy import anatomy
from transformer.model.features import TABLES
from transformer.runs.interventions import ShiftPositions

FOLLOWS: Final = 1e-3
"""A table nearer to the paper's formula than this is the formula, rounded."""

FAST: Final = 12
SLOW: Final = 200
ONE_TURN: Final = 24
"""Wavelengths, in positions, near which pairs of dimensions are looked for."""

SHIFT: Final = 5
SMALL_SHIFT: Final = 2
APART: Final = 3
MOST_POSITIONS: Final = 64


def two_clocks(case: Case) -> dict[str, Any]:
    """A pair of dimensions that turns fast, and one that turns slowly."""
    waves = _waves(case)
    fast, slow = (int(np.abs(np.log(waves / length)).argmin()) for length in (FAST, SLOW))
    if fast == slow:
        raise NotHere("This model's positions have too few dimensions to compare two.")
    return {"fast": fast, "slow": slow, "dims": f"{2 * fast + 1}.{2 * slow + 1}", "d": table_of(case).shape[1]}


def one_clock(case: Case) -> dict[str, Any]:
    """A pair of dimensions that turns once in a few words, and by how much from one position to the next."""
    pair = int(np.abs(np.log(_waves(case) / ONE_TURN)).argmin())
    return {
        "sine": 2 * pair,
        "cosine": 2 * pair + 1,
        "radians": angle_of(table_of(case), pair),
        "dims": f"{2 * pair + 1}.{2 * pair + 2}",
    }


def two_pairs(case: Case) -> dict[str, Any]:
    """Two pairs of positions that are equally far apart, one at the beginning of the table, one further back."""
    n = min(len(table_of(case)), MOST_POSITIONS)
    second = n - 2 * APART
    if second <= 1 + APART:
        raise NotHere("This model has {n} positions, too few for two pairs of them.", n=n)
    return {"p": 1, "q": 1 + APART, "p2": second, "q2": second + APART}


def shift(case: Case) -> dict[str, Any]:
    """A shift by a few positions, and a pair of dimensions that turns once in the table: its points lie apart."""
    table = table_of(case)
    if len(table) < SHIFT + 3:
        raise NotHere("This model has too few positions to shift them by {n}.", n=SHIFT)
    pair = int(np.abs(np.log(study.wavelengths(table.shape[1]) / MOST_POSITIONS)).argmin())
    return {"k": SHIFT, "dims": f"{2 * pair + 1}.{2 * pair + 2}"}


def small_shift(case: Case) -> dict[str, Any]:
    """All tokens stand a few positions further on."""
    table_of(case)
    return {"k": SMALL_SHIFT, "change": str(ShiftPositions(by=SMALL_SHIFT)), "last": written(case, least=1)}


def lengths(case: Case) -> dict[str, Any]:
    """How long the vectors of positions are."""
    table = table_of(case)
    found = np.linalg.norm(table.astype(np.float64), axis=1)
    return {"least": float(found.min()), "most": float(found.max()), "n": len(table), "d": table.shape[1]}


def table_of(case: Case) -> np.ndarray:
    """The table of positions of the stack that reads the sentence, [position, d_model].

    Args:
        case: The run.

    Raises:
        NotHere: The model adds none to its embeddings.
    """
    config = case.checkpoint.config
    if config.positions not in TABLES:
        raise NotHere("This model adds no table of positions to its embeddings; choose another checkpoint.")
    return own_table(case.checkpoint.model, anatomy(config).stacks[0].name)


def angle_of(table: np.ndarray, pair: int) -> float:
    """By how many radians a pair of dimensions turns from one position to the next, measured in the table.

    Args:
        table: [position, d_model].
        pair: From 0.
    """
    angles = np.unwrap(np.arctan2(table[:, 2 * pair].astype(np.float64), table[:, 2 * pair + 1]))
    return float(abs(angles[-1] - angles[0]) / (len(table) - 1))


def _waves(case: Case) -> np.ndarray:
    """Wavelengths by pair, of a table that is the formula."""
    table = table_of(case)
    if study.difference_from_formula(table) >= FOLLOWS:
        raise NotHere("The positions of this model are no sines and cosines of the paper's; choose zh-en or en-fr.")
    return study.wavelengths(table.shape[1])[: table.shape[1] // 2]


PICKS: Final = (two_clocks, one_clock, two_pairs, shift, small_shift, lengths)
