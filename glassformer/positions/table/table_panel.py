"""The parts of the Positions page about a table: itself, who resembles whom in it, what a shift does."""

from collections.abc import Iterator

import numpy as np

from glassformer.positions import PositionsLook, position_controls
from glassformer.positions.positions_page import PositionTable
from glassformer.positions.table import table_pictures as pictures
from glassformer.runs.open_run import OpenRun
from glassformer.runs.show import show, show_beside
from glassformer.shared import controls, drawing
from glassformer.shared.i18n import st
from transformer.analysis import positions as study
from transformer.i18n import joined, say
from transformer.i18n.sentence import digits


def draw(table: PositionTable, run: OpenRun | None) -> None:
    """Draw the chosen part; it is about no sentence."""
    if note := position_controls.about_layout(table.checkpoint.config):
        drawing.explain(drawing.plain(note))
    {"table": _table, "similarity": _similarity, "shift": _shift}[table.view.of(PositionsLook).positions_panel](table)
    position_controls.choose_side(table)


# ------------------------------------------------------------------------------------------------ the table


def _table(table: PositionTable) -> None:
    show(pictures.whole, table)
    drawing.explain(*map(drawing.plain, (_origin(table), _who_has_it(table), _meaning(table))))
    if table.follows:
        controls.switch(controls.field(table.slot, "apart"), say("Separate sines and cosines"))
    position_controls.choose_dims(table)
    show(pictures.curves, table)


def _origin(table: PositionTable) -> str:
    n_positions, d_model = table.values.shape
    size = say("{positions:,} positions × {dimensions:,} dimensions", positions=n_positions, dimensions=d_model)
    owner = table.checkpoint.name
    if table.alone and table.view.side == "source":
        owner = say("the encoder of {name}", name=table.checkpoint.name)
    elif table.alone:
        owner = say("the decoder of {name}", name=table.checkpoint.name)
    if not table.checkpoint.config.placing.parameters:
        return say(
            "The table of {owner} is computed, not learned. It has {size} and no parameters.", owner=owner, size=size
        )
    return say(
        "The table of {owner} is learned. It has {size} = {n:,} parameters, trained like all other parameters.",
        owner=owner,
        size=size,
        n=n_positions * d_model,
    )


def _who_has_it(table: PositionTable) -> str:
    if table.only and table.view.side == "source":
        return say("The model has no other table of positions, because it is encoder-only.")
    if table.only:
        return say("The model has no other table of positions, because it is decoder-only.")
    if table.alone:
        return say("Encoder and decoder have different tables of positions.")
    return say("Encoder and decoder have the same table of positions.")


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


# ------------------------------------------------------------------------------------------------ similarity


def _similarity(table: PositionTable) -> None:
    show_beside(pictures.similarity, pictures.distance, table)
    drawing.explain(drawing.plain(_what_resembles(table)))
    position_controls.choose_count(table)


def _what_resembles(table: PositionTable) -> str:
    spread, cosine, name = table.by_distance, table.look.cosine, table.measure
    lengths = np.linalg.norm(table.values[: table.count].astype(np.float64), axis=1)
    most = digits(spread.spread)
    by_distance = spread.spread < 1e-4 * max(1e-12, float(np.abs(spread.mean).max()))
    said = [
        say(
            "For pairs of positions that are equally far apart, the similarity ({name}) differs by at most {most}: "
            "only the distance between two positions matters, not the positions themselves.",
            name=name,
            most=most,
        )
        if by_distance
        else say(
            "For pairs of positions that are equally far apart, the similarity ({name}) differs by up to {most}, "
            "so it depends not only on the distance but also on the positions themselves.",
            name=name,
            most=most,
        )
    ]
    if np.ptp(lengths) <= 0.01:
        said.append(say("All position vectors have length {length:.2f}.", length=lengths.mean()))
    else:
        said.append(
            say(
                "The lengths of the position vectors range from {least:.2f} to {most:.2f}.",
                least=lengths.min(),
                most=lengths.max(),
            )
        )
        said += [] if by_distance or cosine else [say("The cosine ignores the lengths of the vectors.")]
    return joined(" ", said)


# ------------------------------------------------------------------------------------------------ a shift


def _shift(table: PositionTable) -> None:
    if not table.shifts:
        name = drawing.plain(table.checkpoint.name)
        st.info(say("{name} has too few positions or dimensions to show a shift.", name=name))
        return
    position_controls.choose_shift(table)
    show(pictures.points, table)
    drawing.explain(*map(drawing.plain, _what_turns(table) if table.follows else _what_fits(table)))
    position_controls.choose_pair(table)


def _what_turns(table: PositionTable) -> Iterator[str]:
    """How a shift turns the pair, how exactly it turns all pairs, and what has no pair."""
    shift, angle = table.shift, pictures.angle(table)
    yield say(
        "A shift by k = {shift} turns this pair of dimensions by k·wᵢ = {radians:.4g} rad = {degrees:,.4g}°, "
        "whatever the position p.",
        shift=shift,
        radians=angle,
        degrees=np.degrees(angle),
    )
    error = digits(float(study.rotation_errors(table.measured, shift).max()))
    n, n_pairs = len(table.measured) - shift, table.d_model // 2
    if n + shift == len(table.values):
        yield say(
            "The rotation Rₖ turns all {pairs} pairs of dimensions, each by its own angle. Over all {n} positions "
            "p, Rₖ·PE(p) differs from PE(p+{shift}) by at most {error}.",
            pairs=n_pairs,
            n=n,
            shift=shift,
            error=error,
        )
    else:
        yield say(
            "The rotation Rₖ turns all {pairs} pairs of dimensions, each by its own angle. Over the first {n} of "
            "{all:,} positions p, Rₖ·PE(p) differs from PE(p+{shift}) by at most {error}.",
            pairs=n_pairs,
            n=n,
            all=len(table.values) - shift,
            shift=shift,
            error=error,
        )
    if table.d_model % 2:
        yield say(
            "Dimension {last} is a sine without a cosine, so it cannot be turned and is not included.",
            last=table.d_model - 1,
        )


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
    if n_fitted > d_model:
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
        return
    yield say(
        "The best linear map M was fitted on every second position ({n_fitted} in all); its error on these "
        "positions is {error:.0%} (so few can always be fitted in {dimensions} dimensions). On the held-out "
        "positions ({n_held_out} in all), its error is {held_out:.0%}. For comparison, always predicting the mean "
        "vector of the fitted positions gives an error of {mean:.0%}.",
        n_fitted=n_fitted,
        error=fit.fitted_error,
        dimensions=d_model,
        n_held_out=n_held_out,
        held_out=fit.held_out_error,
        mean=fit.constant_error,
    )
