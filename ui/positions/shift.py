"""What a shift of k positions does to a table: a rotation for sinusoids, else the best linear map and its error."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import streamlit as st

import charts
from charts.position_shift import (
    HOW_TO_READ_MAP,
    HOW_TO_READ_MAP_ERRORS,
    HOW_TO_READ_ROTATION,
    HOW_TO_READ_ROTATION_ERRORS,
    ErrorLine,
)
from charts.theme import Spec
from transformer.analysis import position_study as study
from ui.positions import controls
from ui.positions.controls import Table
from ui.runs import loading
from ui.shared import drawing
from ui.shared.clicks import on_click, place_of
from ui.shared.numbers import digits
from ui.state import session

POINTS = "position_points"
ERRORS = "position_errors"

MOST_DRAWN = 64  # positions, as more points cover each other
MOST_FITS = 24
MOST_ROTATIONS = 64


def draw(table: Table) -> None:
    """Draw what a shift of k positions does to the table."""
    if table.most_shift < 1 or table.pair < 0:
        st.info(f"{drawing.plain(table.name)} has too few positions or dimensions to look at a shift.")
        return
    controls.choose_shift(table)
    shift = min(table.view.shift, table.most_shift)
    draw_points, draw_errors = (_rotation, _rotation_errors) if table.follows else (_map, _map_errors)
    said = st.container()
    left, right = st.columns(2, gap="large")
    with left:
        sentence = draw_points(table, shift)
    with right:
        draw_errors(table, shift)
    said.markdown(drawing.plain(sentence))


def _left_out(rows: np.ndarray) -> str:
    return f"Drawn: p from 0 to {MOST_DRAWN - 1} of {len(rows) - 1}." if len(rows) > MOST_DRAWN else ""


def _rotation(table: Table, shift: int) -> str:
    values, pair = table.measured, table.pair
    columns = slice(2 * pair, 2 * pair + 2)
    turned = study.rotate(values[:-shift], shift)
    angle = float(shift * study.frequencies(table.d_model)[pair])
    figure = charts.shift_points_spec(
        values[shift:][:MOST_DRAWN, columns],
        turned[:MOST_DRAWN, columns],
        pair=pair,
        shift=shift,
        title=f"Pair {2 * pair}, {2 * pair + 1} shifted by {shift}",
        angle=angle,
        note=_left_out(turned),
    )
    alt = (
        f"The values of dimensions {2 * pair} and {2 * pair + 1} after a shift by {shift}, and before it but turned."
    )
    drawing.chart(figure, key=table.key(POINTS), alt=alt, how_to_read=HOW_TO_READ_ROTATION)
    error = float(study.rotation_errors(values, shift).max())
    counted = f"all {len(values) - shift}"
    if len(values) < len(table.values):
        counted = f"the first {len(values) - shift} of {len(table.values) - shift:,}"
    odd = (
        f" Dimension {table.d_model - 1} is a sine without a cosine; it cannot be turned and is left out."
        if table.d_model % 2
        else ""
    )
    return (
        f"A shift by {shift} turns this pair by k·wᵢ = {angle:.4g} rad = {np.degrees(angle):,.4g}°, whatever p is. "
        f"Rₖ does so for all {table.d_model // 2} pairs, each by its own angle; over {counted} "
        f"positions p Rₖ·PE(p) differs from PE(p+{shift}) by at most {digits(error)}.{odd}"
    )


def _rotation_errors(table: Table, shift: int) -> None:
    values = table.measured
    shifts = spread_shifts(table.most_shift, shift, most=MOST_ROTATIONS)
    errors = loading.runner().compute(
        ("positions", table.content_hash, table.side, "rotations", shifts),
        lambda: [float(study.rotation_errors(values, k).max()) for k in shifts],
        nbytes=lambda errors: 8 * len(errors),
    )
    figure = charts.shift_errors_spec(
        shifts,
        [ErrorLine("Rₖ·PE(p)", errors)],
        shift=shift,
        log=True,
        y_title="Largest difference (log)",
        title="Error by shift",
    )
    alt = f"The largest difference between Rₖ PE(p) and PE(p+k) for shifts up to {shifts[-1]}, {table.whose}."
    _draw_errors(table, figure, alt, HOW_TO_READ_ROTATION_ERRORS)


@dataclass(frozen=True)
class _Fits:
    """Errors of the best linear maps by shift, of a table and of the formula's at the same size."""

    fitted: list[float]
    held_out: list[float]
    constant: list[float]
    formula: list[float]


