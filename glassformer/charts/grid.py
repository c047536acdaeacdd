"""Attention maps of all heads as tiles: pooling, packed bytes, brackets of key-value groups; maps given as arrays.

One heat map holds all tiles, because a plot for each would take a browser seconds; it is sent packed. If tiles have
more cells than a reader can distinguish, square blocks of cells are drawn as one, with their largest weight: a mean
would wash out the thin lines that are typical of heads.

All heads of all layers are tens of thousands of numbers; as 32-bit floats with the names of their pieces they would
be megabytes. A byte holds a weight as one of 251 steps of the scale, or marks a missing one, and each piece is named
once. So unpacked numbers are rounded to 1/250 of the scale. `glassformer/components/plotly/numbers.js` unpacks them in
the browser, `unpacked` for a notebook.
"""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import plotly.graph_objects as go

from glassformer.charts import theme
from glassformer.charts.grammar import GREY, PLACES, frame, note, numbered, upright
from glassformer.charts.heatmap import LOG_FLOOR, WEIGHT, follow_steps, heatmap_spec, part_tiles
from glassformer.charts.hover import bold, hover, italic, of_axis
from glassformer.charts.theme import (
    CLOSED,
    MARK_COLOR,
    Colour,
    Spec,
    as_figure,
    base_layout,
    colour_bar,
    literal,
    shortened,
    subtitle,
)
from transformer.i18n import joined, say

GRID, GRID_CLOSED = "grid", "grid-closed"
"""Mark the traces of a figure with `layout.meta.grid`: its weights, and its closed cells."""

_STEPS = 250
_NO_NUMBER, _CLOSED = 254, 255
_NO_WEIGHT, _CLOSED_WEIGHT = np.float32(-1), np.float32(-2)  # smaller than any weight: weights win


@dataclass(frozen=True)
class Blocks:
    """Maps in the form in which they are drawn."""

    weights: np.ndarray  # [layer, head, row, column]; NaN where there is no number
    # bool [layer, row, column], [1, row, column] if all layers are alike; False where all that a block holds is
    # closed.
    allowed: np.ndarray
    size: int  # A block is `size` x `size` cells, with the largest weight among them


