"""The same map of both runs and its difference: attention, layer and head by the controls that all pages share.

A difference needs the same rows and the same columns. So where two runs wrote different outputs, the right run reads
the left run's output, and the map is of that.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np

import charts
from charts.difference import HOW_TO_READ as HOW_TO_READ_DIFFERENCE
from charts.difference import difference_map_spec
from charts.following import follow_steps
from charts.heatmap import HOW_TO_READ, HOW_TO_READ_CLOSED
from charts.prompt import part_map
from charts.theme import Spec
from transformer.model.anatomy import Kind
from ui.compare.pair import Pair, read_by
from ui.compare.second_run import address_of, differ
from ui.runs import loading
from ui.runs.groups import prompt_row
from ui.runs.open_run import OpenRun
from ui.runs.sides import KIND_NAMES, Sides, sides
from ui.runs.step_rows import Looking, chosen_map, heads_name
from ui.shared import choices, drawing
from ui.shared.choices import Kept
from ui.shared.door import st
from ui.state.view import MAIN, Slot
from words import Sentence, joined, say

LEFT_MAP: Final = "compared_left_map"
RIGHT_MAP: Final = "compared_right_map"
DIFFERENCE: Final = "compared_difference"
READS_LEFT: Final = say("In the right map the right run reads the left output, so that both maps have the same rows.")
SAME_HEAD: Final = say("Both sides show the same: choose another layer, head or attention on one of them.")
ROUNDING: Final = 1e-5  # float32 sums in another order
OTHER_COLUMNS: Final = say(
    "No difference is drawn: the columns are not the same pieces, as the two runs do not read the same source."
)
OTHER_ROWS: Final = say("No difference is drawn: the rows of the two maps are not the same pieces.")
ONE_MODEL: Final = say(
    "No difference is drawn: the rows are those of two outputs. Up to the first difference both maps are the same, "
    "as one model has read the same pieces."
)
OTHER_KINDS: Final = say("No difference is drawn: the two maps are of different attentions, with rows of their own.")


@dataclass(frozen=True, eq=False)
class Half:
    """One of the two maps."""

    run: OpenRun  # whose
    looking: Looking  # what is drawn; of a run that reads the other's output, that
    kind: Kind  # which attention
    weights: np.ndarray  # [query, key]
    allowed: np.ndarray  # bool [query, key]
    sides: Sides  # its rows and columns

    @property
    def name(self) -> Sentence:
        """Which attention, layer and head."""
        return say(
            "{attention}: {map}",
            attention=KIND_NAMES[self.kind],
            map=heads_name(self.looking.trace, self.looking.view, self.kind),
        )


def controls(pair: Pair) -> None:
    """Draw the choice of an attention, a layer and a head: one for both, or of two heads one for each."""
    if pair.compared != "heads":
        _choice(pair.main, MAIN)
        return
    drawing.beside(partial(_choice, pair.left, MAIN), partial(_choice, pair.right, None))


def _choice(run: OpenRun, slot: Slot | None) -> None:
    """Draw one row; without a slot it is what the second run differs in that is changed."""
    fields = {
        name: choices.field(MAIN, name) if slot is not None else _differing(run, name)
        for name in ("kind", "layer", "head")
    }
    n_layers, n_heads = run.trace.maps(run.view.kind).shape[:2]
    choices.let_go(run.slot, n_layers, n_heads)
    with choices.bar(run.slot):
        kinds = {kind: KIND_NAMES[kind] for kind in run.trace.kinds}
        choices.menu(fields["kind"], say("Attention"), kinds, otherwise=run.view.kind, bare=True, width=200)
        layer = choices.menu_of_layers(fields["layer"], n_layers)
        choices.menu_of_heads(fields["head"], n_heads, disabled=layer is None)


def _differing(run: OpenRun, name: str) -> Kept:
    return Kept(run.key(name), getattr(run.view, name), partial(_differ, name))


def _differ(name: str, value: str | int | None) -> None:
    """Callback: the second run looks at something else."""
    differ(**{name: address_of(value)})


def halves(pair: Pair) -> tuple[Half, Half, bool, str]:
    """Both maps, whether the right one is of the left output, and why they cannot be subtracted; "" if they can."""
    left = _half(pair.left, pair.left.looking)
    right = _half(pair.right, pair.right.looking)
    if _same_axes(left, right):
        return left, right, False, ""
    if left.kind != right.kind:
        return left, right, False, OTHER_KINDS
    if pair.is_one_model:
        return left, right, False, ONE_MODEL
    if pair.writes and pair.share_vocabulary and left.kind != "encoder":
        trace = read_by(pair.right, pair.left)
        by_layer = partial(loading.by_layer, pair.right.checkpoint, trace)
        view = replace(pair.right.view, step=pair.left.view.step)
        reads = _half(pair.right, Looking(trace, view, slot=pair.left.slot, by_layer=by_layer))
        if _same_axes(left, reads):
            return left, reads, True, ""
    return left, right, False, OTHER_ROWS if left.sides.keys == right.sides.keys else OTHER_COLUMNS


def _half(run: OpenRun, looking: Looking) -> Half:
    kind = run.view.kind
    axes = sides(looking, kind)
    n_rows, n_columns = len(axes.queries), len(axes.keys)
    weights = chosen_map(looking, kind)[:n_rows, :n_columns]
    allowed = looking.trace.mask(kind, looking.view.layer)[:n_rows, :n_columns]
    return Half(run, looking, kind, weights, allowed, axes)


def _same_axes(left: Half, right: Half) -> bool:
    return left.sides.queries == right.sides.queries and left.sides.keys == right.sides.keys


def draw(pair: Pair) -> None:
    """Draw both maps and the difference; errors as of `read_by`."""
    left, right, reads_left, why = halves(pair)
    if pair.compared == "heads" and (left.kind, left.name) == (right.kind, right.name):
        st.info(SAME_HEAD, icon=":material/compare_arrows:")
        return
    largest = max(float(np.where(one.allowed, one.weights, 0.0).max(initial=0)) for one in (left, right)) or 1.0
    drawing.beside(
        partial(_one, left, LEFT_MAP, say("Left: {map}", map=left.name), largest, pair.left.slot),
        partial(
            _one, right, RIGHT_MAP, say("Right: {map}", map=right.name), largest,
            pair.left.slot if reads_left else pair.right.slot,
        ),
    )  # fmt: skip
    if why:
        st.caption(why)
        return
    _difference(pair, left, right, reads_left=reads_left)


def _one(half: Half, name: str, title: str, largest: float, follows: Slot) -> None:
    figure = charts.heatmap_spec(
        half.weights,
        queries=half.sides.queries,
        keys=half.sides.keys,
        title=title,
        query_axis=half.sides.query_axis,
        key_axis=half.sides.key_axis,
        allowed=half.allowed,
        colour=half.sides.key_side,
        limits=(0.0, largest),
        note=half.looking.trace.rows_note(half.kind),
    )
    _marked(figure, half)
    drawing.chart(
        figure,
        key=f"{follows}{name}",
        alt=_alt(title, half),
        how_to_read=joined(" ", [HOW_TO_READ, *[HOW_TO_READ_CLOSED] * (not half.allowed.all())]),
    )


def _marked(figure: Spec, half: Half) -> None:
    """Mark the row of the step, and where a prompt ends."""
    trace, kind = half.looking.trace, half.kind
    n_rows, n_columns = half.weights.shape
    if kind != "encoder":
        rows = [trace.row_of(step) for step in range(trace.n_steps)]
        follow_steps(figure, rows, n_rows=n_rows, n_columns=n_columns)
    if (prompt := prompt_row(half.run, kind)) is not None:
        part_map(figure, row=prompt, column=prompt + 1 if prompt + 1 < n_columns else None)


def _alt(title: str, half: Half) -> str:
    return say(
        "{map}. Rows: {rows}; columns: {columns}.",
        map=title,
        rows=half.sides.query_axis,
        columns=half.sides.key_axis,
    )


def _difference(pair: Pair, left: Half, right: Half, *, reads_left: bool) -> None:
    open_cells = left.allowed | right.allowed
    title = say("Right − left: {map}", map=left.name)
    if left.name != right.name:
        title = say("Right − left: {right} minus {left}", right=right.name, left=left.name)
    figure = difference_map_spec(
        np.where(left.allowed, left.weights, 0.0),
        np.where(right.allowed, right.weights, 0.0),
        queries=left.sides.queries,
        keys=left.sides.keys,
        title=title,
        query_axis=left.sides.query_axis,
        key_axis=left.sides.key_axis,
        allowed=open_cells,
    )
    _marked(figure, left)
    drawing.chart(
        figure,
        key=f"{pair.left.slot}{DIFFERENCE}",
        alt=_alt(title, left),
        how_to_read=joined(" ", [HOW_TO_READ_DIFFERENCE, *[READS_LEFT] * reads_left]),
    )
    st.markdown(drawing.plain(moved(left, right)))


def moved(left: Half, right: Half) -> str:
    """How far the right map is from the left one, which has the same rows and columns, in numbers."""
    change = np.where(left.allowed | right.allowed, right.weights - left.weights, 0.0)
    row, column = np.unravel_index(np.abs(change).argmax(), change.shape)
    if not change[row, column]:
        return say("The two maps are equal.")
    if abs(change[row, column]) < ROUNDING:
        return say("The two maps are equal but for rounding: no weight differs by more than {most:.1g}.",
                   most=float(abs(change[row, column])))  # fmt: skip
    return say(
        "On average a row moves {share:.3f} of its weight to other keys. The largest change is in row {row} "
        "({query}), column {column} ({key}): from {before:.3f} to {after:.3f}.",
        share=float(np.abs(change).sum(axis=1).mean() / 2),
        row=int(row) + 1,
        query=left.sides.queries[row],
        column=int(column) + 1,
        key=left.sides.keys[column],
        before=float(left.weights[row, column]),
        after=float(right.weights[row, column]),
    )
