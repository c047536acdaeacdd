"""The parts of the Positions page: the table, who resembles whom in it, what a shift does, and the typed sentence."""

from __future__ import annotations

import numpy as np

import charts
from charts.position_waves import HOW_TO_READ_CURVES, HOW_TO_READ_WAVES
from charts.positions import (
    HOW_TO_READ_APART,
    HOW_TO_READ_COSINE,
    HOW_TO_READ_DISTANCE,
    HOW_TO_READ_SIMILARITY,
    HOW_TO_READ_TABLE,
)
from transformer.analysis import position_study as study
from ui.positions import bias, controls, sentence, shift, turning
from ui.positions.controls import Table
from ui.positions.in_attention import Shown
from ui.runs.open_run import OpenRun
from ui.shared import choices, drawing
from ui.shared.door import st
from ui.shared.numbers import digits, short
from words import joined, say, say_n

TABLE = "position_table"
CURVES = "position_curves"
WAVES = "position_waves"
SIMILARITY = "position_similarity"
DISTANCE = "position_distance"

MOST_CELLS = 32_768  # 128 positions of 256 dimensions: 130 kB
MOST_MEASURED = 512  # positions in which waves are looked for


def draw(table: Table | Shown, run: OpenRun | None) -> None:
    """Draw the chosen part.

    Args:
        table: What `position_controls.draw` returned.
        run: The run; only the sentence needs one.
    """
    if isinstance(table, Shown):
        if table.turning is None:
            bias.draw(table, run)
        else:
            turning.draw(table, table.turning, run)
        return
    if table.view.positions_panel == "sentence":
        if run is not None:
            sentence.draw(run)
        return
    if table.note:
        st.caption(drawing.plain(table.note))
    {"table": _table, "similarity": _similarity, "shift": shift.draw}[table.view.positions_panel](table)


# ------------------------------------------------------------------------------------------------ the table


def _table(table: Table) -> None:
    dims = drawn_dims(table.count, table.d_model)
    n_sines = 0
    if table.view.apart and table.follows:
        n_sines = int((dims % 2 == 0).sum())
        dims = np.concatenate([dims[dims % 2 == 0], dims[dims % 2 == 1]])
    figure = charts.position_table_spec(
        table.values[: table.count, dims],
        positions=range(table.count),
        dimensions=dims.tolist(),
        title=say("Table of positions: {whose}", whose=table.whose),
        note=_left_out(table, len(dims)),
        n_sines=n_sines,
    )
    alt = say(
        "The table of positions of {whose} as a map, one row a position, one column a dimension.", whose=table.whose
    )
    read = [HOW_TO_READ_TABLE] + [HOW_TO_READ_APART] * bool(n_sines)
    drawing.chart(figure, key=table.key(TABLE), alt=alt, how_to_read=joined(" ", read), fit=True, of_sentence=False)
    st.markdown(drawing.plain(joined(" ", [_origin(table), _who_has_it(table), _meaning(table)])))
    if table.follows:
        choices.switch(choices.field(table.slot, "apart"), say("Sines and cosines apart"))
    controls.choose_dims(table)
    drawing.beside(lambda: _curves(table), lambda: _waves(table))


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


def _left_out(table: Table, n_dims: int) -> str:
    """What of the table the map has no room for; "" if it has all."""
    left_out = []
    if table.count < len(table.values):
        left_out.append(say("the first {n} of {all:,} positions", n=table.count, all=len(table.values)))
    if n_dims < table.d_model:
        left_out.append(say("{n} of {all:,} dimensions, evenly spread pairs", n=n_dims, all=table.d_model))
    return say("Drawn: {parts}.", parts=joined("; ", left_out)) if left_out else ""


def _origin(table: Table) -> str:
    n_positions, d_model = table.values.shape
    size = say("{positions:,} positions × {dimensions:,} dimensions", positions=n_positions, dimensions=d_model)
    owner = table.name
    if table.alone and table.side == "source":
        owner = say("the encoder of {name}", name=table.name)
    elif table.alone:
        owner = say("the decoder of {name}", name=table.name)
    if not table.learned:
        return say("The table of {owner} is computed, not learned: {size} and no parameter.", owner=owner, size=size)
    return say(
        "The table of {owner} is learned: {size} = {n:,} parameters, trained like any other.",
        owner=owner,
        size=size,
        n=n_positions * d_model,
    )


def _who_has_it(table: Table) -> str:
    if table.only and table.side == "source":
        return say("It is the only one, as this model is an encoder alone.")
    if table.only:
        return say("It is the only one, as this model is a decoder alone.")
    if table.alone:
        return say("The other stack has a table of its own.")
    return say("Encoder and decoder have the same table.")


def _meaning(table: Table) -> str:
    gap = digits(table.difference)
    if table.follows:
        return say(
            "The largest difference between any value and the formula is {gap}: the table is the formula, and the "
            "rest is the rounding of its numbers.",
            gap=gap,
        )
    if not table.learned:
        return say(
            "The largest difference between any value and the paper's formula is {gap}: these are sinusoids, too, of "
            "another formula.",
            gap=gap,
        )
    return say(
        "The largest difference between any value and the formula is {gap}, where the values themselves go up to "
        "{largest:.2f}: this is not the formula. That is no fault: vectors of positions need only tell the positions "
        "apart, in whatever way training found.",
        gap=gap,
        largest=float(np.abs(table.values).max()),
    )


