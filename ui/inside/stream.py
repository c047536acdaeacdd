"""The residual stream of every token by depth, what sub-layers add to it, and what norms do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import streamlit as st

import charts
from charts.embedding import embedding_rows_spec
from charts.lens import Depth
from charts.stream import (
    HOW_TO_READ_ADDED,
    HOW_TO_READ_KEPT,
    HOW_TO_READ_NORM,
    HOW_TO_READ_SIZE,
    HOW_TO_READ_STRIP,
)
from transformer.analysis import stream
from transformer.analysis.stream import Normed, Place, Stream
from ui.inside import tokens
from ui.runs import loading
from ui.runs.attempt import attempt
from ui.runs.open_run import OpenRun
from ui.runs.sides import SIDES, STACKS, StackName
from ui.shared import choices, drawing
from ui.shared.numbers import digits
from ui.state.view import Side

SIZE: Final = "stream_size"
KEPT: Final = "stream_kept"
ADDED: Final = "stream_added"
NORM: Final = "stream_norm"
STRIP: Final = "stream_strip"
TOKEN: Final = "stream_token"


@dataclass(frozen=True)
class OpenStream:
    """What the part draws.

    Attributes:
        run: What is looked at.
        side: Whose stream.
        pieces: The tokens that may be seen.
        chosen: The one that is looked at.
        recorded: What the pass recorded; its rows after `pieces` must not be seen.
        measured: The measures of the stream.
    """

    run: OpenRun
    side: Side
    pieces: list[str]
    chosen: int
    recorded: dict[str, np.ndarray]
    measured: Stream

    @property
    def stack(self) -> StackName:
        """Whose layers."""
        return STACKS[self.side]

    @property
    def whose(self) -> str:
        """The chosen token, for titles."""
        return self.pieces[self.chosen]


def draw(run: OpenRun) -> None:
    """Draw it."""
    with st.container(horizontal=True, gap="medium", key=run.key("stream_controls")):
        side = choices.choose(choices.field(run.slot, "side"), "Side", SIDES)
        pieces = tokens.pieces_of(run, side)
        chosen = tokens.choose(run, side, pieces, key=TOKEN, width=340)
    config, stack = run.checkpoint.config, STACKS[side]
    recorded = attempt(lambda: loading.replay(run.checkpoint, run.trace, stream.sites(config, stack)))
    if recorded is None:
        return
    measured = stream.measure(recorded, config, stack, n_tokens=len(pieces))
    o = OpenStream(run, side, pieces, chosen, recorded, measured)
    st.markdown(drawing.plain(what_happens(o)))
    left, right = st.columns(2, gap="large")
    with left:
        _lines(o, SIZE)
    with right:
        _lines(o, KEPT)
    _added(o)
    _norms(o)


def _depths(places: tuple[Place, ...]) -> list[Depth]:
    return [Depth(place.short, place.name) for place in places]


# ------------------------------------------------------------------------------------------------ the stream


def what_happens(o: OpenStream) -> str:
    """What this model's norms do to the size of the stream, with this sentence's numbers."""
    config, measured = o.run.checkpoint.config, o.measured
    n_sublayers = len(measured.sublayers)
    first, last = (float(measured.size[place].mean()) for place in (0, n_sublayers))
    kept = float(measured.kept[n_sublayers].mean())
    sizes = f"in the mean over these tokens it goes from {first:.2f} to {last:.2f} in root mean square"
    if config.norm == "pre":
        said = f"This model is pre-norm: sub-layers read a normalised copy and add to the stream itself; {sizes}."
        if config.final_norm:
            said += f" The final norm brings it to {float(measured.size[-1].mean()):.2f}."
    else:
        said = f"This model is post-norm: a norm follows every sum, so the stream is rescaled each time; {sizes}."
    return f"{said} After the last layer its cosine with what it began as is {kept:.2f}."


def _lines(o: OpenStream, key: str) -> None:
    size = key == SIZE
    figure = charts.stream_lines_spec(
        _depths(o.measured.places),
        o.measured.size if size else o.measured.kept,
        o.pieces,
        chosen=o.chosen,
        title="How large the stream is" if size else "How much of the embedding is left",
        value_name="root mean square" if size else "cosine",
        limits=None if size else (min(0.0, float(np.nan_to_num(o.measured.kept).min()) - 0.05), 1.05),
        colour=o.side,
    )
    what = "Root mean square of the vector" if size else "Cosine with its embedding plus position"
    alt = f"{what} of each of {len(o.pieces)} tokens by depth in the {STACKS[o.side]}; {o.whose} is chosen."
    how_to_read = HOW_TO_READ_SIZE if size else HOW_TO_READ_KEPT
    drawing.chart(
        figure,
        key=o.run.key(key),
        alt=alt,
        how_to_read=how_to_read,
        on_click=tokens.clicked(o.run, o.side, key, len(o.pieces)),
    )


def _added(o: OpenStream) -> None:
    figure = charts.stream_added_spec(
        _depths(o.measured.sublayers),
        o.measured.before[:, o.chosen],
        o.measured.added[:, o.chosen],
        o.measured.aligned[:, o.chosen],
        title=f"What each sub-layer adds to the stream of {o.whose}",
        colour=o.side,
    )
    alt = f"Size of the stream of {o.whose} and of what each sub-layer of the {STACKS[o.side]} adds to it."
    drawing.chart(figure, key=o.run.key(ADDED), alt=alt, how_to_read=HOW_TO_READ_ADDED)


# ------------------------------------------------------------------------------------------------ the norms


def _norms(o: OpenStream) -> None:
    config = o.run.checkpoint.config
    where = stream.norm_places(config, o.stack)
    pre = "before" if config.norm == "pre" else "after"
    names = {place: norm_name(one, pre) for place, one in enumerate(where)}
    chosen = choices.menu(choices.field(o.run.slot, "norm"), "Norm", names, width=340)
    place = where[chosen]
    found = stream.normed(o.recorded, o.run.checkpoint.model, o.stack, place, n_tokens=len(o.pieces))
    st.markdown(drawing.plain(what_a_norm_does(found)))
    name = names[chosen]
    figure = charts.norm_effect_spec(
        o.pieces,
        means=(found.mean_before, found.mean_after),
        deviations=(found.deviation_before, found.deviation_after),
        chosen=o.chosen,
        title=f"{name[:1].upper()}{name[1:]}",
        token_axis=tokens.AXES[o.side],
        colour=o.side,
    )
    alt = f"Mean and standard deviation of each token's vector before and after {name}."
    on_click = tokens.clicked(o.run, o.side, NORM, len(o.pieces))
    drawing.chart(figure, key=o.run.key(NORM), alt=alt, how_to_read=HOW_TO_READ_NORM, on_click=on_click)
    rows = {"before": found.before, "standardised": found.standardised, "after": found.after}
    figure = embedding_rows_spec(
        np.stack([vectors[o.chosen] for vectors in rows.values()]),
        list(rows),
        title=f"{o.whose}: its vector before and after",
    )
    alt = f"The vector of {o.whose} before {name}, standardised, and after, one column a dimension."
    drawing.chart(figure, key=o.run.key(STRIP), alt=alt, how_to_read=HOW_TO_READ_STRIP)


def norm_name(place: Place, where: str) -> str:
    """A norm in a few words.

    Args:
        place: Its place.
        where: "before" or "after" its sub-layer.
    """
    return place.name if place.layer is None else f"the norm {where} {place.name}"


def what_a_norm_does(found: Normed) -> str:
    """The range of the numbers before and after, and whether the formula gives what the model has."""
    before, after = (_range(values) for values in (found.deviation_before, found.deviation_after))
    gamma = _range(found.gamma)
    return (
        f"The standard deviation of a token's {found.before.shape[1]} numbers is {before} before and {after} after; "
        f"γ is {gamma} by dimension. The formula gives the model's numbers to within {digits(found.difference)}."
    )


def _range(values: np.ndarray) -> str:
    return f"{values.min():.2f} to {values.max():.2f}"