def block_size(shape: tuple[int, ...], most_cells: int) -> int:
    """Rows and columns of a block of maps [layer, head, query, key], few enough for `most_cells` blocks in all."""
    n_layers, n_heads, n_queries, n_keys = shape
    size = 1
    while n_layers * n_heads * -(-n_queries // size) * -(-n_keys // size) > most_cells:
        size += 1
    return size


def pooled(weights: np.ndarray, allowed: np.ndarray, size: int, *, signed: bool = False) -> Blocks:
    """Merge blocks of `size` × `size` cells of weights [layer, head, query, key], which are not empty.

    `allowed` is bool [query, key] or [layer, query, key], True = may attend. Of `signed` numbers, a block has the
    one that is furthest from 0.
    """
    if signed:
        below, above = (pooled(np.maximum(sign * weights, 0), allowed, size) for sign in (-1, 1))
        furthest = np.where(below.weights > above.weights, -below.weights, above.weights)
        return Blocks(furthest, above.allowed, size)
    n_queries, n_keys = weights.shape[2:]
    seen = weights
    with np.errstate(invalid="ignore"):
        finite = np.isfinite(weights.sum())  # cheaper than a look at millions of cells
    if not finite:
        seen = np.where(np.isfinite(weights), weights, _NO_WEIGHT)
    if not allowed.all():
        seen = np.where(allowed if allowed.ndim == 2 else allowed[:, None], seen, _CLOSED_WEIGHT)
    edges = [np.arange(0, n, size) for n in (n_queries, n_keys)]
    largest = np.maximum.reduceat(np.maximum.reduceat(seen, edges[0], axis=2), edges[1], axis=3)
    return Blocks(np.where(largest < 0, np.nan, largest), largest[:, 0] > _CLOSED_WEIGHT, size)


def open_blocks(allowed: np.ndarray, size: int) -> np.ndarray:
    """Which blocks have an open cell, as in `Blocks.allowed`; `allowed` is as in `pooled`."""
    each = allowed if allowed.ndim == 3 else allowed[None]
    edges = [np.arange(0, n, size) for n in each.shape[1:]]
    return np.asarray(np.logical_or.reduceat(np.logical_or.reduceat(each, edges[0], axis=1), edges[1], axis=2))


def pack(blocks: Blocks, *, own_scale: bool, least: float, signed: bool = False) -> Spec:
    """Write maps as one byte per cell.

    `own_scale`: each map has its own scale, up to its largest weight, instead of 0 to 1 for all. `least` is the
    start of a logarithmic scale as a share of its end, 0 for a linear scale. A `signed` scale goes from minus its
    end to its end, the furthest number from 0.

    Returns `codes`, base64 of [layer row, head column]; `tops`, ends of the scales, one for all or one per map;
    `least`.
    """
    tops = np.ones((1, 1), dtype=np.float32)
    if own_scale or signed:
        furthest = np.abs(np.nan_to_num(blocks.weights)).max(axis=(2, 3))  # from 0 [layer, head]
        tops = np.where(furthest > 0, furthest, 1).astype(np.float32)
        tops = tops if own_scale else tops.max(keepdims=True)
    codes = base64.b64encode(_codes(blocks, tops, least, signed=signed).tobytes()).decode("ascii")
    return {"codes": codes, "tops": [float(top) for top in tops.ravel()], "least": least, "signed": signed}


def _codes(blocks: Blocks, tops: np.ndarray, least: float, *, signed: bool) -> np.ndarray:
    """A byte for each cell, [layer row, head column]: its weight in steps of the scale, or why there is none."""
    share = np.nan_to_num(blocks.weights / tops[:, :, None, None])
    if signed:
        share = (share + 1) / 2
    elif least:
        share = 1 - np.log10(np.maximum(share, least)) / np.log10(least)
    codes = np.rint(np.clip(share, 0, 1) * _STEPS).astype(np.uint8)
    codes[np.isnan(blocks.weights)] = _NO_NUMBER
    codes[np.broadcast_to(~blocks.allowed[:, None], codes.shape)] = _CLOSED
    n_layers, n_heads, rows, columns = codes.shape
    return codes.transpose(0, 2, 1, 3).reshape(n_layers * rows, n_heads * columns)


def unpacked(spec: Spec) -> Spec:
    """Give every cell its number and its names; in the app the browser does that.

    `layout.meta.grid` is what `pack` returns, and the names of `layers`, `heads`, `queries` and `keys`. Traces with
    the meta `GRID` hold the weights, those with `GRID_CLOSED` the closed cells.
    """
    packed = spec["layout"].get("meta", {}).get(GRID)
    if packed is None:
        return spec
    rows = [(layer, query) for layer in packed["layers"] for query in packed["queries"]]
    columns = [(head, key) for head in packed["heads"] for key in packed["keys"]]
    codes = np.frombuffer(base64.b64decode(packed["codes"]), np.uint8).reshape(len(rows), len(columns))
    shares = np.where(codes <= _STEPS, codes / _STEPS, np.nan)
    tops = np.resize(packed["tops"], (len(packed["layers"]), len(packed["heads"])))  # one may be that of all
    each_top = np.kron(tops, np.ones((len(packed["queries"]), len(packed["keys"]))))
    own = 2 * shares - 1 if packed["signed"] else packed["least"] ** (1 - shares) if packed["least"] else shares
    values = each_top * own
    labels = np.empty((*codes.shape, 3), dtype=object)
    for row, row_names in enumerate(rows):
        for column, column_names in enumerate(columns):
            labels[row, column] = (row_names, column_names, values[row, column])
    drawn = {GRID: shares, GRID_CLOSED: np.where(codes == _CLOSED, 0.0, np.nan)}
    traces = [{**trace, "z": drawn[trace["meta"]], "customdata": labels} for trace in spec["data"]]
    return {"data": traces, "layout": spec["layout"]}


# ------------------------------------------------------------------------------------------------ shared keys

HOW_TO_READ_GROUPS = say("Heads under one bracket share one key-value head (K, V); only their queries differ.")

_MOST_NAMED = 12  # groups whose names do not touch
_ROOM = 22  # pixels above the plot


def head_named(head: int, group: int) -> str:
    """A head, from 0, on hover, with the key-value head that `group` heads share."""
    if group == 1:
        return say("head {number}", number=head + 1)
    return say("head {number} (key-value head {group})", number=head + 1, group=head // group + 1)


def bracket(layout: Spec, n_heads: int, group: int, *, cells: int = 1) -> None:
    """Draw a bracket over each group of neighbouring heads, `cells` columns per head, and lines between groups.

    Nothing is drawn if `group` is 1: no heads share keys and values.
    """
    if group == 1:
        return
    n_groups = n_heads // group
    layout["margin"]["t"] += _ROOM
    shapes, names = layout.setdefault("shapes", []), layout.setdefault("annotations", [])
    for one in range(n_groups):
        left, right = one * group * cells - 0.5, (one + 1) * group * cells - 0.5
        inside = 0.06 * (right - left)
        over = {"type": "line", "yref": "y domain", "line": {"color": MARK_COLOR, "width": 2}}
        shapes.append({**over, "x0": left + inside, "x1": right - inside, "y0": 1.006, "y1": 1.006})
        if one:
            shapes.append(upright(left, width=3, dash="", below=False))
        text = say("K, V {number}", number=one + 1) if n_groups <= _MOST_NAMED else str(one + 1)
        at = {"xref": "x", "yref": "y domain", "yanchor": "bottom", "yshift": 3, "font": {"size": 12}}
        names.append(note((left + right) / 2, 1, text) | at)


HOW_TO_READ = say(
    "Each tile is one head's map: a row is a token that reads (query), a column is a token that is read (key). The "
    "stronger the colour, the more the row takes from the column. A weight is softmax(q·k / √d_head) over the keys."
)
HOW_TO_READ_CLOSED = say("Grey cells are closed by the mask.")

_MARGINS = 150  # pixels of title, axis and names of keys
_LEAST_TILE = 26  # pixels of a layer: lower ones look alike


def grid_spec(
    maps: np.ndarray | Blocks,
    *,
    queries: Sequence[str],
    keys: Sequence[str],
    title: str,
    query_axis: str = say("Query"),
    key_axis: str = say("Key"),
    allowed: np.ndarray | None,
    mask_reason: str = CLOSED,
    chosen: tuple[int | None, int | None] = (None, None),
    colour: Colour = "neutral",
    own_scale: bool = False,
    log: bool = False,
    show_scale: bool = True,
    width: int = 560,
    most_cells: int = 48_000,
    group: int = 1,
    prompt: int | None = None,
    note: str = "",
) -> Spec:
    """Draw all heads of all layers: weights [layer, head, query, key], 0 to 1, or blocks of them if too many.

    With the colour "signed", they are any numbers, and 0 is in the middle of the colours.

    `allowed` is [query, key], or [layer, query, key] if layers differ; with blocks, it and `most_cells` are ignored.
    `chosen` is the layer and head whose tile is framed; a layer alone frames its row. `own_scale`: each head's
    colours go up to its own largest weight; `log`: they follow the logarithm, from `LOG_FLOOR`. Tiles get a height to
    match `width`, in pixels; above `most_cells` cells, blocks are drawn, and the chart says so. `group` neighbouring
    heads share one key-value head, under one bracket. Lines separate the rows before and from `prompt` on, the row
    that predicts the output's first piece. A click gives the cell, `tile_at` its head.
    """
    shape = (*(maps.weights if isinstance(maps, Blocks) else maps).shape[:2], len(queries), len(keys))
    layout = _layout(shape, title, width)
    signed, log = colour == "signed", log and colour != "signed"
    if isinstance(maps, Blocks):
        blocks = maps
    else:
        open_cells = np.ones(maps.shape[-2:], bool) if allowed is None else np.asarray(allowed, dtype=bool)
        if maps.ndim != 4 or maps.shape != shape or open_cells.shape not in (shape[2:], (shape[0], *shape[2:])):
            raise ValueError(f"Maps {maps.shape} and mask {open_cells.shape} for {shape[2]} x {shape[3]} labels.")
        if not maps.size:
            return {"data": [], "layout": layout}
        numbers = np.asarray(maps, dtype=np.float32)
        blocks = pooled(numbers, open_cells, block_size(shape, most_cells), signed=signed)
    layout["meta"] = {
        GRID: {
            **pack(blocks, own_scale=own_scale, least=LOG_FLOOR if log else 0, signed=signed),
            "layers": [say("Layer {number}", number=number) for number in range(1, shape[0] + 1)],
            "heads": [head_named(head, group) for head in range(shape[1])],
            "queries": _labels(queries, blocks.size),
            "keys": _labels(keys, blocks.size),
            "block": blocks.size,
        },
        "least_height": _MARGINS + _LEAST_TILE * shape[0],
    }
    _place(layout, shape, blocks.weights.shape, chosen)
    bracket(layout, shape[1], group, cells=blocks.weights.shape[3])
    if prompt is not None:
        part_tiles(layout, blocks.weights.shape, row=prompt / blocks.size, column=(prompt + 1) / blocks.size)
    _say(layout, blocks, note, own_scale=own_scale, log=log)
    names = (query_axis, key_axis)
    top = max(layout["meta"][GRID]["tops"])
    data = [_tiles(names, colour, blocks.size, top, own_scale=own_scale, log=log, show_scale=show_scale)]
    if not blocks.allowed.all():
        data.append(_packed(GRID_CLOSED, GREY, _hover(names, italic(mask_reason)), show_scale=False))
    return {"data": data, "layout": layout}


def _whole_spec(*args: Any, **options: Any) -> Spec:
    """`grid_spec` with every cell's number and names, for those who have no browser side of ours."""
    return unpacked(grid_spec(*args, **options))


_whole_spec.__doc__ = grid_spec.__doc__
grid = as_figure(_whole_spec)


def tile_at(spec: Spec, row: int, column: int) -> tuple[int, int]:
    """Layer and head, from 0, of a cell of a grid; its row and column count over all tiles."""
    packed = spec["layout"]["meta"][GRID]
    return row // len(packed["queries"]), column // len(packed["keys"])


def follow_in_tiles(spec: Spec, queries: Sequence[int]) -> None:
    """Have the browser mark the current step's query in every tile; the maps are not empty."""
    packed = spec["layout"]["meta"][GRID]
    n_rows, n_columns = len(packed["queries"]), len(packed["keys"]) * len(packed["heads"])
    rows, starts = [query // packed["block"] for query in queries], range(0, n_rows * len(packed["layers"]), n_rows)
    follow_steps(spec, rows, n_rows=n_rows, n_columns=n_columns, starts=starts, most_framed=40)


def _labels(pieces: Sequence[str], size: int) -> list[str]:
    """Name each row or column of a tile; a block by its first and last piece."""
    names = [shortened(piece, limit=48) for piece in pieces]
    if size == 1:
        return numbered(names)
    ends = [(first, min(first + size, len(names)) - 1) for first in range(0, len(names), size)]
    both = (joined(" … ", [bold(names[first]), bold(names[last])]) for first, last in ends)
    return [
        say("{first} to {last}: {pieces}", first=first + 1, last=last + 1, pieces=pieces)
        for (first, last), pieces in zip(ends, both, strict=True)
    ]


def _layout(shape: tuple[int, ...], title: str, width: int) -> Spec:
    n_layers, n_heads, n_queries, n_keys = shape
    layout = base_layout(title, say("Head"), say("Layer"))
    tile = (width - 70) / max(n_heads, 1)
    share = np.clip(n_queries / max(n_keys, 1), 0.4, 1.0)
    most = max(640, _MARGINS + _LEAST_TILE * n_layers)
    layout["height"] = int(np.clip(_MARGINS + n_layers * tile * share, 180, most))
    return layout


def _place(layout: Spec, shape: tuple[int, ...], drawn: tuple[int, ...], chosen: tuple[int | None, int | None]) -> None:
    """Name the tiles on both axes, part them by thin lines and frame the chosen one."""
    sizes = {"yaxis": (shape[0], drawn[2]), "xaxis": (shape[1], drawn[3])}
    layout["shapes"] = []
    thin = {"type": "line", "line": {"color": theme.GUIDE_COLOR, "width": 1}}
    for name, (count, cells) in sizes.items():
        ends = [-0.5, count * cells - 0.5]
        shown = range(0, count, -(-count // 24))  # more numbers than that would not fit
        layout[name] |= {
            "range": ends[::-1] if name == "yaxis" else ends,
            "tickmode": "array",
            "tickvals": [(tile + 0.5) * cells - 0.5 for tile in shown],
            "ticktext": [str(tile + 1) for tile in shown],
            "showgrid": False,
            "ticks": "",
            "uirevision": f"{shape} {drawn}",
        }
        along, across = ("y", "x") if name == "yaxis" else ("x", "y")
        thin_one = thin | {f"{across}0": 0, f"{across}1": 1, f"{across}ref": f"{across} domain"}
        places = [tile * cells - 0.5 for tile in range(count + 1)]
        layout["shapes"] += [thin_one | {f"{along}0": place, f"{along}1": place} for place in places]
    layer, head = chosen
    if layer is not None:
        left, right = (0, shape[1]) if head is None else (head, head + 1)
        x, y = (left * drawn[3] - 0.5, right * drawn[3] - 0.5), (layer * drawn[2] - 0.5, (layer + 1) * drawn[2] - 0.5)
        layout["shapes"].append(frame(x, y, width=3))


def _say(layout: Spec, blocks: Blocks, note: str, *, own_scale: bool, log: bool) -> None:
    """Say what a reader must know before comparing tiles."""
    said = [literal(note)]
    if blocks.size > 1:
        said.append(say("pooled: each cell is the largest of {size} × {size} weights", size=blocks.size))
    if own_scale:
        said.append(say("each head has its own scale"))
    if log:
        said.append(say("logarithmic colours"))
    if (np.isnan(blocks.weights) & blocks.allowed[:, None]).any():
        said.append(say("blank cells have no finite value"))
    subtitle(layout, said)


def _tiles(
    names: tuple[str, str], colour: Colour, size: int, top: float, *, own_scale: bool, log: bool, show_scale: bool
) -> Spec:
    shares = (1, 0.1, 0.01, 0.001, LOG_FLOOR) if log else (1, 0.75, 0.5, 0.25, 0)
    places = [1 - np.log10(share) / np.log10(LOG_FLOOR) for share in shares] if log else list(shares)
    ends = [f"{share:g}" for share in shares]
    if colour == "signed":
        ends = [f"{(2 * share - 1) * (1 if own_scale else top):.3g}" for share in shares]
    value = say("largest weight") if size > 1 else WEIGHT
    about = say("{value}: about {number} (rounded)", value=value, number="<b>%{customdata[2]:.2~g}</b>")
    title = say("fraction of the head's largest weight") if own_scale else WEIGHT
    marks = (places, [*ends[:-1], f"≤ {ends[-1]}" if log else ends[-1]])
    tiles = _packed(GRID, theme.SCALES[colour], _hover(names, about), show_scale=show_scale)
    return tiles | {"name": value, "colorbar": colour_bar(title, marks=marks)}


def _packed(meta: str, colours: list[list[Any]], says: str, *, show_scale: bool) -> Spec:
    """Cells whose numbers are in `layout.meta.grid`."""
    found = {"type": "heatmap", "zmin": 0, "zmax": 1, "colorscale": colours, "meta": meta, **PLACES}
    return found | {"hoverongaps": False, "hovertemplate": says, "showscale": show_scale}


def _hover(names: tuple[str, str], last_line: str) -> str:
    """Layer and head, query, key, and what is there; `customdata` is ((layer, query), (head, key), number)."""
    query, key = (of_axis(literal(name), f"%{{customdata[{place}][1]}}") for place, name in enumerate(names))
    return hover("%{customdata[0][0]}, %{customdata[1][0]}", query, key, last_line)


# ------------------------------------------------------------------------------------------------ given maps


class Attention(Protocol):
    """The maps of one attention."""

    @property
    def weights(self) -> np.ndarray:
        """[layer, head, query, key], 0 to 1."""

    @property
    def queries(self) -> Sequence[str]:
        """A label for each row."""

    @property
    def keys(self) -> Sequence[str]:
        """A label for each column."""

    @property
    def allowed(self) -> np.ndarray | None:
        """Bool [query, key], True = may attend. None: all may."""

    @property
    def sums_to_one(self) -> bool:
        """Whether rows should sum to 1."""

    @property
    def signed(self) -> bool:
        """Whether the numbers are attributions, on both sides of 0."""


def all_heads(attention: Attention, *, title: str = "", own_scale: bool = False, log: bool = False) -> go.Figure:
    """Draw every head of every layer as a small map.

    `own_scale`: each head has its own scale instead of 0 to 1 for all; `log`: colours follow the logarithm.
    """
    layers, heads = attention.weights.shape[:2]
    return grid(
        attention.weights,
        queries=attention.queries,
        keys=attention.keys,
        title=title or say("{layers} layers × {heads} heads", layers=layers, heads=heads),
        allowed=attention.allowed,
        colour="signed" if attention.signed else "neutral",
        own_scale=own_scale,
        log=log,
    )


def one_map(
    attention: Attention, *, layer: int | None = None, head: int | None = None, title: str = "", log: bool = False
) -> go.Figure:
    """Draw the map of one head, from 0, or the mean of several.

    `head` None is the mean of its layer; both None is the mean of all layers. Raises ValueError if there is no such
    layer or head. `log`: colours follow the logarithm of the weight.
    """
    layers, heads = attention.weights.shape[:2]
    for name, place, count in (("layer", layer, layers), ("head", head, heads)):
        if place is not None and not 0 <= place < count:
            raise ValueError(f"{name} {place} of {count}: give 0 to {count - 1}, or None for the mean.")
    if layer is None and head is not None:
        raise ValueError(f"head {head} of no layer: give a layer, too.")
    if layer is None:
        weights = attention.weights.mean(axis=(0, 1))
        name = say("mean of all {n_layers} layers × {n_heads} heads", n_layers=layers, n_heads=heads)
    elif head is None:
        weights = attention.weights[layer].mean(axis=0)
        name = say("layer {layer}, mean of its {n_heads} heads", layer=layer + 1, n_heads=heads)
    else:
        weights = attention.weights[layer, head]
        name = say("layer {layer}, head {head}", layer=layer + 1, head=head + 1)
    most = float(np.abs(weights).max(initial=0.0)) or 1.0
    return as_figure(heatmap_spec)(
        weights,
        queries=attention.queries,
        keys=attention.keys,
        title=title or name,
        allowed=attention.allowed,
        colour="signed" if attention.signed else "neutral",
        limits=(-most, most) if attention.signed else (0.0, 1.0),
        log=log and not attention.signed,
        rows_sum_to_one=attention.sums_to_one,
    )
