"""The controls of the Positions page, and what they leave chosen."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from transformer.analysis import position_study as study
from transformer.analysis.position_tables import own_table
from transformer.checkpoint.load import Checkpoint
from transformer.model.anatomy import anatomy
from transformer.model.features import TABLES
from transformer.runs.finite import not_finite
from ui.positions import counting, in_attention, otherwise
from ui.positions.counting import COUNT as COUNT
from ui.runs import loading
from ui.runs.sides import SIDE_OF, SIDES, STACKS, fit_parts
from ui.shared import choices
from ui.shared.door import st
from ui.shared.numbers import short
from ui.state import session
from ui.state.view import MAIN, MAX_DIMS, PositionsPanel, Side, Slot, View
from words import say

PARTS: dict[PositionsPanel, str] = {
    "table": say("Table"),
    "similarity": say("Similarity"),
    "shift": say("Shift"),
    "sentence": say("Sentence"),
}
MEASURES = {False: say("Dot product"), True: say("Cosine")}
PAIR = "positions_pair"
MOST_SHIFTED = 512  # positions that a shift is measured on
FOLLOWS = 1e-3
"""A table nearer to the formula than this is the formula, rounded."""


@dataclass(frozen=True)
class Table:
    """The table of one stack, and what of it is looked at."""

    name: str  # the checkpoint's
    content_hash: str  # the checkpoint's
    values: np.ndarray  # [position, d_model]
    side: Side  # whose it is
    only: bool  # whether the model has no other stack
    alone: bool  # whether the other side's table has other values
    learned: bool  # whether it holds parameters
    count: int  # how many positions are drawn
    view: View  # what is looked at
    difference: float  # the largest difference of any value from the formula
    note: str  # how the table is drawn otherwise than the model has it; "" if it is not
    slot: Slot  # where it is drawn

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
        if not self.alone:
            return self.name
        if self.side == "source":
            return say("{name}, encoder", name=self.name)
        return say("{name}, decoder", name=self.name)

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


def draw(checkpoint: Checkpoint, slot: Slot = MAIN) -> Table | in_attention.Shown | None:
    """Draw the controls of the page and of its chosen part, and return what is to be drawn.

    A model whose positions act inside attention has parts of its own; of one that has none, a sentence says it.

    Raises:
        QueryError: The chosen part measures a table in which something is not finite.
        BusyError: The model has too much to do.
    """
    if checkpoint.config.positions not in TABLES:
        return in_attention.draw(checkpoint, slot)
    _settle(checkpoint, slot)
    with choices.bar(slot):
        panel = choices.choose(choices.field(slot, "positions_panel"), say("Part"), PARTS, bare=True)
        parts = anatomy(checkpoint.config)
        sides = {SIDE_OF[stack.name]: SIDES[SIDE_OF[stack.name]] for stack in parts.stacks}
        first, *others = (table_of(checkpoint, side) for side in sides)
        alone = not all(np.array_equal(first, other) for other in others)
        if alone or (others and panel == "sentence"):
            choices.choose(choices.field(slot, "side"), say("Side"), sides, bare=True)
        if panel in ("table", "similarity"):
            counting.choose(checkpoint.config.max_len, slot)
        if panel == "similarity":
            choices.choose(choices.field(slot, "cosine"), say("Measure"), MEASURES, bare=True)
    return _table(checkpoint, fit_parts(session.view(slot), parts)[0], slot, only=not others, alone=alone)


def choose_dims(table: Table) -> None:
    """Draw the choice of dimensions whose curves are shown."""
    choices.several(
        choices.field(table.slot, "dims"),
        say("Dimensions drawn as curves"),
        range(table.d_model),
        most=MAX_DIMS,
        placeholder=say("{dimensions}: choose your own", dimensions=", ".join(map(str, spread(table.d_model)))),
    )


def choose_shift(table: Table) -> None:
    """Draw the choice of the shift and of the pair of dimensions."""
    left, right = st.columns(2)
    if table.most_shift > 1:
        with left:
            choices.slider(choices.field(table.slot, "shift"), say("Shift k (positions)"), 1, table.most_shift)
    with right:
        kept = choices.Kept(table.key(PAIR), table.pair, partial(_take_pair, table.slot))
        pairs = {pair: _pair_name(table, pair) for pair in range(table.d_model // 2)}
        choices.menu(kept, say("Pair of dimensions"), pairs)


def _take_pair(slot: Slot, pair: int) -> None:
    session.replace(slot, dims=(2 * pair, 2 * pair + 1))


def _pair_name(table: Table, pair: int) -> str:
    sine, cosine = 2 * pair, 2 * pair + 1
    if not table.follows:
        return say("{sine} and {cosine}", sine=sine, cosine=cosine)
    length = short(study.wavelengths(table.d_model)[pair])
    return say("{sine} and {cosine}: one turn in {length} positions", sine=sine, cosine=cosine, length=length)


def table_of(checkpoint: Checkpoint, side: Side) -> np.ndarray:
    """The checkpoint's own table of one side: [position, d_model]; do not write to it."""
    return own_table(checkpoint.model, STACKS[side])


def _table(checkpoint: Checkpoint, view: View, slot: Slot, *, only: bool, alone: bool) -> Table:
    values = table_of(checkpoint, view.side)
    if view.positions_panel != "sentence" and not np.isfinite(values).all():  # that part looks at its own rows only
        raise not_finite(f"{STACKS[view.side]}.embedding.positions")
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
        only=only,
        alone=alone,
        learned=checkpoint.config.positions == "learned",
        count=counting.chosen(view, len(values)),
        view=view,
        difference=difference,
        note=otherwise.about_layout(checkpoint.config),
        slot=slot,
    )


def _settle(checkpoint: Checkpoint, slot: Slot) -> None:
    """Move what a link or another checkpoint left behind into what this table has."""
    view, d_model = session.view(slot), checkpoint.config.d_model
    if any(dim >= d_model for dim in view.dims):
        session.add_note(
            say(
                "Dimensions from {first} on were asked for; {name} has 0 to {last}.",
                first=d_model,
                name=checkpoint.name,
                last=d_model - 1,
            ),
            slot,
        )
    most = max(1, _most_shift(checkpoint.config.max_len))
    if view.shift > most:
        session.add_note(
            say(
                "A shift by {shift} was asked for; the table of {name} is shifted by at most {most}.",
                shift=view.shift,
                name=checkpoint.name,
                most=most,
            ),
            slot,
        )
    panel = view.positions_panel
    if panel not in PARTS:
        session.add_note(otherwise.no_such_part(checkpoint.config, panel), slot)
        panel = View.positions_panel
    dims = tuple(dim for dim in view.dims if dim < d_model)
    session.replace(slot, dims=dims, shift=min(view.shift, most), positions_panel=panel)
