"""Tabs for positions inside attention: rotary embeddings, ALiBi and relative biases."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from glassformer.positions import PositionsLook
from glassformer.positions.in_attention import in_attention_pictures as pictures
from glassformer.positions.position_controls import take_head
from glassformer.positions.positions_page import PositionScene, layers_said
from glassformer.runs.open_run import OpenRun
from glassformer.runs.show import show, show_beside
from glassformer.shared import controls, drawing
from glassformer.shared.i18n import st
from glassformer.state import session
from glassformer.state.view import Slot
from transformer.analysis.positions import Turning, moved_together
from transformer.i18n import say, say_n
from transformer.i18n.sentence import digits, short
from transformer.model.anatomy import anatomy

PAIR = "rotary_pair"
MOVED = 512  # places to which a query and a key are moved together


def draw(shown: PositionScene, run: OpenRun | None) -> None:
    """Draw the chosen part; it is about no sentence."""
    turning = shown.turning
    if turning is None:
        show_beside(pictures.bias_curves, pictures.bias_map, shown, take=partial(take_head, shown.slot))
        drawing.explain(*map(drawing.plain, _about_bias(shown)))
    elif not turning.n_pairs:
        said = say_n(
            "Layer {numbers} ignores positions: queries and keys are not rotated, so only the mask makes a "
            "difference between earlier and later tokens.",
            "Layers {numbers} ignore positions: queries and keys are not rotated, so only the mask makes a "
            "difference between earlier and later tokens.",
            len(turning.layers),
            numbers=layers_said(turning),
        )
        st.info(said, icon=":material/info:")
    else:
        panel = shown.view.of(PositionsLook).positions_panel
        {"rotations": _rotations, "pair": _pair, "distance": _distance}[panel](shown, turning)


def _about_bias(shown: PositionScene) -> Iterator[str]:
    found, head = shown.bias, shown.head
    if anatomy(shown.config).stack(shown.stack).n_layers > 1:
        yield say("Within the encoder or decoder, all layers have the same bias.")
    if found.slopes is not None:
        slope = found.slopes[head]
        yield say(
            "Head {head} subtracts {slope:.4g} from the score for each token of distance, so the weight of a key "
            "that is {tokens:.3g} tokens further away is divided by e ≈ 2.7. The slopes of all heads are fixed, "
            "not learned.",
            head=head + 1,
            slope=slope,
            tokens=1 / slope,
        )
    if found.buckets is None:
        return
    values, n_buckets = found.bias[head], len(found.edges()) + 1
    best = int(values.argmax())
    yield say(
        "Head {head} has learned one number for each of the {n} buckets of distances shown. The number is largest "
        "at distance {distance} ({value:.3f}) and smallest at distance {least}.",
        head=head + 1,
        n=n_buckets,
        distance=int(found.distances[best]),
        value=values[best],
        least=int(found.distances[int(values.argmin())]),
    )


# ------------------------------------------------------------------------------------------------ rotations


def _take_pair(slot: Slot, n_pairs: int, pair: int) -> None:
    session.replace(slot, dims=(pair, pair + n_pairs))


def _rotations(shown: PositionScene, turning: Turning) -> None:
    take = partial(_take_pair, shown.slot, turning.n_pairs)
    show_beside(pictures.rotations, pictures.waves, shown, take=take)
    drawing.explain(*map(drawing.plain, _about(shown, turning)))


def _about(shown: PositionScene, turning: Turning) -> Iterator[str]:
    """What turns, how fast, and how a scaling changed it."""
    waves, rest = turning.wavelengths, turning.d_head - 2 * turning.n_pairs
    yield say(
        "Pair 0 makes one full turn in {fast} positions, the last pair in {slow}. Without scaling for longer "
        "texts, pair i turns by {base:,g}^(−i/{n}) radians per position.",
        fast=short(waves[0]),
        slow=short(waves[-1]),
        base=turning.base,
        n=turning.n_pairs,
    )
    if rest:
        yield say(
            "Only the first {n} of a head's {d_head} dimensions turn; the other {rest} carry content that does not "
            "depend on distance.",
            n=2 * turning.n_pairs,
            d_head=turning.d_head,
            rest=rest,
        )
    yield from _scaling(shown, turning)
    if turning.size != 1:
        yield say(
            "Queries and keys are each multiplied by {size:.4g}, so scores are multiplied by the square of this "
            "number.",
            size=turning.size,
        )


def _scaling(shown: PositionScene, turning: Turning) -> Iterator[str]:
    rotary = shown.config.rotary
    if rotary is None or rotary.scaling == "none":
        return
    if not turning.scaled:
        yield say("The scaling for longer texts ({name}) does not change these layers.", name=rotary.scaling)
        return
    shares = turning.speeds / turning.unscaled
    whole, none = np.isclose(shares, 1 / rotary.factor), np.isclose(shares, 1)
    yield say(
        "Scaling for longer texts ({name}) slows {whole} of {n} pairs by the full factor {factor:g} and {part} "
        "pairs by less, and leaves {none} unchanged.",
        name=rotary.scaling,
        whole=int(whole.sum()),
        n=turning.n_pairs,
        factor=rotary.factor,
        part=int((~whole & ~none).sum()),
        none=int((none & ~whole).sum()),
    )


# ------------------------------------------------------------------------------------------------ one pair


def _pair(shown: PositionScene, turning: Turning) -> None:
    pair, n, speed = shown.pair, turning.n_pairs, float(turning.speeds[shown.pair])
    names = {
        one: say("Pair {pair}, dimensions {first} and {second}: one turn in {length} positions", pair=one, first=one,
                 second=one + n, length=short(turning.wavelengths[one]))
        for one in range(n)
    }  # fmt: skip
    kept = controls.ControlBinding(f"{shown.slot}{PAIR}", pair, partial(_take_pair, shown.slot, n))
    controls.menu(kept, say("Pair of dimensions"), names)
    show_beside(pictures.circle, pictures.product, shown)
    said = say("From one position to the next, this pair turns by wᵢ = {radians} rad = {degrees}°; over the {n:,} "
               "positions that this model can read, it makes {turns:.4g} full turns.", radians=digits(speed),
               degrees=digits(float(np.degrees(speed))), n=shown.config.max_len,
               turns=(shown.config.max_len - 1) * speed / (2 * np.pi))  # fmt: skip
    drawing.explain(drawing.plain(said))


def _distance(shown: PositionScene, turning: Turning) -> None:
    show(pictures.even, shown)
    n = min(MOVED, shown.config.max_len)
    unit = np.ones(turning.d_head) / np.sqrt(turning.d_head)
    apart = min(3, shown.config.max_len - 1)
    error = moved_together(unit, unit, turning, distance=-apart, n=max(1, n - apart))
    said = say("Only the distance matters: if a query and a key stay {apart} tokens apart and move together "
               "through {n} positions, their dot product changes by at most {error}, which is the rounding error "
               "of 32-bit numbers.", apart=apart, n=max(1, n - apart), error=digits(error))  # fmt: skip
    more = say("The “Sentence” part draws such a curve for a query and a key from your text.")
    drawing.explain(drawing.plain(said), drawing.plain(more))
