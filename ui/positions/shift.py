"""What a shift of k positions does to a table: a rotation for sinusoids, else the best linear map and its error."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

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
from ui.shared.clicks import on_click
from ui.shared.door import st
from ui.shared.numbers import digits
from ui.state import session
from ui.state.click import place_of
from words import joined, say

POINTS = "position_points"
ERRORS = "position_errors"

MOST_DRAWN = 64  # positions, as more points cover each other
MOST_FITS = 24
MOST_ROTATIONS = 64


def draw(table: Table) -> None:
    """Draw what a shift of k positions does to the table."""
    if table.most_shift < 1 or table.pair < 0:
        name = drawing.plain(table.name)
        st.info(say("{name} has too few positions or dimensions to look at a shift.", name=name))
        return
    controls.choose_shift(table)
    shift = min(table.view.shift, table.most_shift)
    draw_points, draw_errors = (_rotation, _rotation_errors) if table.follows else (_map, _map_errors)
    left, right = st.columns(2, gap="large")
    with left:
        sentence = draw_points(table, shift)
    with right:
        draw_errors(table, shift)
    st.markdown(drawing.plain(sentence))


def _left_out(rows: np.ndarray) -> str:
    if len(rows) <= MOST_DRAWN:
        return ""
    return say("Drawn: p from 0 to {last} of {end}.", last=MOST_DRAWN - 1, end=len(rows) - 1)


def _title(pair: int, shift: int) -> str:
    return say("Pair {sine}, {cosine} shifted by {shift}", sine=2 * pair, cosine=2 * pair + 1, shift=shift)


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
        title=_title(pair, shift),
        angle=angle,
        note=_left_out(turned),
    )
    alt = say(
        "The values of dimensions {sine} and {cosine} after a shift by {shift}, and before it but turned.",
        sine=2 * pair,
        cosine=2 * pair + 1,
        shift=shift,
    )
    drawing.chart(
        figure, key=table.key(POINTS), alt=alt, how_to_read=HOW_TO_READ_ROTATION, fit=True, of_sentence=False
    )
    return joined(" ", _what_turns(table, shift, angle))


def _what_turns(table: Table, shift: int, angle: float) -> Iterator[str]:
    """How a shift turns the pair, how exactly it turns all pairs, and what has no pair."""
    yield say(
        "A shift by {shift} turns this pair by k·wᵢ = {radians:.4g} rad = {degrees:,.4g}°, whatever p is.",
        shift=shift,
        radians=angle,
        degrees=np.degrees(angle),
    )
    error = digits(float(study.rotation_errors(table.measured, shift).max()))
    n, n_pairs = len(table.measured) - shift, table.d_model // 2
    if n + shift == len(table.values):
        yield say(
            "Rₖ does so for all {pairs} pairs, each by its own angle; over all {n} positions p Rₖ·PE(p) differs from "
            "PE(p+{shift}) by at most {error}.",
            pairs=n_pairs,
            n=n,
            shift=shift,
            error=error,
        )
    else:
        yield say(
            "Rₖ does so for all {pairs} pairs, each by its own angle; over the first {n} of {all:,} positions p "
            "Rₖ·PE(p) differs from PE(p+{shift}) by at most {error}.",
            pairs=n_pairs,
            n=n,
            all=len(table.values) - shift,
            shift=shift,
            error=error,
        )
    if table.d_model % 2:
        yield say(
            "Dimension {last} is a sine without a cosine; it cannot be turned and is left out.",
            last=table.d_model - 1,
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
        y_title=say("Largest difference (log)"),
        title=say("Error by shift"),
    )
    alt = say(
        "The largest difference between Rₖ PE(p) and PE(p+k) for shifts up to {most}, {whose}.",
        most=shifts[-1],
        whose=table.whose,
    )
    _draw_errors(table, figure, alt, HOW_TO_READ_ROTATION_ERRORS)


def _fits(values: np.ndarray, shifts: tuple[int, ...]) -> list[ErrorLine]:
    """Errors of the best linear maps by shift, of a table and of the formula's at the same size."""
    own = [study.fit_shift(values, k) for k in shifts]
    sinusoids = study.formula(*values.shape)
    formula = [study.fit_shift(sinusoids, k) for k in shifts]
    return [
        ErrorLine(say("fitted positions"), [fit.fitted_error for fit in own]),
        ErrorLine(say("held-out positions"), [fit.held_out_error for fit in own]),
        ErrorLine(say("held out, mean as the answer"), [fit.constant_error for fit in own]),
        ErrorLine(say("held out, sinusoids of this size"), [fit.held_out_error for fit in formula]),
    ]


