"""The Positions page for rotary positions: rotations by position and pair, one pair, products by distance."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

import charts
from charts.by_distance import HOW_TO_READ_EVEN, Curve
from charts.rotations import HOW_TO_READ_CIRCLE, HOW_TO_READ_ROTATIONS, HOW_TO_READ_TURNS, Turns
from transformer.analysis.rotations import Turning, even_product, moved_together, turnings
from ui.positions import turned_sentence
from ui.positions.in_attention import Shown, layers_said
from ui.runs.open_run import OpenRun
from ui.shared import choices, drawing
from ui.shared.clicks import on_click
from ui.shared.door import st
from ui.shared.numbers import digits, short
from ui.state import session
from ui.state.click import cell_of, place_of
from ui.state.view import Slot
from words import joined, say, say_n

ROTATIONS = "rotary_rotations"
WAVES = "rotary_waves"
CIRCLE = "rotary_circle"
EVEN = "rotary_even"
PRODUCT = "rotary_product"
PAIR = "rotary_pair"
MOST_CELLS = 32_768
MOST_ON_CIRCLE = 128
MOVED = 512  # places to which a query and a key are moved together


def draw(shown: Shown, turning: Turning, run: OpenRun | None) -> None:
    """Draw the chosen part."""
    if shown.panel == "sentence":
        if run is not None:
            turned_sentence.draw(shown, run)
        return
    if not turning.n_pairs:
        st.info(
            say_n(
                "Layer {numbers} takes no notice of positions: nothing turns, and only the mask says what came "
                "before.",
                "Layers {numbers} take no notice of positions: nothing turns, and only the mask says what came "
                "before.",
                len(turning.layers),
                numbers=layers_said(turning),
            ),
            icon=":material/info:",
        )
        return
    {"rotations": _rotations, "pair": _pair, "distance": _distance}[shown.panel](shown, turning)


def pair_of(shown: Shown, turning: Turning) -> int:
    """The pair that is followed: that of the first dimension chosen."""
    n = turning.n_pairs
    return shown.view.dims[0] % n if shown.view.dims and shown.view.dims[0] < 2 * n else 0


def _take_pair(slot: Slot, n_pairs: int, pair: int) -> None:
    if pair < n_pairs:
        session.replace(slot, dims=(pair, pair + n_pairs))


# ------------------------------------------------------------------------------------------------ rotations


def _rotations(shown: Shown, turning: Turning) -> None:
    step = -(-shown.count * turning.n_pairs // MOST_CELLS)
    pairs = list(range(0, turning.n_pairs, step))
    figure = charts.rotation_map_spec(
        turning.angles(shown.count)[:, pairs],
        n_pairs=turning.n_pairs,
        pair=pair_of(shown, turning),
        pairs=pairs,
        title=say("Rotations by position and pair: {whose}", whose=shown.whose),
        note=_left_out(shown, len(pairs), turning.n_pairs),
    )
    key, slot, n_pairs = shown.key(ROTATIONS), shown.slot, turning.n_pairs
    alt = say("The cosine of the angle by which each pair is turned, one row a position, one column a pair.")
    drawing.beside(
        lambda: drawing.chart(
            figure, key=key, alt=alt, how_to_read=HOW_TO_READ_ROTATIONS, fit=True, of_sentence=False,
            on_click=on_click(key, cell_of, lambda cell: _take_pair(slot, n_pairs, pairs[cell[1]])),
        ),
        lambda: _waves(shown, turning),
    )  # fmt: skip
    st.markdown(drawing.plain(joined(" ", _about(shown, turning))))


def _left_out(shown: Shown, n_drawn: int, n_pairs: int) -> str:
    left_out = []
    if shown.count < shown.config.max_len:
        left_out.append(say("the first {n} of {all:,} positions", n=shown.count, all=shown.config.max_len))
    if n_drawn < n_pairs:
        left_out.append(say("{n} of {all:,} pairs, evenly spread", n=n_drawn, all=n_pairs))
    return say("Drawn: {parts}.", parts=joined("; ", left_out)) if left_out else ""


def _waves(shown: Shown, turning: Turning) -> None:
    others = [one for one in turnings(shown.config, shown.stack) if one.n_pairs and one.layers != turning.layers]
    lines = [Turns(_line_name(turning), turning.wavelengths, main=True)]
    if turning.scaled:
        lines.append(Turns(say("before the scaling"), 2 * np.pi / turning.unscaled))
    lines += [Turns(_line_name(one), one.wavelengths) for one in others]
    rotary, limits = shown.config.rotary, [(say("longest text"), shown.config.max_len)]
    if turning.scaled and rotary is not None and rotary.original_len:
        limits.append((say("texts before the scaling"), rotary.original_len))
    figure = charts.turning_waves_spec(
        lines, limits=limits, pair=pair_of(shown, turning), title=say("How many positions a turn takes")
    )
    key, slot, n_pairs = shown.key(WAVES), shown.slot, turning.n_pairs
    alt = say("Positions that each pair takes to turn once, on a logarithmic axis.")
    drawing.chart(
        figure, key=key, alt=alt, how_to_read=HOW_TO_READ_TURNS, fit=True, of_sentence=False,
        on_click=on_click(key, place_of, partial(_take_pair, slot, n_pairs)),
    )  # fmt: skip


def _line_name(turning: Turning) -> str:
    return say_n("layer {numbers}", "layers {numbers}", len(turning.layers), numbers=layers_said(turning))


def _about(shown: Shown, turning: Turning) -> Iterator[str]:
    """What turns, how fast, and how a scaling changed it."""
    waves, rest = turning.wavelengths, turning.d_head - 2 * turning.n_pairs
    yield say(
        "Pair 0 turns once in {fast} positions, the last one once in {slow}: base {base:,g} to the power of −i/{n}.",
        fast=short(waves[0]),
        slow=short(waves[-1]),
        base=turning.base,
        n=turning.n_pairs,
    )
    if rest:
        yield say(
            "Only the first {n} of {d_head} dimensions of a head turn; the other {rest} carry what has nothing to do "
            "with distance.",
            n=2 * turning.n_pairs,
            d_head=turning.d_head,
            rest=rest,
        )
    yield from _scaling(shown, turning)
    if turning.size != 1:
        yield say("Queries and keys are multiplied by {size:.4g} each, so scores by its square.", size=turning.size)


def _scaling(shown: Shown, turning: Turning) -> Iterator[str]:
    rotary = shown.config.rotary
    if rotary is None or rotary.scaling == "none":
        return
    if not turning.scaled:
        yield say("The scaling for longer texts ({name}) leaves these layers as they are.", name=rotary.scaling)
        return
    shares = turning.speeds / turning.unscaled
    whole, none = np.isclose(shares, 1 / rotary.factor), np.isclose(shares, 1)
    yield say(
        "A scaling for longer texts ({name}) has slowed down {whole} of {n} pairs by the whole factor {factor:g}, "
        "{part} in part, and left {none} as they were.",
        name=rotary.scaling,
        whole=int(whole.sum()),
        n=turning.n_pairs,
        factor=rotary.factor,
        part=int((~whole & ~none).sum()),
        none=int((none & ~whole).sum()),
    )


# ------------------------------------------------------------------------------------------------ one pair


def _pair(shown: Shown, turning: Turning) -> None:
    pair, slot, n = pair_of(shown, turning), shown.slot, turning.n_pairs
    names = {
        one: say("Pair {pair}, dimensions {first} and {second}: one turn in {length} positions", pair=one, first=one,
                 second=one + n, length=short(turning.wavelengths[one]))
        for one in range(n)
    }  # fmt: skip
    choices.menu(choices.Kept(shown.key(PAIR), pair, partial(_take_pair, slot, n)), say("Pair of dimensions"), names)
    count, speed = min(shown.count, MOST_ON_CIRCLE), float(turning.speeds[pair])
    drawn = say("Drawn: p from 0 to {last} of {end}.", last=count - 1, end=shown.config.max_len - 1)
    figure = charts.turning_circle_spec(
        speed,
        count,
        title=say("Pair {pair}: where it is turned to", pair=pair),
        note=drawn if count < shown.config.max_len else "",
    )
    alt = say("The first unit vector of pair {pair} at each position, as points on a circle.", pair=pair)
    own = charts.distance_curves_spec(
        _distances(shown),
        [Curve(say("pair {pair}", pair=pair), np.cos(_distances(shown) * speed))],
        title=say("Pair {pair}: product by distance", pair=pair),
        value_name=say("product of equal unit vectors"),
    )
    drawing.beside(
        lambda: drawing.chart(
            figure, key=shown.key(CIRCLE), alt=alt, how_to_read=HOW_TO_READ_CIRCLE, fit=True, of_sentence=False
        ),
        lambda: drawing.chart(
            own, key=shown.key(PRODUCT), alt=say("The cosine of the angle between query and key, by their distance."),
            how_to_read=say("Two equal vectors that are turned apart by d·wᵢ have the product cos(d·wᵢ)."),
            fit=True, of_sentence=False,
        ),
    )  # fmt: skip
    turns = (shown.config.max_len - 1) * speed / (2 * np.pi)
    st.markdown(
        drawing.plain(
            say(
                "From one position to the next this pair turns by wᵢ = {radians} rad = {degrees}°; over the {n:,} "
                "positions that this model reads it turns {turns:.4g} times.",
                radians=digits(speed),
                degrees=digits(float(np.degrees(speed))),
                n=shown.config.max_len,
                turns=turns,
            )
        )
    )


def _distances(shown: Shown) -> np.ndarray:
    """The distances that are drawn: up to as many tokens as positions are; in a decoder no key comes later."""
    return np.arange(-(shown.count - 1), 1 if shown.causal else shown.count)


# ------------------------------------------------------------------------------------------------ score by distance


def _distance(shown: Shown, turning: Turning) -> None:
    distances = _distances(shown)
    figure = charts.distance_curves_spec(
        distances,
        [Curve(say("all pairs alike"), even_product(turning.speeds, distances))],
        title=say("Product of equal vectors by distance: {whose}", whose=shown.whose),
        value_name=say("mean of cos(d·wᵢ)"),
    )
    drawing.chart(
        figure, key=shown.key(EVEN), how_to_read=HOW_TO_READ_EVEN, fit=True, of_sentence=False,
        alt=say("The mean of the cosines of all pairs by the distance between query and key."),
    )  # fmt: skip
    n = min(MOVED, shown.config.max_len)
    unit = np.ones(turning.d_head) / np.sqrt(turning.d_head)
    apart = min(3, shown.config.max_len - 1)
    error = moved_together(unit, unit, turning, distance=-apart, n=max(1, n - apart))
    said = say(
        "Only the distance counts: a query and a key that stay {apart} tokens apart and are moved together over {n} "
        "places keep their product within {error}, which is the rounding of 32-bit numbers.",
        apart=apart,
        n=max(1, n - apart),
        error=digits(error),
    )
    more = say("The part “Sentence” draws the same for a query and a key of your text.")
    st.markdown(drawing.plain(joined(" ", [said, more])))
