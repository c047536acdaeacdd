"""The pictures of whole maps on the Attention page: all heads of an attention, one map in full, and the flow view.

The one map is of a head or of all heads together, piece by piece or word by word.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import numpy as np

from glassformer.attention import AttentionLook
from glassformer.attention.drawn_maps import (
    ATTENTION,
    KINDS,
    OTHER_SUMS,
    DrawnMap,
    OneMap,
    colour_of,
    drawn_map,
    find_span,
    first_from,
    map_plot,
    words_note,
)
from glassformer.charts.grid import HOW_TO_READ as HOW_TO_READ_TILES
from glassformer.charts.grid import HOW_TO_READ_CLOSED as HOW_TO_READ_GREY
from glassformer.charts.grid import (
    HOW_TO_READ_GROUPS,
    Blocks,
    block_size,
    follow_in_tiles,
    grid_spec,
    open_blocks,
    pooled,
    tile_at,
)
from glassformer.charts.heatmap import HOW_TO_READ_MARK, HOW_TO_READ_PROMPT, heads_columns, too_many
from glassformer.charts.theme import Spec
from glassformer.components.flow_data import Choice, Flow, Pin, flow_payload
from glassformer.runs.map_axes import KIND_NAMES, MapAxes, mask_reason, own_masks, prompt_row, sides, size_of
from glassformer.runs.picture import Part, Picture, Plot
from glassformer.runs.viewed_run import Viewed, ViewedRun
from glassformer.shared.csv_export import Origin
from glassformer.state.view import View, cell_of, fields
from transformer.analysis.word_merging import Span
from transformer.i18n import joined, say
from transformer.model.anatomy import Kind
from transformer.runs.trace import LabelledMaps, Trace

# ------------------------------------------------------------------------------------------------ all heads

LARGE: Final = {"width": 560, "most_cells": 48_000}
FEW_PIECES: Final = 32
_BYTES_A_CELL: Final = 16  # of a figure, with its labels
WIDE: Final = {"width": 920, "most_cells": 64_000}
SMALL: Final = {"width": 330, "most_cells": 16_000}
HOW_TO_READ_GIVEN_TILES: Final = say(
    "Each tile is one head's map: queries run from top to bottom, keys from left to right. The stronger the "
    "colour, the larger the weight."
)


OVERVIEW: Part[Viewed] = ATTENTION.part("overview", lambda run: run)


def is_long(run: Viewed, kind: Kind) -> bool:
    """Whether a tile needs all the width there is to show its pieces."""
    of = sides(run.visible, kind)
    return max(len(of.queries), len(of.keys)) > FEW_PIECES


def _all_heads(run: Viewed, *, kind: Kind) -> Plot | None:
    """The heads of one attention, large if it is the chosen one; a click on a tile opens its head."""
    if kind not in run.visible.trace.kinds:
        return None
    of, large = sides(run.visible, kind), kind == run.view.kind
    figure = _shared(run, kind, of, large=large) if isinstance(run, ViewedRun) else _figure(run, kind, of, large=large)
    n_layers, n_heads = run.visible.trace.maps(kind).shape[:2]
    read = (
        [HOW_TO_READ_TILES if isinstance(run, ViewedRun) else HOW_TO_READ_GIVEN_TILES]
        if large
        else [say("The same picture for another attention.")]
    )
    if large:
        read += [HOW_TO_READ_GREY] * (not own_masks(run, kind).all()) + [HOW_TO_READ_MARK] * (of.current is not None)
        read += [HOW_TO_READ_GROUPS] * (size_of(run) > 1) + [HOW_TO_READ_PROMPT] * (prompt_row(run, kind) is not None)

    def opened(cell: tuple[int, int]) -> Mapping[str, Any]:
        layer, head = tile_at(figure, *cell)
        return {"kind": kind, "layer": layer, "head": head, "heads": (), "panel": "head"}

    alt = say(
        "{attention} as a grid of small maps, one for each of {layers} layers (rows) and {heads} heads "
        "(columns). The controls above open the map of a single head.",
        attention=KIND_NAMES[kind],
        layers=n_layers,
        heads=n_heads,
    )
    how_to_read = joined(" ", [*read, say("Click a tile to open its head.")])
    return Plot(spec=figure, alt=alt, how_to_read=how_to_read, fit=large, clicked=fields(cell_of, opened))


def columns(again: Callable[[], Trace | LabelledMaps], kind: Kind, of: MapAxes) -> dict[str, Any]:
    """The weights of all heads as a table. A session keeps this, so it holds no run and looks it up again."""
    trace = again()
    n_queries, n_keys = len(of.queries), len(of.keys)
    maps = trace.maps(kind)[:, :, :n_queries, :n_keys]
    if maps.shape[2:] != (n_queries, n_keys):  # a run that keeps no maps has too many
        return too_many(maps.shape[0] * maps.shape[1] * n_queries * n_keys)
    masks = trace.mask(kind) if isinstance(trace, LabelledMaps) else trace.masks[kind]
    return heads_columns(
        maps,
        layers=range(1, maps.shape[0] + 1),
        heads=range(1, maps.shape[1] + 1),
        queries=of.queries,
        keys=of.keys,
        allowed=masks[..., None, :n_queries, :n_keys] if masks.ndim == 3 else masks[:n_queries, :n_keys],
    )


def _shared(run: ViewedRun, kind: Kind, of: MapAxes, *, large: bool) -> Spec:
    """The figure that all who look at the same share, at every step: a mark follows the step in the browser."""
    view, revealed = (run.view, run.visible.revealed) if run.view.guess else (replace(run.view, step=0), True)

    def make() -> Spec:
        figure = _figure(run, kind, of, large=large)
        if of.current is not None and figure["data"]:
            follow_in_tiles(figure, [run.trace.row_of(step) for step in range(run.visible.n_steps)])
        return figure

    if not run.trace.keeps_maps:  # its maps are made in the model's thread, which would wait for itself
        return make()
    key = ("grid", run.trace.query, kind, large, view, revealed)
    return run.work.compute(key, make, nbytes=lambda _: _BYTES_A_CELL * LARGE["most_cells"])


def _figure(run: Viewed, kind: Kind, of: MapAxes, *, large: bool) -> Spec:
    view = run.view
    size: dict[str, int] = SMALL if not large else WIDE if is_long(run, kind) else LARGE
    maps, allowed = _maps(run, kind, of, most_cells=size["most_cells"])
    name, (n_layers, n_heads) = KIND_NAMES[kind], run.visible.trace.maps(kind).shape[:2]
    sized = say("{attention}: {layers} layers × {heads} heads", attention=name, layers=n_layers, heads=n_heads)
    return grid_spec(
        maps,
        queries=of.queries,
        keys=of.keys,
        title=sized if large else name,
        query_axis=of.query_axis,
        key_axis=of.key_axis,
        allowed=allowed,
        mask_reason=mask_reason(run.checkpoint, kind),
        chosen=(view.layer, view.head) if kind == view.kind else (None, None),
        colour=colour_of(run, kind, of.key_side),
        own_scale=view.own_scale,
        log=bool(view.log_scale),
        show_scale=large,
        group=size_of(run),
        prompt=prompt_row(run, kind),
        note=run.trace.rows_note(kind) if large and isinstance(run, ViewedRun) else "",
        **size,
    )


def _maps(run: Viewed, kind: Kind, of: MapAxes, *, most_cells: int) -> tuple[np.ndarray | Blocks, np.ndarray]:
    """The maps of all heads and their mask; blocks of them where a run keeps no maps, made layer by layer."""
    n_queries, n_keys = len(of.queries), len(of.keys)
    allowed = own_masks(run, kind)[..., :n_queries, :n_keys]
    maps = run.visible.trace.maps(kind)[:, :, :n_queries, :n_keys]
    if maps.shape[2:] == (n_queries, n_keys):
        return maps, allowed
    size = block_size((*maps.shape[:2], n_queries, n_keys), most_cells)

    def blocks(heads: np.ndarray, layer: int) -> np.ndarray:
        mask = allowed if allowed.ndim == 2 else allowed[layer]
        return pooled(heads[None, :, :n_queries, :n_keys], mask, size).weights[0]

    weights = np.stack(run.visible.each(kind, blocks, key=("blocks", n_queries, n_keys, size)))
    return Blocks(weights, open_blocks(allowed, size), size), allowed


GRIDS: Final[dict[Kind, Picture[Viewed]]] = {
    kind: OVERVIEW.picture(f"overview_{kind}", title, follows="still")(partial(_all_heads, kind=kind))
    for kind, title in KINDS.items()
}


# ------------------------------------------------------------------------------------------------ one map


def open_map(run: Viewed) -> OneMap | None:
    """The selected map; None where all its pieces are special and hidden."""
    drawn = drawn_map(run.visible, run.checkpoint, run.view.kind)
    return OneMap(run, drawn) if drawn.weights.size else None


HEAD: Part[OneMap] = ATTENTION.part("head", open_map)


@HEAD.picture("head_map", say("One map"), follows="still")
def one_map(one: OneMap) -> Plot:
    """The map; a click on a cell looks at its pieces, here and in the other parts."""
    return map_plot(one)


FLOW: Final = "flow"
HOW_TO_READ_LINES = say(
    "Each line joins a query to a key it attends to. Its colour shows the head; the larger the weight, the more "
    "opaque the line. The weight, softmax(q·k / √d_head + mask) over the keys, is the share of this key's value in "
    "what the head passes to the query. For each head and query, the weights sum to 1."
)
HOW_TO_READ_GIVEN_LINES = say(
    "Each line joins a query to a key it attends to. Its colour shows the head; the larger the weight, the more "
    "opaque the line."
)
MEAN_OF_ALL = say(
    "These lines show the mean over all heads of all layers. Choose a layer to see each of its heads, with the "
    "weights that the model actually computed."
)


@dataclass(frozen=True, eq=False)
class DrawnFlow:
    """The flow view's data, and which pieces each of its rows and columns stands for."""

    flow: Flow
    rows: tuple[Span, ...]
    columns: tuple[Span, ...]
    alt: str
    caption: str


