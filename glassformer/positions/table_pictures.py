"""The page Positions, and the pictures of a table of positions: itself, who resembles whom in it, what a shift does.

Knows nothing of Streamlit.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from glassformer.charts.positions import (
    ErrorLine,
    position_curves_spec,
    position_similarity_spec,
    position_table_spec,
    shift_errors_spec,
    shift_points_spec,
    similarity_by_distance_spec,
    wavelengths_spec,
)
from glassformer.positions import PositionsLook
from glassformer.runs.picture import Page, Plot
from glassformer.runs.seen import Seen, Work
from glassformer.runs.sides import STACKS, fit_parts
from glassformer.shared.numbers import short
from glassformer.state.click import into, place_of
from glassformer.state.view import Slot, View
from transformer.analysis import position_study as study
from transformer.analysis.position_study import own_table
from transformer.i18n import joined, say
from transformer.model.anatomy import StackName, anatomy
from transformer.runs.finite import not_finite

if TYPE_CHECKING:
    from transformer.checkpoint.load import Checkpoint

DEFAULT_COUNT = 64
MOST_CELLS = 32_768  # 128 positions of 256 dimensions: 130 kB
MOST_MEASURED = 512  # positions in which waves are looked for
MOST_SHIFTED = 512  # positions that a shift is measured on
MOST_DRAWN = 64  # positions of a shift, as more points cover each other
MOST_FITS = 24
MOST_ROTATIONS = 64
FOLLOWS = 1e-3
"""A table nearer to the formula than this is the formula, rounded."""

PAGE = Page("positions", say("Positions"), panel="positions_panel")


@dataclass(frozen=True)
class Table:
    """The table of one stack, and what of it is looked at."""

    checkpoint: Checkpoint  # whose
    values: np.ndarray  # [position, d_model]
    only: bool  # whether the model has no other stack
    alone: bool  # whether the other side's table has other values
    whose: str  # in a few words, for titles
    view: View  # what is looked at; its side is the table's
    count: int  # how many positions are drawn
    d_model: int  # number of dimensions
    difference: float  # the largest difference of any value from the formula
    follows: bool  # whether it is the formula's, rounded
    measured: np.ndarray  # the first positions, which a shift is measured on [position, d_model]
    slot: Slot  # where it is drawn
    work: Work

    @property
    def look(self) -> PositionsLook:
        """What of it is looked at."""
        return self.view.of(PositionsLook)

    @property
    def dims(self) -> tuple[int, ...]:
        """The dimensions whose curves are drawn: those chosen, else a few spread over the table."""
        return self.look.dims or spread(self.d_model)

    @property
    def pair(self) -> int:
        """The pair of dimensions that is followed through a shift; -1 if there is none."""
        return min(self.look.dims[0] // 2 if self.look.dims else 0, self.d_model // 2 - 1)

    @property
    def most_shift(self) -> int:
        """The largest shift that leaves two positions to look at."""
        return most_shift(len(self.values))

    @property
    def shift(self) -> int:
        """The shift that is looked at."""
        return min(self.look.shift, self.most_shift)

    @property
    def shifts(self) -> bool:
        """Whether there are positions and dimensions enough to look at a shift."""
        return self.most_shift >= 1 and self.pair >= 0

    @cached_property
    def fit(self) -> study.ShiftFit:
        """The best linear map of the shift."""
        return study.fit_shift(self.measured, self.shift)

    @cached_property
    def waves(self) -> study.Periods | None:
        """The strongest waves; None where there are too few positions to look for some."""
        values = self.values[:MOST_MEASURED]
        return study.strongest_waves(values) if len(values) >= 3 else None

    @cached_property
    def similar(self) -> np.ndarray:
        """How much each position that is drawn resembles each other."""
        return study.similarity(self.values[: self.count], cosine=self.look.cosine)

    @cached_property
    def by_distance(self) -> study.ByDistance:
        """The same by distance."""
        return study.by_distance(self.similar)

    @property
    def measure(self) -> str:
        """What resemblance is."""
        return say("cosine") if self.look.cosine else "p·q"


def most_shift(n_positions: int) -> int:
    """The largest shift that leaves two of so many positions to look at."""
    return min(n_positions, MOST_SHIFTED) - 2


def count_of(view: View, most: int) -> int:
    """How many of `most` positions are drawn."""
    return min(view.of(PositionsLook).drawn or DEFAULT_COUNT, most)


def spread(d_model: int) -> tuple[int, ...]:
    """A few dimensions: a sine and its cosine, two of longer waves, and the last."""
    return tuple(sorted({0, min(1, d_model - 1), d_model // 8, d_model // 4, d_model - 1}))


def stack_of(checkpoint: Checkpoint, stack: StackName) -> str:
    """A stack in a few words, for titles."""
    if stack == "encoder":
        return say("{name}, encoder", name=checkpoint.name)
    return say("{name}, decoder", name=checkpoint.name)


def open_table(checkpoint: Checkpoint, view: View, slot: Slot, work: Work) -> Table | None:
    """The table of the side that is looked at, whatever the sentence; None for a model that adds none.

    Raises QueryError if something in it is not finite.
    """
    if checkpoint.config.placing.adds != "table":
        return None
    parts = anatomy(checkpoint.config)
    view, _ = fit_parts(view, parts)
    first, *others = (own_table(checkpoint.model, stack.name) for stack in parts.stacks)
    values = own_table(checkpoint.model, STACKS[view.side])
    looks_at_all = view.of(PositionsLook).positions_panel != "sentence"  # that part looks at its own rows only
    if looks_at_all and not np.isfinite(values).all():
        raise not_finite(f"{STACKS[view.side]}.embedding.positions")
    difference = work.compute(
        ("positions", checkpoint.content_hash, view.side, "formula"),
        lambda: study.difference_from_formula(values),
        nbytes=lambda _: 8,
    )
    alone, d_model = not all(np.array_equal(first, other) for other in others), int(values.shape[1])
    whose = stack_of(checkpoint, STACKS[view.side]) if alone else checkpoint.name
    view = view.but(dims=tuple(dim for dim in view.of(PositionsLook).dims if dim < d_model))
    return Table(
        checkpoint, values, not others, alone, whose, view, count_of(view, len(values)), d_model, difference,
        difference < FOLLOWS, values[:MOST_SHIFTED], slot, work,
    )  # fmt: skip


def _of_run(run: Seen) -> Table | None:
    return open_table(run.checkpoint, run.view, run.slot, run.work)


TABLE = PAGE.part("table", say("Table"), _of_run, of_sentence=False)
SIMILARITY = PAGE.part("similarity", say("Similarity"), _of_run, of_sentence=False)
SHIFT = PAGE.part("shift", say("Shift"), _of_run, of_sentence=False)


# ------------------------------------------------------------------------------------------------ the table


@TABLE.picture("position_table", say("Table of positions"), follows="still")
def whole(table: Table) -> Plot:
    """The table as a map; sines and cosines apart if that is asked for."""
    dims = drawn_dims(table.count, table.d_model)
    n_sines = 0
    if table.look.apart and table.follows:
        n_sines = int((dims % 2 == 0).sum())
        dims = np.concatenate([dims[dims % 2 == 0], dims[dims % 2 == 1]])
    fewer = ""
    if len(dims) < table.d_model:
        fewer = say("{n} of {all:,} dimensions, in evenly spread pairs", n=len(dims), all=table.d_model)
    spec = position_table_spec(
        table.values[: table.count, dims],
        positions=range(table.count),
        dimensions=dims.tolist(),
        title=say("Table of positions: {whose}", whose=table.whose),
        note=left_out(table.count, len(table.values), fewer),
        n_sines=n_sines,
    )
    alt = say(
        "Heat map of the table of positions ({whose}), one row per position, one column per dimension.",
        whose=table.whose,
    )
    return Plot(spec=spec, alt=alt, fit=True)


def drawn_dims(n_positions: int, d_model: int) -> np.ndarray:
    """The dimensions, from 0 and ascending, that a map of so many rows has room for: all, or every nth pair."""
    step = -(-n_positions * d_model // MOST_CELLS)
    dims = np.arange(d_model)
    return dims[(dims // 2) % step == 0]


def left_out(n: int, count: int, fewer: str) -> str:
    """What a map of the first n positions has no room for, with what is said of its columns; "" if it has all."""
    said: list[str] = [say("the first {n} of {all:,} positions", n=n, all=count)] if n < count else []
    said += [fewer] if fewer else []
    return say("Drawn: {parts}.", parts=joined("; ", said)) if said else ""


@TABLE.picture("position_curves", say("Single dimensions"), follows="still")
def curves(table: Table) -> Plot:
    """Some dimensions beside the formula's."""
    dims, lengths = list(table.dims), study.wavelengths(table.d_model)
    spec = position_curves_spec(
        table.values[: table.count, dims],
        study.formula(table.count, table.d_model)[:, dims],
        dimensions=dims,
        notes=[_wave(dim, short(lengths[dim // 2])) for dim in dims],
        title=curves.title,
    )
    alt = say("Dimensions {dimensions} of the table for {n} positions, next to the formula.",
              dimensions=joined(", ", map(str, dims)), n=table.count)  # fmt: skip
    return Plot(spec=spec, alt=alt)


def _wave(dim: int, length: str) -> str:
    """What the formula has in a dimension."""
    if dim % 2:
        return say("cosine, wavelength {length}", length=length)
    return say("sine, wavelength {length}", length=length)


@TABLE.picture("position_waves", say("Wavelengths"), follows="still")
def waves(table: Table) -> Plot | None:
    """The wavelength of each dimension, the formula's and the strongest one."""
    found = table.waves
    if found is None:
        return None
    n = min(len(table.values), MOST_MEASURED)
    spec = wavelengths_spec(
        study.wavelengths(table.d_model), found.period, found.share, n_positions=n, title=waves.title
    )
    alt = say(
        "The wavelength of each dimension in the formula, and of its strongest wave in {whose}, on a logarithmic "
        "axis.",
        whose=table.whose,
    )
    return Plot(spec=spec, alt=alt)


# ------------------------------------------------------------------------------------------------ similarity


@SIMILARITY.picture("position_similarity", say("Similarity of positions"), follows="still")
def similarity(table: Table) -> Plot:
    """How much each position resembles each other."""
    step = -(-table.count // int(MOST_CELLS**0.5))
    spec = position_similarity_spec(
        table.similar[::step, ::step],
        positions=range(0, table.count, step),
        title=say("Similarity of positions: {whose}", whose=table.whose),
        value_name=table.measure,
        note="" if step == 1 else say("Only 1 in {step} positions is drawn.", step=step),
    )
    alt = say("Similarity ({name}) of each pair of positions, {whose}.", name=table.measure,
              whose=table.whose)  # fmt: skip
    return Plot(spec=spec, alt=alt, fit=True)


@SIMILARITY.picture("position_distance", say("Similarity by distance"), follows="still")
def distance(table: Table) -> Plot:
    """The same by the distance of two positions."""
    found = table.by_distance
    spec = similarity_by_distance_spec(
        found.mean, found.low, found.high, title=distance.title, value_name=table.measure
    )
    alt = say(
        "Mean, minimum and maximum of the similarity ({name}) between two positions at each distance, {whose}.",
        name=table.measure,
        whose=table.whose,
    )
    return Plot(spec=spec, alt=alt, fit=True)


# ------------------------------------------------------------------------------------------------ a shift


@SHIFT.picture("position_points", say("A pair of dimensions, shifted"), follows="still")
def points(table: Table) -> Plot | None:
    """One pair after a shift, and what a rotation makes of it, or else the best linear map."""
    if not table.shifts:
        return None
    values, pair, shift = table.measured, table.pair, table.shift
    columns = slice(2 * pair, 2 * pair + 2)
    after, sine, cosine = values[shift:][:MOST_DRAWN, columns], 2 * pair, 2 * pair + 1
    title = say("Pair {sine}, {cosine} shifted by {shift}", sine=sine, cosine=cosine, shift=shift)
    made = study.rotate(values[:-shift], shift) if table.follows else table.fit.predicted
    note = ""
    if len(made) > MOST_DRAWN:
        note = say(
            "Only positions p from 0 to {last} are drawn, out of 0 to {end}.", last=MOST_DRAWN - 1, end=len(made) - 1
        )
    if table.follows:
        spec = shift_points_spec(
            after, made[:MOST_DRAWN, columns], pair=pair, shift=shift, title=title, angle=angle(table), note=note
        )
        alt = say(
            "The values of dimensions {sine} and {cosine} after a shift by {shift}, and their values before the "
            "shift, rotated.",
            sine=sine,
            cosine=cosine,
            shift=shift,
        )
        return Plot(spec=spec, alt=alt, fit=True)
    spec = shift_points_spec(
        after, made[:MOST_DRAWN, columns], pair=pair, shift=shift, title=title,
        held_out=table.fit.held_out[:MOST_DRAWN], unpaired=True, note=note,
    )  # fmt: skip
    alt = say("The values of dimensions {sine} and {cosine} after a shift by {shift}, and the values that the best "
              "linear map gives.",
              sine=sine, cosine=cosine, shift=shift)  # fmt: skip
    return Plot(spec=spec, alt=alt, fit=True)


def angle(table: Table) -> float:
    """By how much the shift turns the pair."""
    return float(table.shift * study.frequencies(table.d_model)[table.pair])


@SHIFT.picture("position_errors", say("Error by shift"), follows="still")
def errors(table: Table) -> Plot | None:
    """How far a rotation, or else the best linear map, misses the table by shift; a click means a shift."""
    if not table.shifts:
        return None
    values, shift, turns = table.measured, table.shift, table.follows
    shifts = spread_shifts(table.most_shift, shift, most=MOST_ROTATIONS if turns else MOST_FITS)

    def work() -> list[ErrorLine]:
        if not turns:
            return _fits(values, shifts)
        return [ErrorLine("Rₖ·PE(p)", [float(study.rotation_errors(values, k).max()) for k in shifts])]

    lines = table.work.compute(
        ("positions", table.checkpoint.content_hash, table.view.side, "rotations" if turns else "fits", shifts),
        work,
        nbytes=lambda lines: 8 * len(lines) * len(shifts),
    )
    spec = shift_errors_spec(
        shifts, lines, shift=shift, log=turns, title=errors.title,
        y_title=say("Largest difference (log)") if turns else say("Relative error"),
    )  # fmt: skip
    alt = say(
        "Relative error of the best linear map for each shift, on fitted positions and on held-out positions, "
        "{whose}.",
        whose=table.whose,
    )
    if turns:
        alt = say("The largest difference between Rₖ PE(p) and PE(p+k) for shifts up to {most}, {whose}.",
                  most=shifts[-1], whose=table.whose)  # fmt: skip
    return Plot(spec=spec, alt=alt, fit=True, clicked=into("shift", place_of))


def _fits(values: np.ndarray, shifts: tuple[int, ...]) -> list[ErrorLine]:
    """Errors of the best linear maps by shift, of a table and of the formula's at the same size."""
    own = [study.fit_shift(values, k) for k in shifts]
    sinusoids = study.formula(*values.shape)
    formula = [study.fit_shift(sinusoids, k) for k in shifts]
    return [
        ErrorLine(say("fitted positions"), [fit.fitted_error for fit in own]),
        ErrorLine(say("held-out positions"), [fit.held_out_error for fit in own]),
        ErrorLine(say("held-out positions, predicting the mean"), [fit.constant_error for fit in own]),
        ErrorLine(say("held-out positions, sinusoid table"), [fit.held_out_error for fit in formula]),
    ]


def spread_shifts(largest: int, chosen: int, *, most: int) -> tuple[int, ...]:
    """Shifts from 1 to the largest, evenly spread when there are more than `most`, and the chosen one."""
    places = np.linspace(1, largest, min(most, largest)).round().astype(int).tolist()
    return tuple(sorted({*places, chosen}))
