"""The page Positions, and the pictures of a table of positions: itself, who resembles whom, what a shift does."""

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
from glassformer.positions.positions_page import MOST_CELLS, MOST_MEASURED, PAGE, PositionTable, left_out, table_of_run
from glassformer.runs.picture import Plot
from glassformer.state.click import into, place_of
from transformer.analysis import position_study as study
from transformer.i18n import joined, say
from transformer.i18n.sentence import short

MOST_DRAWN = 64  # positions of a shift, as more points cover each other
MOST_FITS = 24
MOST_ROTATIONS = 64

TABLE = PAGE.part("table", table_of_run, of_sentence=False)
SIMILARITY = PAGE.part("similarity", table_of_run, of_sentence=False)
SHIFT = PAGE.part("shift", table_of_run, of_sentence=False)


# ------------------------------------------------------------------------------------------------ the table


@TABLE.picture("position_table", say("Table of positions"), follows="still")
def whole(table: PositionTable) -> Plot:
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


@TABLE.picture("position_curves", say("Single dimensions"), follows="still")
def curves(table: PositionTable) -> Plot:
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
def waves(table: PositionTable) -> Plot | None:
    """The wavelength of each dimension, the formula's and the strongest one."""
    found = table.waves
    if found is None:
        return None
    n = min(len(table.values), MOST_MEASURED)
    spec = wavelengths_spec(
        study.wavelengths(table.d_model), found.period, found.share, n_positions=n, title=waves.title
    )
    alt = say(
        "The wavelength of each dimension in the formula, and of its strongest wave in {whose}, on a logarithmic axis.",
        whose=table.whose,
    )
    return Plot(spec=spec, alt=alt)


# ------------------------------------------------------------------------------------------------ similarity


@SIMILARITY.picture("position_similarity", say("Similarity of positions"), follows="still")
def similarity(table: PositionTable) -> Plot:
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
def distance(table: PositionTable) -> Plot:
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
def points(table: PositionTable) -> Plot | None:
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


def angle(table: PositionTable) -> float:
    """By how much the shift turns the pair."""
    return float(table.shift * study.frequencies(table.d_model)[table.pair])


@SHIFT.picture("position_errors", say("Error by shift"), follows="still")
def errors(table: PositionTable) -> Plot | None:
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
        "Relative error of the best linear map for each shift, on fitted positions and on held-out positions, {whose}.",
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