def _map(table: Table, shift: int) -> str:
    values, pair = table.measured, table.pair
    columns = slice(2 * pair, 2 * pair + 2)
    fit = study.fit_shift(values, shift)
    figure = charts.shift_points_spec(
        values[shift:][:MOST_DRAWN, columns],
        fit.predicted[:MOST_DRAWN, columns],
        pair=pair,
        shift=shift,
        title=_title(pair, shift),
        held_out=fit.held_out[:MOST_DRAWN],
        unpaired=True,
        note=_left_out(fit.predicted),
    )
    alt = say(
        "Dimensions {sine} and {cosine} after a shift by {shift}, and what the best linear map gives.",
        sine=2 * pair,
        cosine=2 * pair + 1,
        shift=shift,
    )
    drawing.chart(figure, key=table.key(POINTS), alt=alt, how_to_read=HOW_TO_READ_MAP, fit=True, of_sentence=False)
    missed = say(
        "The formula's rotation does not shift this table: Rₖ·PE(p) misses PE(p+{shift}) by up to {error:.2f}.",
        shift=shift,
        error=float(study.rotation_errors(values, shift).max()),
    )
    return joined(" ", [missed, _what_fits(fit, table.d_model)])


def _what_fits(fit: study.ShiftFit, d_model: int) -> str:
    n_fitted, n_held_out = fit.n_fitted, len(fit.held_out) - fit.n_fitted
    if n_fitted > d_model:
        return say(
            "The best linear map M was fitted on every second position, {n_fitted} of them, and misses those by "
            "{error:.0%}; the {n_held_out} positions held out it misses by {held_out:.0%}, where answering the mean "
            "of the fitted ones misses by {mean:.0%}.",
            n_fitted=n_fitted,
            error=fit.fitted_error,
            n_held_out=n_held_out,
            held_out=fit.held_out_error,
            mean=fit.constant_error,
        )
    return say(
        "The best linear map M was fitted on every second position, {n_fitted} of them, and misses those by "
        "{error:.0%} (with {n_fitted} positions in {dimensions} dimensions such a map always exists); the "
        "{n_held_out} positions held out it misses by {held_out:.0%}, where answering the mean of the fitted ones "
        "misses by {mean:.0%}.",
        n_fitted=n_fitted,
        error=fit.fitted_error,
        dimensions=d_model,
        n_held_out=n_held_out,
        held_out=fit.held_out_error,
        mean=fit.constant_error,
    )


def _map_errors(table: Table, shift: int) -> None:
    values = table.measured
    shifts = spread_shifts(table.most_shift, shift, most=MOST_FITS)
    lines = loading.runner().compute(
        ("positions", table.content_hash, table.side, "fits", shifts),
        lambda: _fits(values, shifts),
        nbytes=lambda _: 32 * len(shifts),
    )
    figure = charts.shift_errors_spec(
        shifts, lines, shift=shift, log=False, y_title=say("Relative error"), title=say("Error by shift")
    )
    alt = say(
        "Relative error of the best linear map by shift, where it was fitted and where not, {whose}.",
        whose=table.whose,
    )
    _draw_errors(table, figure, alt, HOW_TO_READ_MAP_ERRORS)


def _draw_errors(table: Table, figure: Spec, alt: str, how_to_read: str) -> None:
    slot, key = table.slot, table.key(ERRORS)
    follow = on_click(key, place_of, lambda shift: session.replace(slot, shift=shift))
    drawing.chart(figure, key=key, alt=alt, how_to_read=how_to_read, fit=True, of_sentence=False, on_click=follow)


def spread_shifts(largest: int, chosen: int, *, most: int) -> tuple[int, ...]:
    """Shifts from 1 to the largest, evenly spread when there are more than `most`, and the chosen one."""
    places = np.linspace(1, largest, min(most, largest)).round().astype(int).tolist()
    return tuple(sorted({*places, chosen}))