def drawn_flow(run: Viewed, run_id: str) -> DrawnFlow:
    """All heads of the chosen layer, cut to what may be seen; without a layer the mean of all heads, as one.

    Heads of the same number in different layers have nothing in common, so no mean is made of them.
    """
    view = run.view
    kind: Kind = view.kind
    n_heads = run.visible.trace.maps(kind).shape[1]
    together = view.layer is None
    drawn = [_head(run, kind, None, None)] if together else [_head(run, kind, view.layer, n) for n in range(n_heads)]
    one = drawn[0]
    weights = np.array([of_head.weights for of_head in drawn])
    notes = [MEAN_OF_ALL] * together + [words_note(run.visible, view.kind)] * view.words
    if view.hide_special and weights.size and OTHER_SUMS not in one.notes:
        hidden = float(1 - weights.sum(axis=-1).mean())
        notes.append(
            say("Special tokens are hidden; on average, they get {share:.2f} of a query's weight.", share=abs(hidden))
        )
    name = one.name if view.layer is None else say("layer {layer}", layer=view.layer + 1)
    n_queries, n_keys, of = len(one.queries), len(one.keys), KIND_NAMES[kind]
    alt = say("Lines from {queries} queries to {keys} keys, one colour per head: {attention}, {layer}.",
              queries=n_queries, keys=n_keys, attention=of, layer=name)  # fmt: skip
    if together:
        alt = say("Lines from {queries} queries to {keys} keys: {attention}, {map}.",
                  queries=n_queries, keys=n_keys, attention=of, map=name)  # fmt: skip
    prompt = prompt_row(run, kind)
    flow = Flow(
        sentence=" ".join((run_id, kind, str(view.words), str(view.hide_special))),
        kind=KIND_NAMES[kind],
        layer=name,
        queries=tuple(one.queries),
        keys=tuple(one.keys),
        query_axis=one.sides.query_axis,
        key_axis=one.sides.key_axis,
        query_side=one.sides.query_side,
        key_side=one.sides.key_side,
        weights=weights,
        allowed=one.allowed,
        row_of_step=tuple(one.row_of_step()),
        together=together,
        group=size_of(run),
        output=(None, None) if prompt is None else (first_from(one.rows, prompt), first_from(one.columns, prompt + 1)),
    )
    how = HOW_TO_READ_GIVEN_LINES if run.checkpoint is None else HOW_TO_READ_LINES
    return DrawnFlow(flow, one.rows, one.columns, alt, joined(" ", (how, *notes)))


