"""The controls of the Positions page, and what they leave chosen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st

from transformer.analysis import position_study as study
from transformer.checkpoint.load import Checkpoint
from ui.runs import loading
from ui.runs.sides import SIDES, STACKS
from ui.shared.choices import KEEP
from ui.shared.numbers import short
from ui.state import keys
from ui.state import session as state
from ui.state.view import MAX_DIMS, PositionsPanel, Side, View

PARTS: dict[PositionsPanel, str] = {
    "table": "Table",
    "similarity": "Similarity",
    "shift": "Shift",
    "sentence": "Sentence",
}
COUNT = "positions_count"
PAIR = "positions_pair"
DEFAULT_COUNT = 64
COUNTS = (16, 32, 64, 128, 256, 512)
MOST_SHIFTED = 512  # positions that a shift is measured on
FOLLOWS = 1e-3
"""A table nearer to the formula than this is the formula, rounded."""


@dataclass(frozen=True)
class Table:
    """The table of one stack, and what of it is looked at.

    Attributes:
        name: The checkpoint's.
        content_hash: The checkpoint's.
        values: [position, d_model].
        side: Whose it is.
        alone: Whether the other side's table has other values.
        learned: Whether it holds parameters.
        count: How many positions are drawn.
        view: What is looked at.
        difference: The largest difference of any value from the formula.
    """

    name: str
    content_hash: str
    values: np.ndarray
    side: Side
    alone: bool
    learned: bool
    count: int
    view: View
    difference: float

    @property
    def follows(self) -> bool:
        """Whether the table is the formula's, rounded."""
        return self.difference < FOLLOWS

    @property
    def d_model(self) -> int:
        """Number of dimensions."""
        return int(self.values.shape[1])

    @property
    def whose(self) -> str:
        """The table in a few words, for titles."""
        return f"{self.name}, {STACKS[self.side]}" if self.alone else self.name

    @property
    def dims(self) -> tuple[int, ...]:
        """The dimensions whose curves are drawn: those chosen, else a few spread over the table."""
        return self.view.dims or spread(self.d_model)

    @property
    def pair(self) -> int:
        """The pair of dimensions that is followed through a shift; -1 if there is none."""
        return min(self.view.dims[0] // 2 if self.view.dims else 0, self.d_model // 2 - 1)

    @property
    def measured(self) -> np.ndarray:
        """The positions that a shift is measured on, the first ones: [position, d_model]."""
        return self.values[:MOST_SHIFTED]

    @property
    def most_shift(self) -> int:
        """The largest shift that leaves two positions to look at."""
        return _most_shift(len(self.values))


def _most_shift(n_positions: int) -> int:
    return min(n_positions, MOST_SHIFTED) - 2


def spread(d_model: int) -> tuple[int, ...]:
    """A few dimensions: a sine and its cosine, two of longer waves, and the last."""
    return tuple(sorted({0, min(1, d_model - 1), d_model // 8, d_model // 4, d_model - 1}))


def draw(checkpoint: Checkpoint) -> Table:
    """Draw the controls of the page and of its chosen part, and return what is to be drawn."""
    _settle(checkpoint)
    with st.container(horizontal=True, gap="medium", key="positions_controls"):
        panel = st.segmented_control(
            "Part",
            list(PARTS),
            key=keys.POSITIONS_PANEL,
            format_func=PARTS.__getitem__,
            required=True,
            persist_state=KEEP,
        )
        alone = _differ(checkpoint)
        if alone or panel == "sentence":
            st.segmented_control(
                "Side", list(SIDES), key=keys.SIDE, format_func=SIDES.__getitem__, required=True, persist_state=KEEP
            )
        if panel in ("table", "similarity"):
            _count(checkpoint.config.max_len)
        if panel == "similarity":
            st.segmented_control(
                "Measure",
                [False, True],
                key=keys.COSINE,
                format_func=lambda cosine: "Cosine" if cosine else "Dot product",
                required=True,
                persist_state=KEEP,
            )
    view = state.current().view
    return _table(checkpoint, view, alone=alone)


def choose_dims(table: Table) -> None:
    """Draw the choice of dimensions whose curves are shown."""
    st.multiselect(
        "Dimensions drawn as curves",
        range(table.d_model),
        key=keys.DIMS,
        max_selections=MAX_DIMS,
        placeholder=f"{', '.join(map(str, spread(table.d_model)))}: choose your own",
        persist_state=KEEP,
    )


def choose_shift(table: Table) -> None:
    """Draw the choice of the shift and of the pair of dimensions."""
    st.session_state[PAIR] = table.pair

    def follow() -> None:
        pair = st.session_state[PAIR]
        st.session_state[keys.DIMS] = [2 * pair, 2 * pair + 1]

    left, right = st.columns(2)
    if table.most_shift > 1:
        left.slider("Shift k (positions)", 1, table.most_shift, key=keys.SHIFT, persist_state=KEEP)
    right.selectbox(
        "Pair of dimensions",
        range(table.d_model // 2),
        key=PAIR,
        format_func=lambda pair: _pair_name(table, pair),
        on_change=follow,
    )


def _pair_name(table: Table, pair: int) -> str:
    name = f"{2 * pair} and {2 * pair + 1}"
    return f"{name}: one turn in {short(study.wavelengths(table.d_model)[pair])} positions" if table.follows else name


def table_of(checkpoint: Checkpoint, side: Side) -> np.ndarray:
    """The checkpoint's own table of one side: [position, d_model]; do not write to it."""
    stack = checkpoint.model.encoder if side == "source" else checkpoint.model.decoder
    table: Any = stack.embedding.positions.table  # a buffer or a parameter
    values: np.ndarray = table.detach().numpy()
    return values


def _table(checkpoint: Checkpoint, view: View, *, alone: bool) -> Table:
    values = table_of(checkpoint, view.side)
    difference = loading.runner().compute(
        ("positions", checkpoint.content_hash, view.side, "formula"),
        lambda: study.difference_from_formula(values),
        nbytes=lambda _: 8,
    )
    return Table(
        name=checkpoint.name,
        content_hash=checkpoint.content_hash,
        values=values,
        side=view.side,
        alone=alone,
        learned=checkpoint.config.positions == "learned",
        count=min(view.drawn or DEFAULT_COUNT, len(values)),
        view=view,
        difference=difference,
    )


def _differ(checkpoint: Checkpoint) -> bool:
    return not np.array_equal(table_of(checkpoint, "source"), table_of(checkpoint, "target"))


def _count(max_len: int) -> None:
    options = [count for count in COUNTS if count < max_len]
    options += [max_len] if max_len <= COUNTS[-1] else []
    asked, own = st.session_state.get(keys.DRAWN), max((n for n in options if n <= DEFAULT_COUNT), default=max_len)
    if asked not in options:
        st.session_state[keys.DRAWN] = None
    if len(options) < 2:
        return
    st.session_state[COUNT] = asked if asked in options else own

    def take() -> None:
        st.session_state[keys.DRAWN] = st.session_state[COUNT]

    st.segmented_control("Positions drawn", options, key=COUNT, required=True, on_change=take)


def _settle(checkpoint: Checkpoint) -> None:
    """Move what a link or another checkpoint left behind into what this table has."""
    session, d_model = st.session_state, checkpoint.config.d_model
    session.setdefault(keys.POSITIONS_PANEL, View.positions_panel)
    session.setdefault(keys.SIDE, View.side)
    session.setdefault(keys.COSINE, False)
    dims = tuple(session.get(keys.DIMS) or ())
    if any(dim >= d_model for dim in dims):
        state.add_note(f"Dimensions from {d_model} on were asked for; {checkpoint.name} has 0 to {d_model - 1}.")
    session[keys.DIMS] = [dim for dim in dims if dim < d_model]
    most, shift = max(1, _most_shift(checkpoint.config.max_len)), session.get(keys.SHIFT) or View.shift
    if shift > most:
        state.add_note(
            f"A shift by {shift} was asked for; the table of {checkpoint.name} is shifted by at most {most}."
        )
    session[keys.SHIFT] = min(max(shift, 1), most)
