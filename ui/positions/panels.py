"""The parts of the Positions page: the table, who resembles whom in it, what a shift does, and the typed sentence."""

from __future__ import annotations

import numpy as np
import streamlit as st

import charts
from charts.position_waves import HOW_TO_READ_CURVES, HOW_TO_READ_WAVES
from charts.positions import (
    HOW_TO_READ_COSINE,
    HOW_TO_READ_DISTANCE,
    HOW_TO_READ_SIMILARITY,
    HOW_TO_READ_TABLE,
)
from transformer.analysis import position_study as study
from ui.positions import controls, sentence, shift
from ui.positions.controls import Table
from ui.runs.open_run import OpenRun
from ui.runs.sides import STACKS
from ui.shared import drawing
from ui.shared.numbers import digits, short

TABLE = "position_table"
CURVES = "position_curves"
WAVES = "position_waves"
SIMILARITY = "position_similarity"
DISTANCE = "position_distance"

MOST_CELLS = 32_768  # 128 positions of 256 dimensions: 130 kB
MOST_MEASURED = 512  # positions in which waves are looked for


def draw(table: Table, run: OpenRun | None) -> None:
    """Draw the chosen part.

    Args:
        table: What `position_controls.draw` returned.
        run: The run; only the sentence needs one.
    """
    if table.view.positions_panel == "sentence":
        if run is not None:
            sentence.draw(run)
        return
    {"table": _table, "similarity": _similarity, "shift": shift.draw}[table.view.positions_panel](table)


# ------------------------------------------------------------------------------------------------ the table


def _table(table: Table) -> None:
    st.markdown(drawing.plain(_what_it_is(table)))
    dims = drawn_dims(table.count, table.d_model)
    left_out = (
        [] if table.count == len(table.values) else [f"the first {table.count} of {len(table.values):,} positions"]
    )
    left_out += (
        [] if len(dims) == table.d_model else [f"{len(dims)} of {table.d_model:,} dimensions, evenly spread pairs"]
    )
    figure = charts.position_table_spec(
        table.values[: table.count, dims],
        positions=range(table.count),
        dimensions=dims.tolist(),
        title=f"Table of positions: {table.whose}",
        note=f"Drawn: {'; '.join(left_out)}." if left_out else "",
    )
    alt = f"The table of positions of {table.whose} as a map, one row a position, one column a dimension."
    drawing.chart(figure, key=table.key(TABLE), alt=alt, how_to_read=HOW_TO_READ_TABLE)
    controls.choose_dims(table)
    left, right = st.columns(2, gap="large")
    with left:
        _curves(table)
    with right:
        _waves(table)


