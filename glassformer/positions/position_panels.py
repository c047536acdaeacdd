"""Parts of the Positions page: table, similarity, shift; rotations, one pair, bias by distance; the sentence."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Literal

import numpy as np

from glassformer.frame import sentence_stepper as frame
from glassformer.frame.sentence_stepper import Still, one_token
from glassformer.positions import PositionsLook, position_controls, sentence_pictures, table_pictures
from glassformer.positions.position_controls import take_head
from glassformer.positions.positions_page import PositionScene, PositionTable, layers_said
from glassformer.positions.sentence_pictures import PLACES, InScores, Start, open_sentence
from glassformer.runs.error_boundary import attempt
from glassformer.runs.open_run import OpenRun
from glassformer.runs.show import show, show_beside
from glassformer.shared import controls, drawing
from glassformer.shared.i18n import st
from glassformer.state import session
from transformer.analysis import positions as study
from transformer.analysis.positions import Turning, moved_together
from transformer.analysis.stream import rms
from transformer.i18n import joined, say, say_n
from transformer.i18n.sentence import digits, short
from transformer.model.anatomy import anatomy


def table(table: PositionTable, run: OpenRun | None) -> None:
    """Draw the chosen part; it is about no sentence."""
    if note := position_controls.about_layout(table.checkpoint.config):
        drawing.explain(drawing.plain(note))
    {"table": _table, "similarity": _similarity, "shift": _shift}[table.view.of(PositionsLook).positions_panel](table)
    if table.alone:  # each side has a table of its own
        position_controls.choose_side(anatomy(table.checkpoint.config), table.slot)


def _table(table: PositionTable) -> None:
    show(table_pictures.whole, table)
    both = say("Encoder and decoder have the same table of positions.")
    if table.alone:
        both = say("Encoder and decoder have different tables of positions.")
    drawing.explain(*map(drawing.plain, (_origin(table), "" if table.only else both, _meaning(table))))
    if table.follows:
        controls.switch(controls.field(table.slot, "apart"), say("Separate sines and cosines"))
    position_controls.choose_dims(table)
    show(table_pictures.curves, table)


def _origin(table: PositionTable) -> str:
    (n_positions, d_model), whose = table.values.shape, table.whose
    size = say("{positions:,} positions × {dimensions:,} dimensions", positions=n_positions, dimensions=d_model)
    if not table.checkpoint.config.placing.parameters:
        return say(
            "The table of {owner} is computed, not learned. It has {size} and no parameters.", owner=whose, size=size
        )
    return say(
        "The table of {owner} is learned. It has {size} = {n:,} parameters, trained like all other parameters.",
        owner=whose,
        size=size,
        n=n_positions * d_model,
    )


def _meaning(table: PositionTable) -> str:
    gap = digits(table.difference)
    if table.follows:
        return say(
            "The values in this table differ from the formula by at most {gap}. That is rounding error, so the "
            "table follows the formula.",
            gap=gap,
        )
    if not table.checkpoint.config.placing.parameters:
        return say(
            "The values in this table differ from the paper's formula by at most {gap}: they are also sinusoids, "
            "but from a different formula.",
            gap=gap,
        )
    return say("The values in this table differ from the formula by up to {gap}, while the values themselves are "
               "as large as {largest:.2f}, so the table does not follow the formula. That is not a fault: position "
               "vectors only need to distinguish positions, and training decides how.", gap=gap,
               largest=float(np.abs(table.values).max()))  # fmt: skip


def _similarity(table: PositionTable) -> None:
    show_beside(table_pictures.similarity, table_pictures.distance, table)
    drawing.explain(drawing.plain(_what_resembles(table)))
    position_controls.choose_count(table.checkpoint.config.max_len, table.slot)


def _what_resembles(table: PositionTable) -> str:
    spread, name = table.by_distance, table.measure
    lengths = np.linalg.norm(table.values[: table.count].astype(np.float64), axis=1)
    most, least, longest = digits(spread.spread), lengths.min(), lengths.max()
    differs = say(
        "For pairs of positions that are equally far apart, the similarity ({name}) differs by up to {most}, "
        "so it depends not only on the distance but also on the positions themselves.",
        name=name,
        most=most,
    )
    if spread.spread < 1e-4 * max(1e-12, float(np.abs(spread.mean).max())):
        differs = say(
            "For pairs of positions that are equally far apart, the similarity ({name}) differs by at most {most}: "
            "only the distance between two positions matters, not the positions themselves.",
            name=name,
            most=most,
        )
    if longest - least <= 0.01:
        return joined(" ", [differs, say("All position vectors have length {length:.2f}.", length=lengths.mean())])
    ends = say("The lengths of the position vectors range from {least:.2f} to {most:.2f}.", least=least, most=longest)
    return joined(" ", [differs, ends])


def _shift(table: PositionTable) -> None:
    if not table.shifts:
        name = drawing.plain(table.checkpoint.name)
        st.info(say("{name} has too few positions or dimensions to show a shift.", name=name))
        return
    if table.most_shift > 1:
        controls.slider(controls.field(table.slot, "shift"), say("Shift k (positions)"), 1, table.most_shift)
    show(table_pictures.points, table)
    drawing.explain(*map(drawing.plain, _what_turns(table) if table.follows else _what_fits(table)))
    position_controls.choose_pair(table)


def _what_turns(table: PositionTable) -> Iterator[str]:
    """How a shift turns the pair, how exactly it turns all pairs, and what has no pair."""
    shift, angle = table.shift, table_pictures.angle(table)
    yield say(
        "A shift by k = {shift} turns this pair of dimensions by k·wᵢ = {radians:.4g} rad = {degrees:,.4g}°, "
        "whatever the position p.",
        shift=shift,
        radians=angle,
        degrees=np.degrees(angle),
    )
    error = digits(float(study.rotation_errors(table.measured, shift).max()))
    n, n_pairs = len(table.measured) - shift, table.d_model // 2
    yield say(
        "The rotation Rₖ turns all {pairs} pairs of dimensions, each by its own angle. Over the first {n} of {all:,} "
        "positions p, Rₖ·PE(p) differs from PE(p+{shift}) by at most {error}.",
        pairs=n_pairs,
        n=n,
        all=len(table.values) - shift,
        shift=shift,
        error=error,
    )
    if (last := table.d_model - 1) % 2 == 0:
        yield say("Dimension {last} is a sine without a cosine, so it cannot be turned and is not included.", last=last)


def _what_fits(table: PositionTable) -> Iterator[str]:
    """How far a rotation and the best linear map miss the table."""
    fit, d_model = table.fit, table.d_model
    yield say(
        "In this table, the formula's rotation Rₖ is not the same as a shift: Rₖ·PE(p) differs from PE(p+{shift}) "
        "by up to {error:.2f}.",
        shift=table.shift,
        error=float(study.rotation_errors(table.measured, table.shift).max()),
    )
    n_fitted, n_held_out = fit.n_fitted, len(fit.held_out) - fit.n_fitted
    yield say(
        "The best linear map M was fitted on every second position ({n_fitted} in all); its error on these "
        "positions is {error:.0%}. On the held-out positions ({n_held_out} in all), its error is {held_out:.0%}. "
        "For comparison, always predicting the mean vector of the fitted positions gives an error of {mean:.0%}.",
        n_fitted=n_fitted,
        error=fit.fitted_error,
        n_held_out=n_held_out,
        held_out=fit.held_out_error,
        mean=fit.constant_error,
    )
    if n_fitted <= d_model:
        yield say("So few positions can always be fitted in {dimensions} dimensions.", dimensions=d_model)


MOVED = 512  # places to which a query and a key are moved together


def in_attention(shown: PositionScene, run: OpenRun | None) -> None:
    """Draw the chosen part; it is about no sentence."""
    turning = shown.turning
    if turning is None:
        show_beside(table_pictures.bias_curves, table_pictures.bias_map, shown, take=partial(take_head, shown.slot))
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


def _take_pair(shown: PositionScene, turning: Turning) -> Callable[[int], None]:
    """Callback with a pair; it holds no model."""
    slot, n_pairs = shown.slot, turning.n_pairs
    return lambda pair: session.replace(slot, dims=(pair, pair + n_pairs))


def _rotations(shown: PositionScene, turning: Turning) -> None:
    show_beside(table_pictures.rotations, table_pictures.waves, shown, take=_take_pair(shown, turning))
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


def _pair(shown: PositionScene, turning: Turning) -> None:
    pair, n, speed = shown.pair, turning.n_pairs, float(turning.speeds[shown.pair])
    names = {
        one: say("Pair {pair}, dimensions {first} and {second}: one turn in {length} positions", pair=one, first=one,
                 second=one + n, length=short(turning.wavelengths[one]))
        for one in range(n)
    }  # fmt: skip
    kept = controls.ControlBinding(f"{shown.slot}rotary_pair", pair, _take_pair(shown, turning))
    controls.menu(kept, say("Pair of dimensions"), names)
    show_beside(table_pictures.circle, table_pictures.product, shown)
    said = say("From one position to the next, this pair turns by wᵢ = {radians} rad = {degrees}°; over the {n:,} "
               "positions that this model can read, it makes {turns:.4g} full turns.", radians=digits(speed),
               degrees=digits(float(np.degrees(speed))), n=shown.config.max_len,
               turns=(shown.config.max_len - 1) * speed / (2 * np.pi))  # fmt: skip
    drawing.explain(drawing.plain(said))


def _distance(shown: PositionScene, turning: Turning) -> None:
    show(table_pictures.even, shown)
    n = min(MOVED, shown.config.max_len)
    unit = np.ones(turning.d_head) / np.sqrt(turning.d_head)
    apart = min(3, shown.config.max_len - 1)
    error = moved_together(unit, unit, turning, distance=-apart, n=max(1, n - apart))
    said = say("Only the distance matters: if a query and a key stay {apart} tokens apart and move together "
               "through {n} positions, their dot product changes by at most {error}, which is the rounding error "
               "of 32-bit numbers.", apart=apart, n=max(1, n - apart), error=digits(error))  # fmt: skip
    drawing.explain(drawing.plain(said))


TOKEN, BIAS_LAYER = "embedding_token", "bias_layer"
LAYER, HEAD, QUERY, KEY = "rotary_layer", "rotary_head", "rotary_query", "rotary_key"


def in_sentence(table: PositionTable | PositionScene, run: OpenRun | None) -> None:
    """Draw the sentence, and what positions do in it."""
    if run is None:
        return
    on_source, added = run.view.side == "source", run.checkpoint.config.placing.adds == "table"
    still = one_token(run, run.view.key or 0) if on_source and added else Still() if on_source or added else None
    frame.sentence(run, compact=True, still=still)
    o = attempt(lambda: open_sentence(run))
    if isinstance(o, Start):
        _starts(o)
    elif o is not None and o.turning is None:
        _biased(o)
    elif o is not None:
        _turned(o)


def _starts(o: Start) -> None:
    pieces = {place: say("Token {n}: {piece}", n=place + 1, piece=piece) for place, piece in enumerate(o.pieces)}
    kept = controls.field(o.slot, PLACES[o.side], key=TOKEN)
    show(sentence_pictures.strengths, o)
    controls.menu(kept, say("Token"), pieces, otherwise=o.chosen, bare=True, width=240)
    show(sentence_pictures.rows, o)
    drawing.explain(drawing.plain(_who_drowns_whom(o)))


def _who_drowns_whom(start: Start) -> str:
    raw, token, position, total = (
        float(rms(vectors).mean()) for vectors in (start.embedding, start.tokens, start.positions, start.total)
    )
    d_model = start.embedding.shape[1]
    sizes = say("Root mean square, averaged over these tokens: {raw:.3f} for the embedding (this model does "
                "not multiply it by √{d_model} = {factor:.4g}), {position:.3f} for the position vector and "
                "{total:.3f} for their sum.", raw=raw, d_model=d_model, factor=np.sqrt(d_model),
                position=position, total=total)  # fmt: skip
    if start.scale != 1:
        sizes = say("Root mean square, averaged over these tokens: {raw:.3f} for the embedding ({token:.3f} after "
                    "multiplying it by √{d_model} = {factor:.4g}), {position:.3f} for the position vector and "
                    "{total:.3f} for their sum.", raw=raw, d_model=d_model, factor=np.sqrt(d_model), token=token,
                    position=position, total=total)  # fmt: skip
    return joined(" ", [sizes, _compared(token, position)])


def _compared(token: float, position: float) -> str:
    if min(token, position) <= 0:
        return say("In the sum, the embedding or the position vector is 0.")
    times = max(token, position) / min(token, position)
    if token >= position:
        return say("In the sum, the embedding is {times:.1f} times as large as the position vector.", times=times)
    return say("In the sum, the position vector is {times:.1f} times as large as the embedding.", times=times)


def _biased(o: InScores) -> None:
    controls.menu_of_layers(_kept(o, BIAS_LAYER, "layer", o.layer), o.shape[0], all_together=False)
    found = attempt(lambda: o.spreads)
    if found is None:
        return
    show(sentence_pictures.bias_spreads, o, take=partial(take_head, o.slot))
    more = int((found.bias[o.layer] > found.content[o.layer]).sum())
    said = say("Nothing is added to the embeddings, so there is no sum of embedding and position to show. In "
               "{more} of the {n} heads of layer {layer}, this sentence's scores depend more on distance than on "
               "content.", layer=o.layer + 1, more=more, n=o.shape[1])  # fmt: skip
    drawing.explain(drawing.plain(said))


def _turned(o: InScores) -> None:
    with st.container(horizontal=True, gap="small"):
        controls.menu_of_layers(_kept(o, LAYER, "layer", o.layer), o.shape[0], all_together=False)
        controls.menu_of_heads(_kept(o, HEAD, "head", o.head), o.shape[1], all_together=False)
        _menu(o, QUERY, "query", o.query, o.axes.queries, say("The step's token"))
        _menu(o, KEY, "key", o.key, o.axes.keys, say("The token before the query"))
    attempt(lambda: show(sentence_pictures.scores, o))


def _menu(
    o: InScores, widget: str, field: Literal["query", "key"], value: int, pieces: list[str], follows: str
) -> None:
    """Draw the choice of a query or a key; where there are steps its first entry goes with the step."""
    goes, asked = o.axes.current is not None, o.shown.view.get(field)
    options: dict[int | None, str] = ({None: follows} if goes else {}) | {**controls.labelled(pieces)}
    chosen = asked if asked in options else None
    kept = _kept(o, widget, field, chosen if goes else value)
    controls.menu(kept, say("Query") if field == "query" else say("Key"), options, bare=True, width=220)


def _kept(o: InScores, widget: str, field: str, value: int | None) -> controls.ControlBinding:
    return replace(controls.field(o.slot, field, key=widget), value=value)
