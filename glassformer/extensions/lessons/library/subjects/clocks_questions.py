"""Questions about tables of positions: how fast dimensions turn, what a shift is, what a table can hold.

Picks: which positions and dimensions a lesson about clocks looks at. Dimensions and the p of a formula count from 0.

Source: Vaswani et al. (2017), section 3.5.
"""

from typing import Any, Final

import numpy as np

from glassformer.extensions.lessons.library.case import (
    Answer,
    Case,
    Option,
    QuestionNotApplicable,
    amount,
    numbered,
    only_rounding,
    outputs,
    worded,
)
from glassformer.extensions.lessons.library.subjects.steps import written
from glassformer.extensions.what_if.interventions import ShiftPositions
from transformer.analysis import positions as study
from transformer.analysis.positions import own_table
from transformer.i18n import say
from transformer.model.anatomy import anatomy

FOLLOWS: Final = 1e-3  # a table nearer to the paper's formula than this is the formula, rounded
FAST, SLOW, ONE_TURN = 12, 200, 24  # wavelengths, in positions, near which pairs of dimensions are looked for
SHIFT: Final = 5
SMALL_SHIFT: Final = 2
APART: Final = 3
MOST_POSITIONS: Final = 64


def two_clocks(case: Case) -> dict[str, Any]:
    """A pair of dimensions that turns fast, and one that turns slowly."""
    waves = _waves(case)
    fast, slow = (int(np.abs(np.log(waves / length)).argmin()) for length in (FAST, SLOW))
    if fast == slow:
        raise QuestionNotApplicable(
            "This model's position vectors have too few dimensions to form two different pairs."
        )
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
        raise QuestionNotApplicable("This model has {n} positions, too few to compare two pairs of positions.", n=n)
    return {"p": 1, "q": 1 + APART, "p2": second, "q2": second + APART}


def shift(case: Case) -> dict[str, Any]:
    """A shift by a few positions, and a pair of dimensions that turns once in the table: its points lie apart."""
    table = table_of(case)
    if len(table) < SHIFT + 3:
        raise QuestionNotApplicable("This model has too few positions to shift them by {n}.", n=SHIFT)
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
    """The table of positions of the stack that reads the sentence, [position, d_model]."""
    config = case.checkpoint.config
    if config.placing.adds != "table":
        raise QuestionNotApplicable(
            "This model does not add a table of positions to its embeddings; choose another checkpoint."
        )
    return own_table(case.checkpoint.model, anatomy(config).stacks[0].name)


def angle_of(table: np.ndarray, pair: int) -> float:
    """By how many radians a pair of dimensions, from 0, turns from each position of a table to the next."""
    angles = np.unwrap(np.arctan2(table[:, 2 * pair].astype(np.float64), table[:, 2 * pair + 1]))
    return float(abs(angles[-1] - angles[0]) / (len(table) - 1))


