"""Pictures of the Positions page's table: values and waves, similarity of positions, and what a shift does."""

import numpy as np

from glassformer.charts import theme
from glassformer.charts.grammar import note, stroke, upright
from glassformer.charts.marks import Axis, Numbers, Places, Scale, Series, heat, lines
from glassformer.charts.positions import DIMENSION_AXIS, POSITION_AXIS, shift_points_spec
from glassformer.charts.theme import Spec, literal
from glassformer.positions.positions_page import MOST_CELLS, PAGE, PositionTable, height_of, left_out, table_of_run
from glassformer.runs.picture import Plot
from transformer.analysis import positions as study
from transformer.i18n import joined, say
from transformer.i18n.sentence import short

MOST_DRAWN = 64  # positions of a shift, as more points cover each other
HOW_TO_READ_TABLE = say(
    "Each row is the vector PE(p) that is added to the token at position p, counted from 0: token 1 has p = 0. In "
    "the formula, PE(p, 2i) = sin(p / 10000^(2i/d)) and PE(p, 2i+1) = cos(p / 10000^(2i/d)). On a narrow screen "
    "several dimensions share a pixel."
)
HOW_TO_READ_APART = say("The sines (even dimensions) are left of the line, the cosines (odd dimensions) right of it.")
HOW_TO_READ_SIMILARITY = say(
    "Each cell compares the vectors p and q of two positions by their dot product p·q = Σ pⱼqⱼ. If only the "
    "distance between the positions matters, each diagonal has one colour."
)
HOW_TO_READ_COSINE = say(
    "Each cell is the cosine p·q / (‖p‖ ‖q‖) of the angle between the vectors p and q of two positions: 1 means "
    "the same direction, 0 a right angle."
)

HOW_TO_READ_CURVES = say(
    "Each band shows how one dimension varies with position: the solid line is the table's value, the dotted line "
    "the formula's, sin or cos of p / 10000^(2i/d)."
)
HOW_TO_READ_DISTANCE = say(
    "The line is the mean similarity of all pairs of positions at that distance; the band runs from the smallest "
    "to the largest value. If the band has no width, only the distance matters. This holds for the formula: the "
    "dot product of the vectors at positions p and q is Σ cos((p − q) · wᵢ)."
)
_BAND = 88  # pixels for one curve
_OWN, _PAPER = stroke(theme.NEUTRAL_COLOR, 2, "solid", size=5), stroke(theme.MARK_COLOR, 1.5, "dot")

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
    drawn = heat(
        say("Table of positions: {whose}", whose=table.whose),
        Axis(POSITION_AXIS, range(table.count)),
        Axis(DIMENSION_AXIS, dims.tolist()),
        Numbers(say("value"), table.values[: table.count, dims], ".3f"),
        signed=True,
        gaps=(0, 0),
        height=height_of(table.count),
        note=left_out(table.count, len(table.values), fewer),
    )
    if n_sines:
        line = upright(n_sines - 0.5, theme.MARK_COLOR, width=2, dash="", below=False)
        drawn["spec"]["layout"]["shapes"].append(line)
    read = joined(" ", [HOW_TO_READ_TABLE, *[HOW_TO_READ_APART] * bool(n_sines)])
    return Plot(**drawn, how_to_read=read, fit=True)


