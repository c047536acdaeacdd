"""The controls of the Positions page, and what they leave chosen."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from transformer.analysis import position_study as study
from transformer.checkpoint.load import Checkpoint
from ui.runs import loading
from ui.runs.sides import SIDES, STACKS
from ui.shared import choices
from ui.shared.numbers import short
from ui.state import session
from ui.state.view import MAIN, MAX_DIMS, PositionsPanel, Side, Slot, View

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
        slot: Where it is drawn.
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
    slot: Slot

    def key(self, name: str) -> str:
        """The key of something that is drawn from this table."""
        return f"{self.slot}{name}"

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


def draw(checkpoint: Checkpoint, slot: Slot = MAIN) -> Table:
    """Draw the controls of the page and of its chosen part, and return what is to be drawn."""
    _settle(checkpoint, slot)
    with st.container(horizontal=True, gap="medium", key=f"{slot}positions_controls"):
        panel = choices.choose(choices.field(slot, "positions_panel"), "Part", PARTS)
        alone = _differ(checkpoint)
        if alone or panel == "sentence":
            choices.choose(choices.field(slot, "side"), "Side", SIDES)
        if panel in ("table", "similarity"):
            _count(checkpoint.config.max_len, slot)
        if panel == "similarity":
            choices.choose(choices.field(slot, "cosine"), "Measure", {False: "Dot product", True: "Cosine"})
    return _table(checkpoint, slot, alone=alone)


def choose_dims(table: Table) -> None:
    """Draw the choice of dimensions whose curves are shown."""
    choices.several(
        choices.field(table.slot, "dims"),
        "Dimensions drawn as curves",
        range(table.d_model),
        most=MAX_DIMS,
        placeholder=f"{', '.join(map(str, spread(table.d_model)))}: choose your own",
    )


def choose_shift(table: Table) -> None:
    """Draw the choice of the shift and of the pair of dimensions."""
    left, right = st.columns(2)
    if table.most_shift > 1:
        with left:
            choices.slider(choices.field(table.slot, "shift"), "Shift k (positions)", 1, table.most_shift)
    with right:
        kept = choices.Kept(table.key(PAIR), table.pair, partial(_take_pair, table.slot))
        pairs = {pair: _pair_name(table, pair) for pair in range(table.d_model // 2)}
        choices.menu(kept, "Pair of dimensions", pairs)


def _take_pair(slot: Slot, pair: int) -> None:
    session.replace(slot, dims=(2 * pair, 2 * pair + 1))


def _pair_name(table: Table, pair: int) -> str:
    name = f"{2 * pair} and {2 * pair + 1}"
    return f"{name}: one turn in {short(study.wavelengths(table.d_model)[pair])} positions" if table.follows else name


def table_of(checkpoint: Checkpoint, side: Side) -> np.ndarray:
    """The checkpoint's own table of one side: [position, d_model]; do not write to it."""
    stack = checkpoint.model.encoder if side == "source" else checkpoint.model.decoder
    table: Any = stack.embedding.positions.table  # a buffer or a parameter
    values: np.ndarray = table.detach().numpy()
    return values


def _table(checkpoint: Checkpoint, slot: Slot, *, alone: bool) -> Table:
    view = session.view(slot)
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
        slot=slot,
    )


def _differ(checkpoint: Checkpoint) -> bool:
    return not np.array_equal(table_of(checkpoint, "source"), table_of(checkpoint, "target"))


def _count(max_len: int, slot: Slot) -> None:
    options = [count for count in COUNTS if count < max_len]
    options += [max_len] if max_len <= COUNTS[-1] else []
    own = max((n for n in options if n <= DEFAULT_COUNT), default=max_len)
    kept = choices.field(slot, "drawn", key=COUNT)
    if kept.value not in options:
        session.replace(slot, drawn=None)
    if len(options) > 1:
        choices.choose(kept, "Positions drawn", {count: str(count) for count in options}, otherwise=own)


def _settle(checkpoint: Checkpoint, slot: Slot) -> None:
    """Move what a link or another checkpoint left behind into what this table has."""
    view, d_model = session.view(slot), checkpoint.config.d_model
    if any(dim >= d_model for dim in view.dims):
        session.add_note(
            f"Dimensions from {d_model} on were asked for; {checkpoint.name} has 0 to {d_model - 1}.", slot
        )
    most = max(1, _most_shift(checkpoint.config.max_len))
    if view.shift > most:
        session.add_note(
            f"A shift by {view.shift} was asked for; the table of {checkpoint.name} is shifted by at most {most}.",
            slot,
        )
    dims = tuple(dim for dim in view.dims if dim < d_model)
    session.replace(slot, dims=dims, shift=min(view.shift, most))
