"""The pictures of positions that act inside attention: what turns, and what distance adds to scores."""

import numpy as np

from glassformer.charts.by_distance import Curve, distance_curves_spec, distance_map_spec
from glassformer.charts.rotations import Turns, rotation_map_spec, turning_circle_spec, turning_waves_spec
from glassformer.positions.positions_page import MOST_CELLS, PAGE, PositionScene, layers_said, left_out, shown_of_run
from glassformer.runs.picture import Plot
from glassformer.state.click import Click, column_below, place_below, row_below
from transformer.analysis.rotations import Turning, even_product
from transformer.i18n import say, say_n

MOST_ON_CIRCLE = 128
HOW_TO_READ_BIAS_CURVES = say(
    "Each line shows the bias that one head adds to the score q·k, by the distance between query and key. If the "
    "bias is lower by 1, the key's weight is divided by about 2.7 (the number e). To the left of 0, the key comes "
    "before the query."
)
HOW_TO_READ_EVEN = say(
    "Each point shows the dot product q·k of a query and an identical key at distance d, assuming that all pairs "
    "of dimensions have the same length. This is the mean of cos(d·wᵢ) over the pairs: 1 at distance 0, and lower "
    "as the pairs get out of step. In a real head, queries and keys are long in some pairs and short in others."
)

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
    spec = rotation_map_spec(
        turning.angles(shown.count)[:, pairs],
        n_pairs=turning.n_pairs,
        pair=shown.pair,
        pairs=pairs,
        title=say("Rotations by position and pair: {whose}", whose=shown.whose),
        note=left_out(shown.count, shown.config.max_len, fewer),
    )

    def clicked(click: Click) -> int | None:
        column = column_below(len(pairs))(click)
        return None if column is None else pairs[column]

    alt = say("The cosine of the angle by which each pair is turned, one row per position, one column per pair.")
    return Plot(spec=spec, alt=alt, fit=True, clicked=clicked)


@ROTATIONS.picture("rotary_waves", say("How many positions each pair needs for one full turn"), follows="still")
def waves(shown: PositionScene) -> Plot | None:
    """How many positions each pair takes to turn once, in all layers; a click means a pair."""
    turning = shown.turns
    if turning is None:
        return None
    lines = [Turns(_line_name(turning), turning.wavelengths, main=True)]
    if turning.scaled:
        lines.append(Turns(say("before the scaling"), 2 * np.pi / turning.unscaled))
    others = [one for one in shown.turnings if one.n_pairs and one.layers != turning.layers]
    lines += [Turns(_line_name(one), one.wavelengths) for one in others]
    rotary, limits = shown.config.rotary, [(say("longest text"), shown.config.max_len)]
    if turning.scaled and rotary is not None and rotary.original_len:
        limits.append((say("longest text before the scaling"), rotary.original_len))
    spec = turning_waves_spec(lines, limits=limits, pair=shown.pair, title=waves.title)
    alt = say("How many positions each pair needs for one full turn, on a logarithmic axis.")
    return Plot(spec=spec, alt=alt, fit=True, clicked=place_below(turning.n_pairs))


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
    spec = distance_curves_spec(
        shown.distances,
        [Curve(say("pair {pair}", pair=pair), values)],
        title=say("Pair {pair}: dot product by distance", pair=pair),
        value_name=say("dot product of equal unit vectors"),
    )
    alt = say("The cosine of the angle between query and key, by the distance between them.")
    read = say("If two equal unit vectors are turned apart by the angle d·wᵢ, their dot product is cos(d·wᵢ).")
    return Plot(spec=spec, alt=alt, how_to_read=read, fit=True)


@DISTANCE.picture("rotary_even", say("Dot product of equal vectors by distance"), follows="still")
def even(shown: PositionScene) -> Plot | None:
    """The same with all pairs."""
    turning, distances = shown.turns, shown.distances
    if turning is None:
        return None
    spec = distance_curves_spec(
        distances,
        [Curve(say("all pairs weighted equally"), even_product(turning.speeds, distances))],
        title=say("Dot product of equal vectors by distance: {whose}", whose=shown.whose),
        value_name=say("mean of cos(d·wᵢ)"),
    )
    alt = say("The mean of the cosines of all pairs, by the distance between query and key.")
    return Plot(spec=spec, alt=alt, how_to_read=HOW_TO_READ_EVEN, fit=True)


# ------------------------------------------------------------------------------------------------ a bias


@DISTANCE.picture("bias_curves", say("Bias by distance"), follows="still")
def bias_curves(shown: PositionScene) -> Plot | None:
    """What each head adds to a score by distance; a click means a head."""
    if shown.turning is not None:
        return None
    found, head = shown.bias, shown.head
    spec = distance_curves_spec(
        found.distances,
        [
            Curve(say("head {number}", number=one + 1), values, strong=one == head, place=one)
            for one, values in enumerate(found.bias)
        ],
        title=say("Head {head}: bias by distance", head=head + 1),
        value_name=say("added to the score"),
        edges=found.edges(),
        note=say("thin lines: where one bucket of distances ends and the next begins") if found.edges() else "",
    )
    alt = say("What each head adds to a score, by the distance between query and key: one line per head.")
    return Plot(spec=spec, alt=alt, how_to_read=HOW_TO_READ_BIAS_CURVES, fit=True, clicked=place_below(len(found.bias)))


@DISTANCE.picture("bias_map", say("Bias of all heads"), follows="still")
def bias_map(shown: PositionScene) -> Plot | None:
    """The same as a map; a click means a head."""
    if shown.turning is not None:
        return None
    found = shown.bias
    spec = distance_map_spec(
        found.bias,
        found.distances,
        title=say("Bias of all heads: {whose}", whose=shown.whose),
        buckets=found.buckets,
        head=shown.head,
    )
    alt = say("What each head adds to a score, one row per head, one column per distance.")
    return Plot(spec=spec, alt=alt, fit=True, clicked=row_below(len(found.bias)))