def drawn_dims(n_positions: int, d_model: int) -> np.ndarray:
    """The dimensions, from 0 and ascending, that a map of so many rows has room for: all, or every nth pair."""
    step = -(-n_positions * d_model // MOST_CELLS)
    dims = np.arange(d_model)
    return dims[(dims // 2) % step == 0]


@TABLE.picture("position_curves", say("Single dimensions"), follows="still")
def curves(table: PositionTable) -> Plot:
    """Some dimensions beside the formula's."""
    dims, lengths = list(table.dims), study.wavelengths(table.d_model)
    values, formula = table.values[: table.count, dims], study.formula(table.count, table.d_model)[:, dims]
    limit = 1.08 * max(1.0, float(np.abs(values).max()))
    bare = {"range": [-limit, limit], "tickvals": [-1, 0, 1], "fixedrange": True, "zeroline": True, "showgrid": False}
    n, scales, series, notes = len(dims), list[Scale](), list[Series](), list[Spec]()
    for place, dim in enumerate(dims):
        name, top, only_once = f"PE(p, {dim})", 1 - place / n, {"showlegend": place == 0}
        title = {"text": name, "font": {"size": 11}, "standoff": 4}
        scales.append(Scale(name, bare | {"title": title, "domain": [top - 0.72 / n, top]}))
        own = {"name": say("table"), "legendgroup": "table"} | only_once
        theirs = {"legendgroup": "formula"} | only_once
        series.append(Series(name, values[:, place], _OWN | own, number="%{y:.4f}", scale=place))
        series.append(Series(say("formula"), formula[:, place], _PAPER | theirs, "lines", "%{y:.4f}", scale=place))
        wave = _wave(dim, short(lengths[dim // 2]))
        text = literal(say("Dimension {dimension}; formula: {said}", dimension=dim, said=wave))
        at = {"xref": "paper", "xanchor": "left", "yref": f"y{place + 1 if place else ''} domain", "yanchor": "bottom"}
        notes.append(note(0, 1, text) | at)
    across = Places(POSITION_AXIS, range(table.count), "p = %{x}", {"nticks": 8})
    drawn = lines(curves.title, across, scales, series, height=130 + _BAND * n, top=98)
    layout = drawn["spec"]["layout"]
    layout["annotations"] = notes
    layout["legend"] |= {"yref": "paper", "y": 1 + 22 / (_BAND * n)}  # above the first band's name
    alt = say("Dimensions {dimensions} of the table for {n} positions, next to the formula.",
              dimensions=joined(", ", map(str, dims)), n=table.count)  # fmt: skip
    return Plot(spec=drawn["spec"], alt=alt, how_to_read=HOW_TO_READ_CURVES)


def _wave(dim: int, length: str) -> str:
    """What the formula has in a dimension."""
    if dim % 2:
        return say("cosine, wavelength {length}", length=length)
    return say("sine, wavelength {length}", length=length)


# ------------------------------------------------------------------------------------------------ similarity


@SIMILARITY.picture("position_similarity", say("Similarity of positions"), follows="still")
def similarity(table: PositionTable) -> Plot:
    """How much each position resembles each other."""
    step = -(-table.count // int(MOST_CELLS**0.5))
    positions, similar = range(0, table.count, step), table.similar[::step, ::step]
    drawn = heat(
        say("Similarity of positions: {whose}", whose=table.whose),
        Axis(POSITION_AXIS, positions),
        Axis(say("Position q"), positions),
        Numbers(table.measure, similar, ".3f"),
        signed=bool(similar.min() < 0),
        limits=None,
        gaps=(0, 0),
        height=440,
        note="" if step == 1 else say("Only 1 in {step} positions is drawn.", step=step),
    )
    return Plot(**drawn, how_to_read=HOW_TO_READ_COSINE if table.look.cosine else HOW_TO_READ_SIMILARITY, fit=True)


@SIMILARITY.picture("position_distance", say("Similarity by distance"), follows="still")
def distance(table: PositionTable) -> Plot:
    """The same by the distance of two positions."""
    found = table.by_distance
    line, edge = stroke(theme.NEUTRAL_COLOR, 2, size=6), {"line": {"width": 0}}
    shade = {"fill": "tonexty", "fillcolor": theme.SCALES["neutral"][1][1]}
    ends = [
        say("from {low:.4g} to {high:.4g}", low=low, high=high) for low, high in zip(found.low, found.high, strict=True)
    ]
    across = Places(
        say("Distance |p − q| (positions)"), range(len(found.mean)), say("distance {distance}", distance="%{x}")
    )
    drawn = lines(
        distance.title,
        across,
        Scale(table.measure, {"zeroline": True, "nticks": 7}),
        [
            Series(say("least"), found.low, edge, "lines", number=""),
            Series(say("largest"), found.high, edge | shade, "lines", number=""),
            Series(say("mean {value}", value=table.measure), found.mean, line, number="%{y:.3f}", texts=ends),
        ],
        height=440,
    )
    alt = say(
        "Mean, minimum and maximum of the similarity ({name}) between two positions at each distance, {whose}.",
        name=table.measure,
        whose=table.whose,
    )
    return Plot(spec=drawn["spec"], alt=alt, how_to_read=HOW_TO_READ_DISTANCE, fit=True)


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
