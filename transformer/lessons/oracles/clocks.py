"""Questions about tables of positions: how fast dimensions turn, what a shift is, what a table can hold.

Source: Vaswani et al. (2017), section 3.5.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from transformer.analysis import position_study as study
from transformer.lessons.case import Answer, Case, NotHere, Option, worded
from transformer.lessons.oracles.amounts import amount
from transformer.lessons.picks.clocks import FOLLOWS, MOST_POSITIONS, angle_of, table_of
from transformer.runs.interventions import ShiftPositions
from words import say

SAME: Final = 1e-4
"""Dot products that differ by less than this share of the largest are the same, up to rounding."""

MEASURED: Final = 512


def faster_dimension(case: Case) -> Answer:
    """Which of two pairs of dimensions turns faster."""
    fast, slow = int(case.picked["fast"]), int(case.picked["slow"])
    table = table_of(case)
    turns = {word: 2 * np.pi / angle_of(table, pair) for word, pair in (("fast", fast), ("slow", slow))}
    options = (Option("fast", _pair(fast)), Option("slow", _pair(slow)), Option("same"))
    right = min(turns, key=lambda word: turns[word])
    return Answer(right=right, options=options, values={f"turn_{word}": float(turns[word]) for word in turns})


def _pair(pair: int) -> str:
    return say("pair {n}: dimensions {sine} and {cosine}", n=pair, sine=2 * pair, cosine=2 * pair + 1)


def turn_length(case: Case) -> Answer:
    """After how many positions a pair of dimensions has turned once."""
    sine = int(case.picked["sine"])
    table = table_of(case)
    turn = 2 * np.pi / angle_of(table, sine // 2)
    numbers = {"turn": turn, "half": turn / 2, "radian": turn / (2 * np.pi), "width": float(table.shape[1])}
    rounded: dict[str, int] = {}
    for word, number in numbers.items():
        if round(number) not in rounded.values():
            rounded[word] = round(number)
    options = tuple(Option(word, f"{n:,}") for word, n in sorted(rounded.items(), key=lambda one: one[1]))
    return Answer(right="turn", options=options, values={"turn": float(turn)})


def same_distance(case: Case) -> Answer:
    """Which of two pairs of positions, equally far apart, is more alike by the dot product."""
    p, q, p2, q2 = (int(case.picked[name]) for name in ("p", "q", "p2", "q2"))
    similar = study.similarity(table_of(case)[:MOST_POSITIONS])
    first, second = float(similar[p, q]), float(similar[p2, q2])
    spread = study.by_distance(similar).spread
    near = abs(first - second) <= SAME * float(np.abs(similar).max())
    right = "same" if near else ("first" if first > second else "second")
    values = {"first": first, "second": second, "spread": amount(spread), "d": q - p}
    options = worded("first", "second", "same")
    return Answer(right=right, options=options, values=values, variant="distance" if near else "places")


def shift_map(case: Case) -> Answer:
    """What makes of every position's vector the one some positions further on."""
    k, table = int(case.picked["k"]), table_of(case)[:MEASURED]
    missed = float(study.rotation_errors(table, k).max())
    fit = study.fit_shift(table, k)
    right = "one" if missed < FOLLOWS else "none"
    if right == "none" and fit.held_out_error < 0.1:
        raise NotHere("Another map than the formula's rotation shifts this table, which the choices do not name.")
    values = {"missed": amount(missed), "held_out": fit.held_out_error}
    return Answer(right=right, options=worded("one", "each", "none"), values=values, variant=right)


def where_from(case: Case) -> Answer:
    """Whether a table of positions was computed or learned."""
    learned, table = case.checkpoint.config.positions == "learned", table_of(case)
    if not learned and study.difference_from_formula(table) >= FOLLOWS:
        raise NotHere("This table is computed by another formula than the paper's.")
    right = "learned" if learned else "formula"
    values = {"size": table.size, "root": float(np.sqrt(table.shape[1] / 2))}
    return Answer(right=right, options=worded("formula", "learned", "random"), values=values, variant=right)


def shifted_output(case: Case) -> Answer:
    """Whether the output stays the same when all tokens stand some positions further on."""
    k, longest = int(case.picked["k"]), max(len(case.trace.src_ids), len(case.trace.read_ids))
    if longest + k > len(table_of(case)):  # behind the last row comes the first again
        raise NotHere("The table has no {n} further positions for this sentence; try a shorter one.", n=k)
    other = case.changed(ShiftPositions(by=k))
    right = "same" if other.tgt_ids == case.trace.tgt_ids else "other"
    moved = abs(other.log_prob - case.trace.log_prob)
    values = {
        "before": case.trace.output_text,
        "after": other.output_text,
        "moved": amount(moved),
        "end": other.n_steps,
    }
    return Answer(right=right, options=worded("same", "other"), values=values, variant=right)


def longest_word(case: Case) -> Answer:
    """How many pieces a source may have where positions are a table with so many rows."""
    rows, trace = len(table_of(case)), case.trace
    tokenizer = case.checkpoint.src_tokenizer
    marks = sum(tokenizer.is_special(i) for i in trace.src_ids)
    if case.checkpoint.config.positions != "learned" or not marks:
        raise NotHere("This step is about a learned table of positions and a source with an end mark.")
    numbers = {"half": rows // 2, "pieces": rows - marks, "rows": rows}
    options = tuple(Option(word, f"{n:,}") for word, n in numbers.items())
    values = {"k": rows - marks, "next": rows}
    return Answer(right="pieces", options=(*options, Option("any")), values=values)


ORACLES: Final = (
    *(faster_dimension, turn_length, same_distance, shift_map),
    *(where_from, shifted_output, longest_word),
)
