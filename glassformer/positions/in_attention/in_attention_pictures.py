"""The pictures of positions that act inside attention: what turns, and what distance adds to scores."""

import numpy as np

from glassformer.charts import theme
from glassformer.charts.grammar import DOTTED, stroke, upright
from glassformer.charts.hover import on_lines
from glassformer.charts.marks import LOGARITHMIC, Axis, Numbers, Places, Scale, Series, heat, lines
from glassformer.charts.positions import PAIR_AXIS, POSITION_AXIS, turning_circle_spec
from glassformer.positions.positions_page import (
    DISTANCE_AXIS,
    LOOKED_AT,
    MOST_CELLS,
    PAGE,
    PositionScene,
    by_distance,
    height_of,
    layers_said,
    left_out,
    shown_of_run,
)
from glassformer.runs.picture import Plot
from glassformer.state.view import Click, column_below, place_below, row_below
from transformer.analysis.positions import Turning, even_product
from transformer.i18n import say, say_n

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


# ------------------------------------------------------------------------------------------------ rotations


@ROTATIONS.picture("rotary_rotations", say("Rotations by position and pair"), follows="still")
def rotations(shown: PositionScene) -> Plot | None:
    """By which angle each position turns each pair; a click means a pair."""
    turning = shown.turns
    if turning is None:
        return None
    step = -(-shown.count * turning.n_pairs // MOST_CELLS)
    pairs = list(range(0, turning.n_pairs, step))
    fewer = say("{n} of {all:,} pairs, evenly spread", n=len(pairs), all=turning.n_pairs) if step > 1 else ""
    cosines = Numbers(say("cosine of the angle"), np.cos(turning.angles(shown.count)[:, pairs]), ".3f")
    drawn = heat(
        say("Rotations by position and pair: {whose}", whose=shown.whose),
        Axis(POSITION_AXIS, range(shown.count)),
        Axis(PAIR_AXIS, pairs, says=[_turned(turning, pair) for pair in pairs]),
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


def _turned(turning: Turning, pair: int) -> str:
    second = pair + turning.n_pairs
    which = say("pair {pair}: dimensions {first} and {second}", pair=f"<b>{pair}</b>", first=pair, second=second)
    return on_lines(which, say("turned by p · {degrees}°", degrees=f"{np.degrees(turning.speeds[pair]):.4g}"))


@ROTATIONS.picture("rotary_waves", say("How many positions each pair needs for one full turn"), follows="still")
def waves(shown: PositionScene) -> Plot | None:
    """How many positions each pair takes to turn once, in all layers; a click means a pair."""
    turning = shown.turns
    if turning is None:
        return None
    series = [
        Series(
            _line_name(turning),
            turning.wavelengths,
            _MAIN,
            "lines+markers",
            _TURN,
            chosen=shown.pair,
            clicks=range(turning.n_pairs),
        )
    ]
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
    across = Places(PAIR_AXIS, range(turning.n_pairs), say("pair {pair}", pair="%{x}"))
    drawn = lines(
        waves.title, across, Scale(say("Positions per turn (log)"), LOGARITHMIC), series, top=52 + 22 * len(series)
    )
    return Plot(**drawn, how_to_read=HOW_TO_READ_TURNS, fit=True, clicked=place_below(turning.n_pairs))


def _line_name(turning: Turning) -> str:
    return say_n("layer {numbers}", "layers {numbers}", len(turning.layers), numbers=layers_said(turning))


@PAIR.picture("rotary_circle", say("How each position turns a pair of dimensions"), follows="still")
def circle(shown: PositionScene) -> Plot | None:
    """Where the chosen pair is turned to at each position."""
    turning, pair = shown.turns, shown.pair
    if turning is None:
        return None
    count, note = min(shown.count, MOST_ON_CIRCLE), ""
    if count < shown.config.max_len:
        note = say(
            "Only positions p from 0 to {last} are drawn, out of 0 to {end}.",
            last=count - 1,
            end=shown.config.max_len - 1,
        )
    spec = turning_circle_spec(
        float(turning.speeds[pair]), count, title=say("How each position turns pair {pair}", pair=pair), note=note
    )
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
    value_name = say("mean of cos(d·wᵢ)")
    drawn = by_distance(
        say("Dot product of equal vectors by distance: {whose}", whose=shown.whose),
        distances,
        value_name,
        [Series(value_name, even_product(turning.speeds, distances), LOOKED_AT)],
    )
    return Plot(**drawn, how_to_read=HOW_TO_READ_EVEN, fit=True)


# ------------------------------------------------------------------------------------------------ a bias


@DISTANCE.picture("bias_curves", say("Bias by distance"), follows="still")
def bias_curves(shown: PositionScene) -> Plot | None:
    """What each head adds to a score by distance; a click means a head."""
    if shown.turning is not None:
        return None
    found, head = shown.bias, shown.head
    series = [
        Series(
            say("head {number}", number=one + 1),
            values,
            LOOKED_AT if one == head else _BACK,
            "lines+markers" if one == head else "lines",
            clicks=[one] * len(values),
        )
        for one, values in enumerate(found.bias)
    ]
    series.append(series.pop(head))  # on top
    edges = found.edges()
    drawn = by_distance(
        say("Head {head}: bias by distance", head=head + 1),
        found.distances,
        say("added to the score"),
        series,
        note=say("thin lines: where one bucket of distances ends and the next begins") if edges else "",
        shapes=[upright(edge, width=0.5) for edge in edges],
    )
    clicked = place_below(len(found.bias))
    return Plot(**drawn, how_to_read=HOW_TO_READ_BIAS_CURVES, fit=True, clicked=clicked)


@DISTANCE.picture("bias_map", say("Bias of all heads"), follows="still")
def bias_map(shown: PositionScene) -> Plot | None:
    """The same as a map; a click means a head."""
    if shown.turning is not None:
        return None
    found = shown.bias
    says = [say("distance {distance}", distance=f"<b>{distance}</b>") for distance in found.distances]
    if found.buckets is not None:
        says = [
            say("distance {distance}, bucket {bucket}", distance=f"<b>{distance}</b>", bucket=int(bucket))
            for distance, bucket in zip(found.distances, found.buckets, strict=True)
        ]
    heads, distances = range(1, len(found.bias) + 1), found.distances.tolist()
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