def _fits(values: np.ndarray, shifts: tuple[int, ...]) -> _Fits:
    own = [study.fit_shift(values, k) for k in shifts]
    sinusoids = study.formula(*values.shape)
    return _Fits(
        [fit.fitted_error for fit in own],
        [fit.held_out_error for fit in own],
        [fit.constant_error for fit in own],
        [study.fit_shift(sinusoids, k).held_out_error for k in shifts],
    )


def _map(table: Table, shift: int) -> str:
    values, pair = table.measured, table.pair
    columns = slice(2 * pair, 2 * pair + 2)
    fit = study.fit_shift(values, shift)
    figure = charts.shift_points_spec(
        values[shift:][:MOST_DRAWN, columns],
        fit.predicted[:MOST_DRAWN, columns],
        pair=pair,
        shift=shift,
        title=f"Pair {2 * pair}, {2 * pair + 1} shifted by {shift}",
        held_out=fit.held_out[:MOST_DRAWN],
        unpaired=True,
        note=_left_out(fit.predicted),
    )
    alt = f"Dimensions {2 * pair} and {2 * pair + 1} after a shift by {shift}, and what the best linear map gives."
    drawing.chart(figure, key=table.key(POINTS), alt=alt, how_to_read=HOW_TO_READ_MAP)
    held_out = len(fit.held_out) - fit.n_fitted
    enough = fit.n_fitted > table.d_model
    exact = (
        "" if enough else f" (with {fit.n_fitted} positions in {table.d_model} dimensions such a map always exists)"
    )
    rotation = float(study.rotation_errors(values, shift).max())
    return (
        f"The formula's rotation does not shift this table: Rₖ·PE(p) misses PE(p+{shift}) by up to {rotation:.2f}. "
        f"The best linear map M was fitted on every second position, {fit.n_fitted} of them, and misses those by "
        f"{fit.fitted_error:.0%}{exact}; the {held_out} positions held out it misses by {fit.held_out_error:.0%}, "
        f"where answering the mean of the fitted ones misses by {fit.constant_error:.0%}."
    )


def _map_errors(table: Table, shift: int) -> None:
    values = table.measured
    shifts = spread_shifts(table.most_shift, shift, most=MOST_FITS)
    fits = loading.runner().compute(
        ("positions", table.content_hash, table.side, "fits", shifts),
        lambda: _fits(values, shifts),
        nbytes=lambda fits: 32 * len(fits.fitted),
    )
    lines = [
        ErrorLine("fitted positions", fits.fitted),
        ErrorLine("held-out positions", fits.held_out),
        ErrorLine("held out, mean as the answer", fits.constant),
        ErrorLine("held out, sinusoids of this size", fits.formula),
    ]
    figure = charts.shift_errors_spec(
        shifts, lines, shift=shift, log=False, y_title="Relative error", title="Error by shift"
    )
    alt = f"Relative error of the best linear map by shift, where it was fitted and where not, {table.whose}."
    _draw_errors(table, figure, alt, HOW_TO_READ_MAP_ERRORS)


def _draw_errors(table: Table, figure: Spec, alt: str, how_to_read: str) -> None:
    slot, key = table.slot, table.key(ERRORS)
    follow = on_click(key, place_of, lambda shift: session.replace(slot, shift=shift))
    drawing.chart(figure, key=key, alt=alt, how_to_read=how_to_read, on_click=follow)


def spread_shifts(largest: int, chosen: int, *, most: int) -> tuple[int, ...]:
    """Shifts from 1 to the largest, evenly spread when there are more than `most`, and the chosen one."""
    places = np.linspace(1, largest, min(most, largest)).round().astype(int).tolist()
    return tuple(sorted({*places, chosen}))
