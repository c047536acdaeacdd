"""Pictures of positions without a sentence: the table, similarity and shift; rotations and biases by distance."""

from dataclasses import replace
from typing import Any

import numpy as np

from glassformer.charts import theme
from glassformer.charts.grammar import DOTTED, note, stroke, upright
from glassformer.charts.hover import on_lines
from glassformer.charts.marks import LOGARITHMIC, Axis, Numbers, Places, Scale, Series, heat, lines
from glassformer.charts.points import DIMENSION_AXIS, PAIR_AXIS, POSITION_AXIS, shift_points_spec, turning_circle_spec
from glassformer.charts.theme import Spec, literal
from glassformer.positions.positions_page import (
    DISTANCE_AXIS,
    LOOKED_AT,
    MOST_CELLS,
    PAGE,
    PositionScene,
    PositionTable,
    by_distance,
    height_of,
    layers_said,
    left_out,
    shown_of_run,
    table_of_run,
)
from glassformer.runs.picture import Plot
from glassformer.state.view import Click, column_below, place_below, row_below
from transformer.analysis import positions as study
from transformer.analysis.positions import Turning, even_product
from transformer.i18n import joined, say, say_n
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


@TABLE.picture("position_table", say("Table of positions"), follows="still")
def whole(table: PositionTable) -> Plot:
    """The table as a map; sines and cosines apart if that is asked for."""
    dims, n_sines, fewer = drawn_dims(table.count, table.d_model), 0, ""
    if table.look.apart and table.follows:
        n_sines = int((dims % 2 == 0).sum())
        dims = np.concatenate([dims[dims % 2 == 0], dims[dims % 2 == 1]])
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
        length = short(lengths[dim // 2])
        wave = say("sine, wavelength {length}", length=length)
        if dim % 2:
            wave = say("cosine, wavelength {length}", length=length)
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
    both = zip(found.low, found.high, strict=True)
    ends = [say("from {low:.4g} to {high:.4g}", low=low, high=high) for low, high in both]
    axis, says = say("Distance |p − q| (positions)"), say("distance {distance}", distance="%{x}")
    across, scale = Places(axis, range(len(ends)), says), Scale(table.measure, {"zeroline": True, "nticks": 7})
    series = [
        Series(say("least"), found.low, edge, "lines", number=""),
        Series(say("largest"), found.high, edge | shade, "lines", number=""),
        Series(say("mean {value}", value=table.measure), found.mean, line, number="%{y:.3f}", texts=ends),
    ]
    drawn = lines(distance.title, across, scale, series, height=440)
    alt = say(
        "Mean, minimum and maximum of the similarity ({name}) between two positions at each distance, {whose}.",
        name=table.measure,
        whose=table.whose,
    )
    return Plot(spec=drawn["spec"], alt=alt, how_to_read=HOW_TO_READ_DISTANCE, fit=True)


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
    look: dict[str, Any] = {"pair": pair, "shift": shift, "note": _up_to(MOST_DRAWN, len(made))}
    if table.follows:
        look |= {"angle": angle(table)}
        alt = say(
            "The values of dimensions {sine} and {cosine} after a shift by {shift}, and their values before the "
            "shift, rotated.",
            sine=sine,
            cosine=cosine,
            shift=shift,
        )
    else:
        look |= {"held_out": table.fit.held_out[:MOST_DRAWN]}
        alt = say("The values of dimensions {sine} and {cosine} after a shift by {shift}, and the values that the best "
                  "linear map gives.", sine=sine, cosine=cosine, shift=shift)  # fmt: skip
    return Plot(spec=shift_points_spec(after, made[:MOST_DRAWN, columns], title=title, **look), alt=alt, fit=True)


def _up_to(n: int, count: int) -> str:
    """How many of the positions are drawn; "" if all are."""
    if n >= count:
        return ""
    return say("Only positions p from 0 to {last} are drawn, out of 0 to {end}.", last=n - 1, end=count - 1)


def angle(table: PositionTable) -> float:
    """By how much the shift turns the pair."""
    return float(table.shift * study.frequencies(table.d_model)[table.pair])


MOST_ON_CIRCLE = 128
HOW_TO_READ_ROTATIONS = say(
    "Each row is a position p, each column a pair of dimensions (i, i + n/2) of a query or key. The colour is the "
    "cosine of the angle p·wᵢ by which the pair is turned at that position: 1 means no turn, −1 half a turn. Click "
    "a column to follow its pair."
)
HOW_TO_READ_BIAS_MAP = say(
    "Each row is one head, each column a distance. The colour shows what is added to the score: purple raises it, "
    "green lowers it. Click a row to follow its head."
)
HOW_TO_READ_BIAS_CURVES = say(
    "Each line shows the bias that one head adds to the score q·k, by the distance between query and key. If the "
    "bias is lower by 1, the key's weight is divided by about 2.7 (the number e). To the left of 0, the key comes "
    "before the query."
)
HOW_TO_READ_TURNS = say(
    "Each point is one pair of dimensions; its height is the number of positions needed for one full turn, 2π/wᵢ. "
    "A pair above the dotted line does not complete a turn within the longest text that this model reads."
)
HOW_TO_READ_EVEN = say(
    "Each point shows the dot product q·k of a query and an identical key at distance d, assuming that all pairs "
    "of dimensions have the same length. This is the mean of cos(d·wᵢ) over the pairs: 1 at distance 0, and lower "
    "as the pairs get out of step. In a real head, queries and keys are long in some pairs and short in others."
)

_MAIN, _BACK = stroke(theme.NEUTRAL_COLOR, 2, "solid", size=6), stroke(theme.GUIDE_COLOR, 1)
_OTHERS = stroke(theme.MARK_COLOR, 1.5, "dash"), stroke(theme.GUIDE_COLOR, 1.5, "dashdot")
_TURN = say("one turn in {positions} positions", positions="%{y:.4s}")

ROTATIONS = PAGE.part("rotations", shown_of_run, of_sentence=False)
PAIR = PAGE.part("pair", shown_of_run, of_sentence=False)
DISTANCE = PAGE.part("distance", shown_of_run, of_sentence=False)


@ROTATIONS.picture("rotary_rotations", say("Rotations by position and pair"), follows="still")
def rotations(shown: PositionScene) -> Plot | None:
    """By which angle each position turns each pair; a click means a pair."""
    turning = shown.turns
    if turning is None:
        return None
    step = -(-shown.count * turning.n_pairs // MOST_CELLS)
    pairs = list(range(0, turning.n_pairs, step))
    fewer = say("{n} of {all:,} pairs, evenly spread", n=len(pairs), all=turning.n_pairs) if step > 1 else ""
    says, n, degrees = [], turning.n_pairs, np.degrees(turning.speeds)
    for i in pairs:
        which = say("pair {pair}: dimensions {first} and {second}", pair=f"<b>{i}</b>", first=i, second=i + n)
        says.append(on_lines(which, say("turned by p · {degrees}°", degrees=f"{degrees[i]:.4g}")))
    cosines = Numbers(say("cosine of the angle"), np.cos(turning.angles(shown.count)[:, pairs]), ".3f")
    drawn = heat(
        say("Rotations by position and pair: {whose}", whose=shown.whose),
        Axis(POSITION_AXIS, range(shown.count)),
        Axis(PAIR_AXIS, pairs, says=says),
        cosines,
        signed=True,
        marked_column=pairs.index(shown.pair) if shown.pair in pairs else None,
        gaps=(0, 0),
        height=height_of(shown.count),
        note=left_out(shown.count, shown.config.max_len, fewer),
    )

    def clicked(click: Click) -> int | None:
        column = column_below(len(pairs))(click)
        return None if column is None else pairs[column]

    return Plot(**drawn, how_to_read=HOW_TO_READ_ROTATIONS, fit=True, clicked=clicked)


@ROTATIONS.picture("rotary_waves", say("How many positions each pair needs for one full turn"), follows="still")
def waves(shown: PositionScene) -> Plot | None:
    """How many positions each pair takes to turn once, in all layers; a click means a pair."""
    turning = shown.turns
    if turning is None:
        return None
    pairs, name = range(turning.n_pairs), _line_name(turning)
    series = [Series(name, turning.wavelengths, _MAIN, number=_TURN, chosen=shown.pair, clicks=pairs)]
    scaled = [(say("before the scaling"), 2 * np.pi / turning.unscaled)] if turning.scaled else []
    others = [(_line_name(one), one.wavelengths) for one in shown.turnings if one.n_pairs and one is not turning]
    for place, (name, values) in enumerate([*scaled, *others]):
        series.append(Series(name, values, _OTHERS[min(place, 1)], "lines", _TURN, at=range(len(values))))
    rotary, limits = shown.config.rotary, [(say("longest text"), shown.config.max_len)]
    if turning.scaled and rotary is not None and rotary.original_len:
        limits.append((say("longest text before the scaling"), rotary.original_len))
    for name, most in limits:
        said = say_n("{name}: {n:,} token", "{name}: {n:,} tokens", most, name=name)
        series.append(Series(said, [most, most], DOTTED, "lines", number="", at=[0, turning.n_pairs - 1]))
    across = Places(PAIR_AXIS, pairs, say("pair {pair}", pair="%{x}"))
    scale = Scale(say("Positions per turn (log)"), LOGARITHMIC)
    drawn = lines(waves.title, across, scale, series, top=52 + 22 * len(series))
    return Plot(**drawn, how_to_read=HOW_TO_READ_TURNS, fit=True, clicked=place_below(turning.n_pairs))


def _line_name(turning: Turning) -> str:
    return say_n("layer {numbers}", "layers {numbers}", len(turning.layers), numbers=layers_said(turning))


@PAIR.picture("rotary_circle", say("How each position turns a pair of dimensions"), follows="still")
def circle(shown: PositionScene) -> Plot | None:
    """Where the chosen pair is turned to at each position."""
    turning, pair = shown.turns, shown.pair
    if turning is None:
        return None
    count = min(shown.count, MOST_ON_CIRCLE)
    title, note = say("How each position turns pair {pair}", pair=pair), _up_to(count, shown.config.max_len)
    spec = turning_circle_spec(float(turning.speeds[pair]), count, title=title, note=note)
    alt = say("Points on a circle: where each position turns the first unit vector of pair {pair}.", pair=pair)
    return Plot(spec=spec, alt=alt, fit=True)


@PAIR.picture("rotary_product", say("A pair's dot product by distance"), follows="still")
def product(shown: PositionScene) -> Plot | None:
    """What two equal vectors that the chosen pair turns have as product, by distance."""
    turning, pair = shown.turns, shown.pair
    if turning is None:
        return None
    values = np.cos(shown.distances * float(turning.speeds[pair]))
    name = say("dot product of equal unit vectors")
    title = say("Pair {pair}: dot product by distance", pair=pair)
    drawn = by_distance(title, shown.distances, name, [Series(name, values, LOOKED_AT)])
    read = say("If two equal unit vectors are turned apart by the angle d·wᵢ, their dot product is cos(d·wᵢ).")
    return Plot(**drawn, how_to_read=read, fit=True)


@DISTANCE.picture("rotary_even", say("Dot product of equal vectors by distance"), follows="still")
def even(shown: PositionScene) -> Plot | None:
    """The same with all pairs."""
    turning, distances = shown.turns, shown.distances
    if turning is None:
        return None
    name = say("mean of cos(d·wᵢ)")
    title = say("Dot product of equal vectors by distance: {whose}", whose=shown.whose)
    series = [Series(name, even_product(turning.speeds, distances), LOOKED_AT)]
    drawn = by_distance(title, distances, name, series)
    return Plot(**drawn, how_to_read=HOW_TO_READ_EVEN, fit=True)


@DISTANCE.picture("bias_curves", say("Bias by distance"), follows="still")
def bias_curves(shown: PositionScene) -> Plot | None:
    """What each head adds to a score by distance; a click means a head."""
    if shown.turning is not None:
        return None
    found, head = shown.bias, shown.head
    series = []
    for one, values in enumerate(found.bias):
        name, clicks = say("head {number}", number=one + 1), [one] * len(values)
        series.append(Series(name, values, _BACK, "lines", clicks=clicks))
    series.append(replace(series.pop(head), look=LOOKED_AT, kind="lines+markers"))  # on top
    edges, title = found.edges(), say("Head {head}: bias by distance", head=head + 1)
    note = say("thin lines: where one bucket of distances ends and the next begins") if edges else ""
    shapes = [upright(edge, width=0.5) for edge in edges]
    drawn = by_distance(title, found.distances, say("added to the score"), series, note=note, shapes=shapes)
    clicked = place_below(len(found.bias))
    return Plot(**drawn, how_to_read=HOW_TO_READ_BIAS_CURVES, fit=True, clicked=clicked)


@DISTANCE.picture("bias_map", say("Bias of all heads"), follows="still")
def bias_map(shown: PositionScene) -> Plot | None:
    """The same as a map; a click means a head."""
    if shown.turning is not None:
        return None
    found = shown.bias
    heads, distances = range(1, len(found.bias) + 1), found.distances.tolist()
    says = [say("distance {distance}", distance=f"<b>{distance}</b>") for distance in distances]
    if found.buckets is not None:
        says = [
            say("distance {distance}, bucket {bucket}", distance=f"<b>{distance}</b>", bucket=bucket)
            for distance, bucket in zip(distances, found.buckets.tolist(), strict=True)
        ]
    drawn = heat(
        say("Bias of all heads: {whose}", whose=shown.whose),
        Axis(say("Head"), heads),
        Axis(DISTANCE_AXIS, distances, says=says),
        Numbers(say("added to the score"), found.bias),
        signed=True,
        marked_row=shown.head,
        gaps=(0, 0),
        height=int(np.clip(150 + 26 * len(heads), 220, 560)),
    )
    return Plot(**drawn, how_to_read=HOW_TO_READ_BIAS_MAP, fit=True, clicked=row_below(len(heads)))
