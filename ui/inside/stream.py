"""The residual stream of every token by depth, what sub-layers add to it, and what norms do."""

from __future__ import annotations

from collections.abc import Callable
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
from transformer.errors import GlassformerError
from ui.components.plotly.view import last_click
from ui.runs import loading
from ui.runs.open_run import OpenRun, sentence
from ui.runs.sides import SIDES, STACKS
from ui.runs.work import BusyError
from ui.shared import drawing
from ui.shared.choices import KEEP
from ui.shared.numbers import digits
from ui.state import keys, session
from ui.state.view import Side, View

SIZE: Final = "stream_size"
KEPT: Final = "stream_kept"
ADDED: Final = "stream_added"
NORM: Final = "stream_norm"
STRIP: Final = "stream_strip"
TOKEN: Final = "stream_token"

_AXES: Final[dict[Side, str]] = {"source": "Source piece", "target": "Reads → predicts"}


@dataclass(frozen=True)
class Opened:
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
    def stack(self) -> stream.Stack:
        """Whose layers."""
        return _stack(self.side)

    @property
    def whose(self) -> str:
        """The chosen token, for titles."""
        return self.pieces[self.chosen]


def draw(run: OpenRun) -> None:
    """Draw it."""
    st.session_state.setdefault(keys.SIDE, View.side)
    with st.container(horizontal=True, gap="medium", key="stream_controls"):
        st.segmented_control(
            "Side", list(SIDES), key=keys.SIDE, format_func=SIDES.__getitem__, required=True, persist_state=KEEP
        )
        pieces = list(run.trace.src_pieces) if run.view.side == "source" else run.looking.row_labels()
        chosen = _choose_token(run, pieces)
    config, stack = run.checkpoint.config, _stack(run.view.side)
    try:
        recorded = loading.replay(run.checkpoint, run.trace, stream.sites(config, stack))
    except (GlassformerError, BusyError) as error:
        st.error(drawing.plain(sentence(error)))
        return
    measured = stream.measure(recorded, config, stack, n_tokens=len(pieces))
    o = Opened(run, run.view.side, pieces, chosen, recorded, measured)
    st.markdown(drawing.plain(what_happens(o)))
    left, right = st.columns(2, gap="large")
    with left:
        _lines(o, SIZE)
    with right:
        _lines(o, KEPT)
    _added(o)
    _norms(o)


def _stack(side: Side) -> stream.Stack:
    return "encoder" if side == "source" else "decoder"


def _depths(places: tuple[Place, ...]) -> list[Depth]:
    return [Depth(place.short, place.name) for place in places]


# ------------------------------------------------------------------------------------------------ choosing a token


def _choose_token(run: OpenRun, pieces: list[str]) -> int:
    """Draw the choice of a token: a source piece, or the step whose row it is."""
    last = len(pieces) - 1
    st.session_state[TOKEN] = min(run.view.key or 0, last) if run.view.side == "source" else run.view.step
    side = run.view.side
    chosen: int = st.selectbox(
        "Token" if side == "source" else "Token (its step)",
        range(len(pieces)),
        key=TOKEN,
        format_func=lambda token: f"{token + 1}: {pieces[token]}" if token <= last else "",
        on_change=lambda: _take(side, st.session_state[TOKEN]),
        width=340,
    )
    return chosen


def _take(side: Side, token: object) -> None:
    """Look at a token; one of the output belongs to a step, so the step follows."""
    if not isinstance(token, int):
        return
    if side == "source":
        st.session_state[keys.KEY] = token
    else:
        session.move_to(token)


def _on_click(o: Opened, key: str) -> Callable[[], None]:
    """Take the token that was clicked. A session keeps its callbacks, so this one holds no run and no arrays."""
    side, count = o.side, len(o.pieces)

    def take() -> None:
        click = last_click(key)
        if click is not None and isinstance(click.customdata, int) and 0 <= click.customdata < count:
            _take(side, click.customdata)

    return take


# ------------------------------------------------------------------------------------------------ the stream


def what_happens(o: Opened) -> str:
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


def _lines(o: Opened, key: str) -> None:
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
    drawing.chart(figure, key=key, alt=alt, how_to_read=how_to_read, on_click=_on_click(o, key))


def _added(o: Opened) -> None:
    figure = charts.stream_added_spec(
        _depths(o.measured.sublayers),
        o.measured.before[:, o.chosen],
        o.measured.added[:, o.chosen],
        o.measured.aligned[:, o.chosen],
        title=f"What each sub-layer adds to the stream of {o.whose}",
        colour=o.side,
    )
    alt = f"Size of the stream of {o.whose} and of what each sub-layer of the {STACKS[o.side]} adds to it."
    drawing.chart(figure, key=ADDED, alt=alt, how_to_read=HOW_TO_READ_ADDED)


# ------------------------------------------------------------------------------------------------ the norms


def _norms(o: Opened) -> None:
    config = o.run.checkpoint.config
    where = stream.norm_places(config, o.stack)
    if st.session_state.get(keys.NORM) not in range(len(where)):
        st.session_state[keys.NORM] = 0
    pre = "before" if config.norm == "pre" else "after"
    chosen: int = st.selectbox(
        "Norm",
        range(len(where)),
        key=keys.NORM,
        format_func=lambda place: norm_name(where[place], pre) if place < len(where) else "",
        width=340,
        persist_state=KEEP,
    )
    place = where[chosen]
    found = stream.normed(o.recorded, o.run.checkpoint.model, o.stack, place, n_tokens=len(o.pieces))
    st.markdown(drawing.plain(what_a_norm_does(found)))
    name = norm_name(place, pre)
    figure = charts.norm_effect_spec(
        o.pieces,
        means=(found.mean_before, found.mean_after),
        deviations=(found.deviation_before, found.deviation_after),
        chosen=o.chosen,
        title=f"{name[:1].upper()}{name[1:]}",
        token_axis=_AXES[o.side],
        colour=o.side,
    )
    alt = f"Mean and standard deviation of each token's vector before and after {name}."
    drawing.chart(figure, key=NORM, alt=alt, how_to_read=HOW_TO_READ_NORM, on_click=_on_click(o, NORM))
    rows = {"before": found.before, "standardised": found.standardised, "after": found.after}
    figure = embedding_rows_spec(
        np.stack([vectors[o.chosen] for vectors in rows.values()]),
        list(rows),
        title=f"{o.whose}: its vector before and after",
    )
    alt = f"The vector of {o.whose} before {name}, standardised, and after, one column a dimension."
    drawing.chart(figure, key=STRIP, alt=alt, how_to_read=HOW_TO_READ_STRIP)


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
