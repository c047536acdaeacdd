"""Pictures of whole attention maps: all heads as tiles, the open map, flow view lines, maps without parameters.

The one map is of a head or of all heads together, piece by piece or word by word. Without parameters are softmax(A·Aᵀ)
of the embeddings, the same times √d_model, and beside them the trained heads.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import numpy as np

from glassformer.attention import AttentionLook
from glassformer.attention.drawn_maps import (
    ATTENTION,
    HIDDEN_PIECES,
    KINDS,
    OTHER_SUMS,
    DrawnMap,
    OneMap,
    colour_of,
    drawn_map,
    find_span,
    first_from,
    map_plot,
    piece_map,
    words_note,
)
from glassformer.charts.grammar import frame
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
from glassformer.runs.viewed_run import RunScene, Viewed, ViewedRun
from glassformer.shared.csv_export import Origin
from glassformer.state.view import View, cell_of, fields
from transformer.analysis.one_weight import without_parameters
from transformer.analysis.word_merging import Span, by_words
from transformer.i18n import joined, say
from transformer.model.anatomy import EVERY_PART, Kind
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
    read = [say("The same picture for another attention.")]
    if large:
        read = [HOW_TO_READ_TILES if isinstance(run, ViewedRun) else HOW_TO_READ_GIVEN_TILES]
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
    layers, heads = (range(1, count + 1) for count in maps.shape[:2])
    if maps.shape[2:] != (n_queries, n_keys):  # a run that keeps no maps has too many
        return too_many(len(layers) * len(heads) * n_queries * n_keys)
    masks = trace.mask(kind) if isinstance(trace, LabelledMaps) else trace.masks[kind]
    allowed = masks[..., None, :n_queries, :n_keys] if masks.ndim == 3 else masks[:n_queries, :n_keys]
    return heads_columns(maps, layers=layers, heads=heads, queries=of.queries, keys=of.keys, allowed=allowed)


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
one_map: Final = HEAD.picture("head_map", say("One map"), follows="still")(map_plot)


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
    view, kind, together = run.view, run.view.kind, run.view.layer is None
    n_heads = run.visible.trace.maps(kind).shape[1]
    drawn = [_head(run, kind, None, None)] if together else [_head(run, kind, view.layer, n) for n in range(n_heads)]
    one = drawn[0]
    weights = np.array([of_head.weights for of_head in drawn])
    notes = [MEAN_OF_ALL] * together + [words_note(run.visible, view.kind)] * view.words
    if view.hide_special and weights.size and OTHER_SUMS not in one.notes:
        hidden = abs(float(1 - weights.sum(axis=-1).mean()))
        notes += [say("Special tokens are hidden; on average, they get {share:.2f} of a query's weight.", share=hidden)]
    name = one.name if view.layer is None else say("layer {layer}", layer=view.layer + 1)
    n_queries, n_keys, attention = len(one.queries), len(one.keys), KIND_NAMES[kind]
    alt = say("Lines from {queries} queries to {keys} keys, one colour per head: {attention}, {layer}.",
              queries=n_queries, keys=n_keys, attention=attention, layer=name)  # fmt: skip
    if together:
        alt = say("Lines from {queries} queries to {keys} keys: {attention}, {map}.",
                  queries=n_queries, keys=n_keys, attention=attention, map=name)  # fmt: skip
    prompt, of = prompt_row(run, kind), one.sides
    flow = Flow(
        sentence=" ".join((run_id, kind, str(view.words), str(view.hide_special))),
        kind=attention,
        layer=name,
        queries=tuple(one.queries),
        keys=tuple(one.keys),
        query_axis=of.query_axis,
        key_axis=of.key_axis,
        query_side=of.query_side,
        key_side=of.key_side,
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


# ------------------------------------------------------------------------------------------------ no parameters

HOW_TO_READ_PLAIN: Final = say(
    "A has each query's row of its embedding table, and B each key's; in self-attention, B is A. Queries and keys are "
    "these rows themselves: no W_Q, no W_K, no heads, no positions, so equal tokens get equal weights. The mask is the "
    "model's. Click a cell to compare its row in all three maps."
)


@dataclass(frozen=True)
class PlainMaps(RunScene):
    """The selected map, and what it would be without parameters."""

    drawn: DrawnMap  # the trained one
    maps: tuple[np.ndarray, np.ndarray, np.ndarray]  # by rows, by scaled rows, trained; between tokens [query, key]
    within: bool  # whether queries and keys are the same tokens


def open_plain(run: ViewedRun) -> PlainMaps | None:
    """The three maps; None where all tokens are special and hidden."""
    view, of, model = run.view, sides(run.visible, run.view.kind), run.checkpoint.model
    if not (drawn := drawn_map(run.visible, run.checkpoint, view.kind)).weights.size:
        return None
    shape = slice(len(of.queries)), slice(len(of.keys))
    allowed = run.trace.mask(view.kind, view.layer)[shape]
    plain, scaled = without_parameters(model, view.kind, of.query_ids, of.key_ids, allowed)
    maps, one = (plain, scaled, piece_map(run.visible, view.kind)[shape]), EVERY_PART.attention(view.kind)
    return PlainMaps(run, drawn, maps, one.keys_from == one.stack)


PLAIN = ATTENTION.part("plain", open_plain)


@PLAIN.picture("plain_rows", say("softmax(A·Aᵀ) of the embeddings"), follows="still")
def rows(o: PlainMaps) -> Plot:
    """By rows of the table."""
    title = say("softmax(A·Aᵀ): rows of the table") if o.within else say("softmax(A·Bᵀ): rows of both tables")
    return _without(o, 0, title)


@PLAIN.picture("plain_scaled", say("softmax(A·Aᵀ) of the embeddings × √d_model"), follows="still")
def scaled(o: PlainMaps) -> Plot:
    """By rows times √d_model."""
    root = o.run.checkpoint.config.d_model**0.5
    return _without(o, 1, say("The same rows × {root:.4g} = √d_model", root=root))


@PLAIN.picture("plain_trained", say("The trained heads"), follows="still")
def trained(o: PlainMaps) -> Plot:
    """What the model does with W_Q and W_K."""
    return _with(o, 2, replace(o.drawn, notes=(*o.drawn.notes, *_own(o, 2))))


THREE: Final = (rows, scaled, trained)


def _without(o: PlainMaps, which: int, title: str) -> Plot:
    hidden = len(o.drawn.rows) < len(o.maps[which]) or len(o.drawn.columns) < o.maps[which].shape[1]
    weights = by_words(o.maps[which], o.drawn.rows, o.drawn.columns)  # hidden tokens are in no span
    notes = (*(HIDDEN_PIECES,) * (hidden and not o.run.view.words), *_own(o, which))
    shown = replace(o.drawn, weights=weights, title=title, name=title, sums_to_one=not hidden, notes=notes)
    return replace(_with(o, which, shown), how_to_read=HOW_TO_READ_PLAIN)


def _with(o: PlainMaps, which: int, shown: DrawnMap) -> Plot:
    """One of the three maps, drawn like the others; the chosen query's row has a frame."""
    plot = map_plot(OneMap(o.run, shown))
    layout, row = plot.spec["layout"], find_span(shown.rows, o.run.view.query)
    if which < 2 and not o.run.view.own_scale and plot.spec["data"][0].pop("colorbar", None):
        plot.spec["data"][0]["showscale"] = False  # the last map has the scale of all
    if row is not None:
        layout["shapes"].append(frame((-0.5, len(shown.keys) - 0.5), (row - 0.5, row + 0.5), width=1.5))
    return replace(plot, fit=False)


def _own(o: PlainMaps, which: int) -> list[str]:
    """The mean weight of a token on itself, where queries and keys are the same tokens."""
    share = float(np.diagonal(o.maps[which]).mean())
    return [say("a token's weight on itself: {share:.2f} on average", share=share)] if o.within else []
