"""The same map of both runs and its difference: attention, layer and head by the controls that all pages share.

A difference needs the same rows and the same columns. So where two runs wrote different outputs, the right run reads
the left run's output, and the map is of that.
"""

from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np

from glassformer.charts.difference import HOW_TO_READ as HOW_TO_READ_DIFFERENCE
from glassformer.charts.difference import difference_map_spec
from glassformer.charts.heatmap import HOW_TO_READ
from glassformer.extensions.what_if.compare.pair import Pair, read_by
from glassformer.extensions.what_if.compare.second_run import address_of, differ
from glassformer.maps.seen_map import SeenMap, seen_map
from glassformer.runs import loading
from glassformer.runs.open_run import OpenRun
from glassformer.runs.sides import KIND_NAMES
from glassformer.runs.step_rows import Looking, heads_name
from glassformer.shared import choices, drawing
from glassformer.shared.choices import Kept
from glassformer.shared.door import st
from glassformer.shared.saving import Origin
from glassformer.state.view import MAIN, Slot
from transformer.i18n import Sentence, joined, say

LEFT_MAP: Final = "compared_left_map"
RIGHT_MAP: Final = "compared_right_map"
DIFFERENCE: Final = "compared_difference"
READS_LEFT: Final = say(
    "For the map on the right, the model on the right read the output on the left, so both maps have the same rows."
)
SAME_HEAD: Final = say(
    "Both sides show the same map. Choose a different layer, head or kind of attention on one side."
)
ROUNDING: Final = 1e-5  # float32 sums in another order
OTHER_COLUMNS: Final = say(
    "No difference map: the two runs read different pieces, so the columns of their maps do not match."
)
OTHER_ROWS: Final = say("No difference map: the rows of the two maps belong to different pieces.")
ONE_MODEL: Final = say(
    "No difference map: the rows of the two maps belong to different outputs. Up to the first difference between "
    "the outputs, both maps are the same, because the same model has read the same pieces."
)
OTHER_KINDS: Final = say("No difference map: the two maps show different kinds of attention, each with its own rows.")


def controls(pair: Pair[OpenRun]) -> None:
    """Draw the choice of an attention, a layer and a head: one for both, or of two heads one for each."""
    if pair.compared != "heads":
        _choice(pair.main, MAIN)
        return
    drawing.beside(partial(_choice, pair.left, MAIN), partial(_choice, pair.right, None))


def _choice(run: OpenRun, slot: Slot | None) -> None:
    """Draw one row; without a slot it is what the second run differs in that is changed."""
    fields = {
        name: Kept(run.key(name), run.view.get(name), partial(_differ, name))
        if slot is None
        else choices.field(slot, name)
        for name in ("kind", "layer", "head")
    }
    n_layers, n_heads = run.trace.maps(run.view.kind).shape[:2]
    choices.let_go(run.slot, n_layers, n_heads)
    with choices.bar(run.slot):
        kinds = {kind: KIND_NAMES[kind] for kind in run.trace.kinds}
        choices.menu(fields["kind"], say("Attention"), kinds, otherwise=run.view.kind, bare=True, width=200)
        layer = choices.menu_of_layers(fields["layer"], n_layers)
        choices.menu_of_heads(fields["head"], n_heads, disabled=layer is None)


def _differ(name: str, value: str | int | None) -> None:
    """Callback: the second run looks at something else."""
    differ(**{name: address_of(value)})


def halves(pair: Pair[OpenRun]) -> tuple[SeenMap, SeenMap, bool, str]:
    """Both maps, whether the right one is of the left output, and why they cannot be subtracted; "" if they can."""
    left, right = (seen_map(run, run.view.kind) for run in (pair.left, pair.right))
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
        looking = Looking(trace, view, slot=pair.left.slot, by_layer=by_layer)
        reads = seen_map(pair.right, left.kind, looking)
        if _same_axes(left, reads):
            return left, reads, True, ""
    return left, right, False, OTHER_ROWS if left.sides.keys == right.sides.keys else OTHER_COLUMNS


def _same_axes(left: SeenMap, right: SeenMap) -> bool:
    return left.sides.queries == right.sides.queries and left.sides.keys == right.sides.keys


def draw(pair: Pair[OpenRun]) -> None:
    """Draw both maps and the difference; errors as of `read_by`."""
    left, right, reads_left, why = halves(pair)
    if pair.compared == "heads" and (left.kind, _name(left)) == (right.kind, _name(right)):
        st.info(SAME_HEAD, icon=":material/compare_arrows:")
        return
    largest = max(float(np.where(one.allowed, one.weights, 0.0).max(initial=0)) for one in (left, right)) or 1.0
    drawing.beside(
        partial(_one, left, LEFT_MAP, say("Left: {map}", map=_name(left)), largest, pair.left.slot),
        partial(
            _one, right, RIGHT_MAP, say("Right: {map}", map=_name(right)), largest,
            pair.left.slot if reads_left else pair.right.slot,
        ),
    )  # fmt: skip
    if why:
        st.caption(why)
        return
    _difference(pair, left, right, reads_left=reads_left)


def _name(half: SeenMap) -> Sentence:
    """Which attention, layer and head."""
    whose = heads_name(half.looking.trace, half.looking.view, half.kind)
    return say("{attention}: {map}", attention=KIND_NAMES[half.kind], map=whose)


def _one(half: SeenMap, name: str, title: str, largest: float, follows: Slot) -> None:
    figure = half.spec(title, limits=(0.0, largest))
    half.mark(figure)
    drawing.chart(
        figure,
        key=f"{follows}{name}",
        alt=half.alt(title),
        follows=_still,
        how_to_read=joined(" ", [HOW_TO_READ, *half.closed]),
    )


def _still(of: Origin, moment: dict[str, Any]) -> str:
    """No step changes a whole map; the browser marks its row."""
    return "still"


def _difference(pair: Pair[OpenRun], left: SeenMap, right: SeenMap, *, reads_left: bool) -> None:
    open_cells = left.allowed | right.allowed
    title = say("Right − left: {map}", map=_name(left))
    if _name(left) != _name(right):
        title = say("Right − left: {right} minus {left}", right=_name(right), left=_name(left))
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
    left.mark(figure)
    drawing.chart(
        figure,
        key=f"{pair.left.slot}{DIFFERENCE}",
        alt=left.alt(title),
        follows=_still,
        how_to_read=joined(" ", [HOW_TO_READ_DIFFERENCE, *[READS_LEFT] * reads_left]),
    )
    st.markdown(drawing.plain(moved(left, right)))


def moved(left: SeenMap, right: SeenMap) -> str:
    """How far the right map is from the left one, which has the same rows and columns, in numbers."""
    change = np.where(left.allowed | right.allowed, right.weights - left.weights, 0.0)
    row, column = np.unravel_index(np.abs(change).argmax(), change.shape)
    if not change[row, column]:
        return say("The two maps are equal.")
    if abs(change[row, column]) < ROUNDING:
        return say("The two maps are equal apart from rounding: no weight differs by more than {most:.1g}.",
                   most=float(abs(change[row, column])))  # fmt: skip
    return say("On average, {share:.3f} of a row's weight is on different keys in the map on the right. The largest "
               "change is in row {row} ({query}), column {column} ({key}): from {before:.3f} to {after:.3f}.",
               share=float(np.abs(change).sum(axis=1).mean() / 2), row=int(row) + 1, query=left.sides.queries[row],
               column=int(column) + 1, key=left.sides.keys[column], before=float(left.weights[row, column]),
               after=float(right.weights[row, column]))  # fmt: skip