def drawn_dims(n_positions: int, d_model: int) -> np.ndarray:
    """The dimensions that a map has room for: all, or every nth pair.

    Args:
        n_positions: Rows of the map.
        d_model: Width of the table.

    Returns:
        Dimensions from 0, ascending.
    """
    step = -(-n_positions * d_model // MOST_CELLS)
    dims = np.arange(d_model)
    return dims[(dims // 2) % step == 0]


def _what_it_is(table: Table) -> str:
    n_positions, d_model = table.values.shape
    size = f"{n_positions:,} positions × {d_model:,} dimensions"
    origin = (
        f"learned: {size} = {n_positions * d_model:,} parameters, trained like any other"
        if table.learned
        else f"computed, not learned: {size} and no parameter"
    )
    shared = "The other stack has a table of its own." if table.alone else "Encoder and decoder have the same table."
    gap = f"The largest difference between any value and the formula is {digits(table.difference)}"
    if table.follows:
        meaning = f"{gap}: the table is the formula, and the rest is the rounding of its numbers."
    else:
        largest = float(np.abs(table.values).max())
        meaning = (
            f"{gap}, where the values themselves go up to {largest:.2f}: this is not the formula. That is no fault: "
            "vectors of positions need only tell the positions apart, in whatever way training found."
        )
    owner = f"the {STACKS[table.side]} of {table.name}" if table.alone else table.name
    return f"The table of {owner} is {origin}. {shared} {meaning}"


def _curves(table: Table) -> None:
    dims = list(table.dims)
    waves = study.wavelengths(table.d_model)
    figure = charts.position_curves_spec(
        table.values[: table.count, dims],
        study.formula(table.count, table.d_model)[:, dims],
        dimensions=dims,
        notes=[f"{('cosine' if dim % 2 else 'sine')}, wavelength {short(waves[dim // 2])}" for dim in dims],
        title="Single dimensions",
    )
    alt = f"Dimensions {', '.join(map(str, dims))} of the table for {table.count} positions, beside the formula."
    drawing.chart(figure, key=table.key(CURVES), alt=alt, how_to_read=HOW_TO_READ_CURVES)


def _waves(table: Table) -> None:
    values = table.values[:MOST_MEASURED]
    if len(values) < 3:
        st.caption(f"{len(values)} positions hold no wave to look for.")
        return
    found = study.strongest_waves(values)
    figure = charts.wavelengths_spec(
        study.wavelengths(table.d_model), found.period, found.share, n_positions=len(values), title="Wavelengths"
    )
    alt = f"Wavelength of each dimension on a logarithmic axis: the formula's, and the strongest in {table.whose}."
    drawing.chart(figure, key=table.key(WAVES), alt=alt, how_to_read=HOW_TO_READ_WAVES)
    share = float(found.share.mean())
    st.caption(
        drawing.plain(
            f"The strongest wave holds {share:.0%} of a dimension's variance in the mean; of pure noise it would "
            f"hold {found.noise:.0%}, as {len(values)} positions tell only {found.n_waves} waves apart."
        )
    )


# ------------------------------------------------------------------------------------------------ similarity


def _similarity(table: Table) -> None:
    cosine = table.view.cosine
    name = "cosine" if cosine else "p·q"
    values = table.values[: table.count]
    similar = study.similarity(values, cosine=cosine)
    spread = study.by_distance(similar)
    st.markdown(drawing.plain(_what_resembles(values, spread, name)))
    step = -(-table.count // int(MOST_CELLS**0.5))
    shown = range(0, table.count, step)
    left, right = st.columns(2, gap="large")
    with left:
        figure = charts.position_similarity_spec(
            similar[::step, ::step],
            positions=shown,
            title=f"Similarity of positions: {table.whose}",
            value_name=name,
            note=""
            if step == 1
            else f"Drawn: every {step}th position."
            if step > 3
            else f"Drawn: 1 in {step} positions.",
        )
        alt = f"How much each position resembles each other, by {name}, {table.whose}."
        drawing.chart(
            figure,
            key=table.key(SIMILARITY),
            alt=alt,
            how_to_read=HOW_TO_READ_COSINE if cosine else HOW_TO_READ_SIMILARITY,
        )
    with right:
        figure = charts.similarity_by_distance_spec(
            spread.mean, spread.low, spread.high, title="Similarity by distance", value_name=name
        )
        alt = f"Mean, least and largest {name} of two positions by their distance, {table.whose}."
        drawing.chart(figure, key=table.key(DISTANCE), alt=alt, how_to_read=HOW_TO_READ_DISTANCE)


def _what_resembles(values: np.ndarray, spread: study.ByDistance, name: str) -> str:
    lengths = np.linalg.norm(values.astype(np.float64), axis=1)
    from_to = f"The vectors are {lengths.min():.2f} to {lengths.max():.2f} long."
    lengths_said = from_to if np.ptp(lengths) > 0.01 else f"All vectors are {lengths.mean():.2f} long."
    size = max(1e-12, float(np.abs(spread.mean).max()))
    said = f"At the same distance {name} differs by at most {digits(spread.spread)}"
    if spread.spread < 1e-4 * size:
        return f"{said}: only the distance between two positions counts, not where they are. {lengths_said}"
    why = f"{said}, so it depends on where two positions are and not on their distance alone. {lengths_said}"
    return why + (" The cosine leaves the lengths out." if name != "cosine" and np.ptp(lengths) > 0.01 else "")