def _curves(table: Table) -> None:
    dims = list(table.dims)
    waves = study.wavelengths(table.d_model)
    figure = charts.position_curves_spec(
        table.values[: table.count, dims],
        study.formula(table.count, table.d_model)[:, dims],
        dimensions=dims,
        notes=[_wave(dim, short(waves[dim // 2])) for dim in dims],
        title=say("Single dimensions"),
    )
    alt = say(
        "Dimensions {dimensions} of the table for {n} positions, beside the formula.",
        dimensions=", ".join(map(str, dims)),
        n=table.count,
    )
    drawing.chart(figure, key=table.key(CURVES), alt=alt, how_to_read=HOW_TO_READ_CURVES, of_sentence=False)


def _wave(dim: int, length: str) -> str:
    """What the formula has in a dimension."""
    if dim % 2:
        return say("cosine, wavelength {length}", length=length)
    return say("sine, wavelength {length}", length=length)


def _waves(table: Table) -> None:
    values = table.values[:MOST_MEASURED]
    if len(values) < 3:
        st.caption(
            say_n("{n} position holds no wave to look for.", "{n} positions hold no wave to look for.", len(values))
        )
        return
    found = study.strongest_waves(values)
    figure = charts.wavelengths_spec(
        study.wavelengths(table.d_model), found.period, found.share, n_positions=len(values), title=say("Wavelengths")
    )
    alt = say(
        "Wavelength of each dimension on a logarithmic axis: the formula's, and the strongest in {whose}.",
        whose=table.whose,
    )
    drawing.chart(figure, key=table.key(WAVES), alt=alt, how_to_read=HOW_TO_READ_WAVES, of_sentence=False)
    said = say(
        "The strongest wave holds {share:.0%} of a dimension's variance on average; of pure noise it would hold "
        "{noise:.0%}, as {n} positions tell only {waves} waves apart.",
        share=float(found.share.mean()),
        noise=found.noise,
        n=len(values),
        waves=found.n_waves,
    )
    st.caption(drawing.plain(said))


# ------------------------------------------------------------------------------------------------ similarity


def _similarity(table: Table) -> None:
    cosine = table.view.cosine
    name = say("cosine") if cosine else "p·q"
    values = table.values[: table.count]
    similar = study.similarity(values, cosine=cosine)
    spread = study.by_distance(similar)
    st.markdown(drawing.plain(_what_resembles(values, spread, cosine=cosine)))
    step = -(-table.count // int(MOST_CELLS**0.5))
    shown = range(0, table.count, step)
    left, right = st.columns(2, gap="large")
    with left:
        figure = charts.position_similarity_spec(
            similar[::step, ::step],
            positions=shown,
            title=say("Similarity of positions: {whose}", whose=table.whose),
            value_name=name,
            note="" if step == 1 else say("Drawn: 1 in {step} positions.", step=step),
        )
        alt = say("How much each position resembles each other, by {name}, {whose}.", name=name, whose=table.whose)
        drawing.chart(
            figure,
            key=table.key(SIMILARITY),
            alt=alt,
            how_to_read=HOW_TO_READ_COSINE if cosine else HOW_TO_READ_SIMILARITY,
            fit=True,
            of_sentence=False,
        )
    with right:
        figure = charts.similarity_by_distance_spec(
            spread.mean, spread.low, spread.high, title=say("Similarity by distance"), value_name=name
        )
        alt = say(
            "Mean, least and largest {name} of two positions by their distance, {whose}.",
            name=name,
            whose=table.whose,
        )
        drawing.chart(
            figure, key=table.key(DISTANCE), alt=alt, how_to_read=HOW_TO_READ_DISTANCE, fit=True, of_sentence=False
        )


def _what_resembles(values: np.ndarray, spread: study.ByDistance, *, cosine: bool) -> str:
    lengths = np.linalg.norm(values.astype(np.float64), axis=1)
    name, most = say("cosine") if cosine else "p·q", digits(spread.spread)
    by_distance = spread.spread < 1e-4 * max(1e-12, float(np.abs(spread.mean).max()))
    said = [
        say(
            "At the same distance {name} differs by at most {most}: only the distance between two positions counts, "
            "not where they are.",
            name=name,
            most=most,
        )
        if by_distance
        else say(
            "At the same distance {name} differs by at most {most}, so it depends on where two positions are and not "
            "on their distance alone.",
            name=name,
            most=most,
        )
    ]
    if np.ptp(lengths) <= 0.01:
        said.append(say("All vectors are {length:.2f} long.", length=lengths.mean()))
    else:
        said.append(say("The vectors are {least:.2f} to {most:.2f} long.", least=lengths.min(), most=lengths.max()))
        said += [] if by_distance or cosine else [say("The cosine leaves the lengths out.")]
    return joined(" ", said)