FLOW_PART: Part[Viewed] = ATTENTION.part("flow", lambda run: run)


@FLOW_PART.other(FLOW, say("Flow"))
def saved_flow(run: ViewedRun, of: Origin, key: str) -> dict[str, Any] | None:
    """The flow view of a run that is on no page; None where all pieces are special and hidden."""
    drawn = drawn_flow(run, key)
    if not drawn.flow.weights.size:
        return None
    choice = choice_of(drawn, run.view)
    return flow_payload(drawn.flow, choice, name=key, file=of.stem(key), table="", alt=drawn.alt, caption=drawn.caption)


def choice_of(drawn: DrawnFlow, view: View) -> Choice:
    """The heads whose lines are drawn: the one selected on all pages, else those chosen here; () for all."""
    heads = () if drawn.flow.together else view.of(AttentionLook).heads if view.head is None else (view.head,)
    shown = tuple(head for head in heads if head < len(drawn.flow.weights))
    return Choice(shown, _pin(drawn, view.query, view.key), following=view.of(AttentionLook).follow)


def _head(run: Viewed, kind: Kind, layer: int | None, head: int | None) -> DrawnMap:
    """The map of a head; without one the mean of all, whatever stands for them elsewhere."""
    view = replace(run.view, layer=layer, head=head, aggregate="mean")
    return drawn_map(replace(run.visible, view=view), run.checkpoint, kind)


def _pin(drawn: DrawnFlow, query: int | None, key: int | None) -> Pin | None:
    """The row of the query that is selected on all pages; without one, the column of the key."""
    row, column = find_span(drawn.rows, query), find_span(drawn.columns, key)
    if row is not None:
        return Pin("query", row)
    return None if column is None else Pin("key", column)