def _waves(case: Case) -> np.ndarray:
    """Wavelengths by pair, of a table that is the formula."""
    table = table_of(case)
    if study.difference_from_formula(table) >= FOLLOWS:
        raise QuestionNotApplicable(
            "This model's position vectors are not the sines and cosines of the original paper; choose the "
            "checkpoint zh-en or en-fr."
        )
    return study.wavelengths(table.shape[1])[: table.shape[1] // 2]


MEASURED: Final = 512


def faster_dimension(case: Case) -> Answer:
    """Which of two pairs of dimensions turns faster."""
    fast, slow, table = int(case.picked["fast"]), int(case.picked["slow"]), table_of(case)
    turns = {word: 2 * np.pi / angle_of(table, pair) for word, pair in (("fast", fast), ("slow", slow))}
    options = (Option("fast", _pair(fast)), Option("slow", _pair(slow)), Option("same"))
    right = min(turns, key=lambda word: turns[word])
    return Answer(right=right, options=options, values={f"turn_{word}": float(turns[word]) for word in turns})


def _pair(pair: int) -> str:
    return say("pair {n}: dimensions {sine} and {cosine}", n=pair, sine=2 * pair, cosine=2 * pair + 1)


def turn_length(case: Case) -> Answer:
    """After how many positions a pair of dimensions has turned once."""
    sine, table = int(case.picked["sine"]), table_of(case)
    turn = 2 * np.pi / angle_of(table, sine // 2)
    numbers = {"turn": turn, "half": turn / 2, "radian": turn / (2 * np.pi), "width": float(table.shape[1])}
    return Answer(right="turn", options=numbered(numbers, ",.0f"), values={"turn": float(turn)})


def same_distance(case: Case) -> Answer:
    """Which of two pairs of positions, equally far apart, is more alike by the dot product."""
    p, q, p2, q2 = (int(case.picked[name]) for name in ("p", "q", "p2", "q2"))
    similar = study.similarity(table_of(case)[:MOST_POSITIONS])
    first, second = float(similar[p, q]), float(similar[p2, q2])
    spread = study.by_distance(similar).spread
    near = only_rounding(abs(first - second) / float(np.abs(similar).max()))
    right = "same" if near else ("first" if first > second else "second")
    values = {"first": first, "second": second, "spread": amount(spread), "d": q - p}
    variant = "distance" if near else "places"
    return Answer(right=right, options=worded("first", "second", "same"), values=values, variant=variant)


def shift_map(case: Case) -> Answer:
    """What makes of every position's vector the one some positions further on."""
    k, table = int(case.picked["k"]), table_of(case)[:MEASURED]
    missed = float(study.rotation_errors(table, k).max())
    fit = study.fit_shift(table, k)
    right = "one" if only_rounding(missed, FOLLOWS) else "none"
    if right == "none" and fit.held_out_error < 0.1:
        raise QuestionNotApplicable(
            "In this table, shifting the positions does not rotate the vectors by the formula's angles. It "
            "transforms them in another way, which none of the choices describes."
        )
    values = {"missed": amount(missed), "held_out": fit.held_out_error}
    return Answer(right=right, options=worded("one", "each", "none"), values=values, variant=right)


def where_from(case: Case) -> Answer:
    """Whether a table of positions was computed or learned."""
    learned, table = bool(case.checkpoint.config.placing.parameters), table_of(case)
    if not learned and study.difference_from_formula(table) >= FOLLOWS:
        raise QuestionNotApplicable("This table of positions was computed with a formula, but not with the paper's.")
    right = "learned" if learned else "formula"
    values = {"size": table.size, "root": float(np.sqrt(table.shape[1] / 2))}
    return Answer(right=right, options=worded("formula", "learned", "random"), values=values, variant=right)


def shifted_output(case: Case) -> Answer:
    """Whether the output stays the same when all tokens stand some positions further on."""
    k, longest = int(case.picked["k"]), max(len(case.trace.src_ids), len(case.trace.read_ids))
    if longest + k > len(table_of(case)):  # behind the last row comes the first again
        raise QuestionNotApplicable(
            "The table of positions has fewer than {n} rows left after this sentence; try a shorter one.", n=k
        )
    other = case.changed(ShiftPositions(by=k))
    right = "same" if other.tgt_ids == case.trace.tgt_ids else "other"
    moved = amount(abs(other.log_prob - case.trace.log_prob))
    values = {**outputs(case.trace, other), "moved": moved, "end": other.n_steps}
    return Answer(right=right, options=worded("same", "other"), values=values, variant=right)


def longest_word(case: Case) -> Answer:
    """How many pieces a source may have where positions are a table with so many rows."""
    rows, trace = len(table_of(case)), case.trace
    tokenizer = case.checkpoint.src_tokenizer
    marks = sum(tokenizer.is_special(i) for i in trace.src_ids)
    if not case.checkpoint.config.placing.parameters or not marks:
        raise QuestionNotApplicable("This step needs a learned table of positions and a source with an end mark.")
    numbers = {"half": rows // 2, "pieces": rows - marks, "rows": rows}
    options = tuple(Option(word, f"{n:,}") for word, n in numbers.items())
    values = {"k": rows - marks, "next": rows}
    return Answer(right="pieces", options=(*options, Option("any")), values=values)
