"""Charts of one attention row: q·k products, a number for each key, softmax tile by tile, a KV cache in blocks.

Numbers on hover have six significant digits, enough to check with a calculator.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from glassformer.charts import theme
from glassformer.charts.grammar import (
    HATCHED,
    SIDES,
    UNSEEN,
    along,
    cells,
    drawable,
    finite,
    frame,
    layer,
    legend,
    listed,
    numbered,
    one_side,
    stroke,
    table,
    table_of,
    upright,
)
from glassformer.charts.hover import bold, hover, italic, on_lines, with_number
from glassformer.charts.theme import CLOSED, Colour, Spec, base_layout, capitalised, colour_bar, literal, shortened
from transformer.i18n import say

HEIGHT = 260
NUMBER = ".6~g"
"""How hover writes a number: six significant digits."""
_MOST_GAPPED = 40  # dimensions; of more, a gap between cells would eat the cells


def query_times_key_spec(q: np.ndarray, k: np.ndarray, *, title: str, query: str, key: str) -> Spec:
    """Draw a query's and a key's vector [d_head] as two strips on one scale, and their products below."""
    if q.shape != k.shape or q.ndim != 1:
        raise ValueError(f"q is {q.shape} and k is {k.shape}: give two vectors of one length.")
    layout = base_layout(title, say("Dimension of the head"), "") | {"height": HEIGHT, "bargap": 0.15}
    layout["xaxis"] |= {"range": [-0.5, len(q) - 0.5], "tickformat": "d", "showgrid": False, "anchor": "y2"}
    layout["yaxis"] |= {"domain": [0.56, 1], "tickvals": [0, 1], "ticktext": ["q", "k"], "range": [1.5, -0.5]}
    layout["yaxis"] |= {"showgrid": False, "fixedrange": True}
    layout["yaxis2"] = {"domain": [0, 0.46], "title": {"text": "q × k"}, "automargin": True, "nticks": 4}
    layout["yaxis2"] |= {"zeroline": True}
    rows = [say("q of {query}", query=literal(query)), say("k of {key}", key=literal(key))]
    columns = [say("dimension {place}", place=place) for place in range(len(q))]
    layout["meta"] = {"cells": {"rows": rows, "columns": columns}}
    products = q * k
    lines = zip(q.tolist(), k.tolist(), products.tolist(), strict=True)
    table(layout, [say("dimension"), "q", "k", "q × k"], [[i, *map(finite, line)] for i, line in enumerate(lines)])
    template = hover("%{customdata[0]}", with_number("%{customdata[1]}", f"%{{z:{NUMBER}}}"))
    both, gap = np.stack((q, k)), 1 if len(q) <= _MOST_GAPPED else 0
    ends, scale = (-one_side(both), one_side(both)), colour_bar() | {"y": 0.78, "len": 0.5}
    strips = cells(drawable(both), ends, theme.SIGNED_SCALE, template, bar=scale, gaps=(gap, 1))
    strips |= {"name": say("q and k"), "hoverongaps": False}
    shades = [theme.SIGNED_SCALE[1][1] if value < 0 else theme.NEUTRAL_COLOR for value in products]
    says = hover(say("dimension {place}", place="%{x}"), with_number("q × k", f"%{{y:{NUMBER}}}"))
    look = {"yaxis": "y2", "marker": {"color": shades}}
    bars = layer("bar", np.arange(len(q)), drawable(products), look, name="q × k", says=says)
    return {"data": [strips, bars], "layout": layout}


def key_row_spec(
    values: np.ndarray,
    keys: Sequence[str],
    *,
    title: str,
    value_name: str,
    chosen: int,
    side: Colour = "source",
    key_axis: str = say("Key"),
    before: tuple[str, np.ndarray] | None = None,
    closed: Sequence[str] | None = None,
    limits: tuple[float, float] | None = None,
) -> Spec:
    """Draw one number for each key [key], in sentence order, the chosen key framed; closed keys are hatched.

    `before` is the name and numbers [key] of pale bars behind these; `closed` says why a key is closed, "" if it is
    open. `limits` are the ends of the axis; None fits them to the numbers and 0. A click anywhere in a key's column
    returns its place.
    """
    reasons = [""] * len(keys) if closed is None else list(closed)
    series = [] if before is None else [(before[0], np.asarray(before[1], dtype=np.float64))]
    series.append((value_name, np.asarray(values, dtype=np.float64)))
    if any(row.shape != (len(keys),) for _, row in series) or len(reasons) != len(keys):
        sizes = ", ".join(str(len(row)) for _, row in series)
        raise ValueError(f"{sizes} numbers and {len(reasons)} reasons for {len(keys)} keys: give one each.")
    layout = base_layout(title, key_axis, capitalised(value_name)) | {"barmode": "overlay", "height": HEIGHT}
    along(layout, keys)
    labels = layout["meta"]["ticks"]["xaxis"]
    labels["labels"] = [f"<b>{one}</b>" if place == chosen else one for place, one in enumerate(labels["labels"])]
    layout["yaxis"] |= {"nticks": 5, "zeroline": True, "fixedrange": True}
    if not len(keys):
        return {"data": [], "layout": layout}
    is_open = np.array([not reason for reason in reasons])
    low, high = _limits([row[is_open] for _, row in series]) if limits is None else limits
    layout["yaxis"]["range"] = [low, high]
    rows, said = [], []
    for place, (key, named, reason) in enumerate(zip(keys, numbered(keys), reasons, strict=True)):
        rows.append([place + 1, key, *(None if reason else finite(row[place]) for _, row in series), reason])
        numbers = [with_number(literal(name), f"{row[place]:.6g}") for name, row in series]
        said.append(on_lines(named, *([italic(reason)] if reason else numbers)))
    table(layout, [say("number"), key_axis, *(name for name, _ in series), say("note")], rows)
    pale, strong = SIDES[side] if side != "neutral" else (theme.SCALES["neutral"][1][1], theme.NEUTRAL_COLOR)
    styles = [(strong, 0.8)] if before is None else [(pale, 0.84), (strong, 0.44)]
    places, data = np.arange(len(keys)), []
    for (name, row), (colour, width) in zip(series, styles, strict=True):
        look = {"width": width, "marker": {"color": colour}}
        data.append(layer("bar", places, np.where(is_open, drawable(row), np.nan), look, name=literal(name)))
    column = {"base": low, "width": 1}
    if not is_open.all():
        closed = places[~is_open]
        data.append(layer("bar", closed, np.full(len(closed), high - low), column | {"marker": HATCHED}))
    # Columns from bottom to top that nobody sees: a weight of 0.001 is too low a bar to be pointed at.
    tops = np.full(len(keys), high - low)
    data.append(layer("bar", places, tops, column | UNSEEN, texts=said, clicks=range(len(keys))))
    layout["shapes"] = [frame((chosen - 0.45, chosen + 0.45), (low, high), width=1.5)]
    return {"data": data, "layout": layout}


def _limits(parts: Sequence[np.ndarray]) -> tuple[float, float]:
    """From the least to the largest number, 0 among them, with a little room."""
    finite = np.concatenate([part[np.isfinite(part)] for part in parts])
    low, high = float(finite.min(initial=0)), float(finite.max(initial=0))
    room = 0.06 * (high - low) or 1.0
    return low - room if low < 0 else 0.0, high + room if high > 0 else 0.0 if low < 0 else 1.0


# ------------------------------------------------------------------------------------------------ tiles, blocks

HOW_TO_READ_TILES = say(
    "Each bar is the score of one key. Dotted lines separate the tiles; the tile being read is framed, and tiles not "
    "read yet are grey. The dashed line is m, the largest score so far."
)
HOW_TO_READ_OUTPUT = say(
    "Bars show the output after this tile, o / l; diamonds show the head's output by the softmax over the whole row. "
    "After the last tile, each bar ends at its diamond."
)
HOW_TO_READ_BLOCKS = say(
    "Each row is one block of the cache, and each cell has room for the keys and values of one token, in all layers. "
    "The cell in full colour is the token that this step reads; grey cells are still empty."
)
HOW_TO_READ_PLACES = say("Filled bars count tokens in the cache; hatched bars count places that are kept but empty.")
PLACE_IN_BLOCK, DIMENSION = say("Place in the block"), say("Dimension of the head")
_WRITTEN = 8  # places of a block up to which its pieces are written into it


@dataclass(frozen=True)
class BlockRow:
    """One block of the cache: its name, which places of the texts it holds, their pieces, and the newest of them."""

    name: str
    first: int  # the place of its first token, from 0
    pieces: Sequence[str]
    newest: int | None = None  # the place in the block of the token that the step reads


def tile_scores_spec(
    scores: np.ndarray,
    keys: Sequence[str],
    peaks: Sequence[tuple[int, float]],
    *,
    size: int,
    allowed: np.ndarray,
    key_axis: str,
    side: Colour,
    title: str,
) -> Spec:
    """Draw a row's scores [key] in tiles of `size` keys.

    `peaks` has the end of each tile that was read and the largest score until then; the last of them is framed.
    """
    reasons = ["" if may else CLOSED for may in allowed]
    spec = key_row_spec(scores, keys, title=title, value_name=say("score"), chosen=-1, side=side, key_axis=key_axis,
                        closed=reasons)  # fmt: skip
    layout, end = spec["layout"] | {"height": 330}, peaks[-1][0]
    low, high = layout["yaxis"]["range"]
    first = (end - 1) // size * size
    layout["shapes"] = [upright(place - 0.5) for place in range(size, len(keys), size)]
    later = {"type": "rect", "x0": end - 0.5, "x1": len(keys) - 0.5, "y0": low, "y1": high, "opacity": 0.7}
    layout["shapes"] += [later | {"fillcolor": theme.MASK_COLOR, "line": {"width": 0}}] if end < len(keys) else []
    layout["shapes"] += [frame((first - 0.5, end - 0.5), (low, high))]
    x = [side for last, _ in peaks for side in ((last - 1) // size * size - 0.5, last - 0.5)]
    y = [peak if np.isfinite(peak) else None for _, peak in peaks for _ in range(2)]
    line = layer("lines", x, y, stroke(theme.MARK_COLOR, 2, "dash"), name="m")
    return {"data": [*spec["data"][:-1], line, spec["data"][-1]], "layout": layout, "how_to_read": HOW_TO_READ_TILES}


def tile_output_spec(output: np.ndarray, whole: np.ndarray, *, title: str) -> Spec:
    """Draw a head's output after a tile [d_head], and by the softmax over the whole row."""
    if output.shape != whole.shape:
        raise ValueError(f"{output.shape} numbers after a tile and {whole.shape} of the whole row: give as many.")
    layout, places = base_layout(title, DIMENSION, say("Output")) | {"height": 300}, np.arange(1, len(output) + 1)
    legend(layout, 74)
    names = say("after this tile, o / l"), say("whole row")
    table_of(layout, (DIMENSION, places.tolist()), (names[0], output.tolist()), (names[1], whole.tolist()))
    says = [hover(say("dimension {place}", place="%{x}"), with_number(name, "%{y:.6g}")) for name in names]
    bar = {"marker": {"color": theme.SCALES["neutral"][2][1]}}
    mark = {"marker": {"symbol": "diamond-open", "size": 8, "color": theme.MARK_COLOR, "line": {"width": 1.5}}}
    data = [layer("bar", places, output, bar, name=names[0], says=says[0])]
    data += [layer("markers", places, whole, mark, name=names[1], says=says[1])]
    return {"data": data, "layout": layout, "how_to_read": HOW_TO_READ_OUTPUT}


def cache_blocks_spec(blocks: Sequence[BlockRow], size: int, *, title: str) -> Spec:
    """Draw blocks of `size` places, the first on top, with the pieces that they hold."""
    layout = base_layout(title, PLACE_IN_BLOCK, "")
    listed(layout, [literal(one.name) for one in blocks])
    ticks = list(range(0, size, -(-size // 8)))
    layout["xaxis"] |= {"range": [-0.5, size - 0.5], "tickvals": ticks, "ticktext": [str(one + 1) for one in ticks]}
    layout["xaxis"] |= {"showgrid": False, "fixedrange": True}
    layout["height"] = 120 + 34 * max(len(blocks), 1)
    held = np.zeros((len(blocks), size), np.float32)
    texts, rows = [], []
    for row, one in enumerate(blocks):
        held[row, : len(one.pieces)] = 1
        if one.newest is not None:
            held[row, one.newest] = 2
        texts.append([_cell(one, place) for place in range(size)])
        rows += [[one.name, place + 1, one.first + place + 1, piece] for place, piece in enumerate(one.pieces)]
    table(layout, [say("block of the cache"), PLACE_IN_BLOCK, say("token"), say("token")], rows)
    shades = (theme.MASK_COLOR, theme.SCALES["target"][1][1], theme.TARGET_COLOR)
    scale = [[at, shade] for place, shade in enumerate(shades) for at in (place / 3, (place + 1) / 3)]
    trace = cells(held, (0, 2), scale, hover("%{hovertext}"), gaps=(2, 2), named=False) | {"hovertext": texts}
    if size <= _WRITTEN:
        layout["annotations"] = [
            {"x": place, "y": row, "text": literal(shortened(piece, limit=7)), "showarrow": False}
            | ({"font": {"color": theme.SCALES["neutral"][0][1]}} if place == one.newest else {})
            for row, one in enumerate(blocks)
            for place, piece in enumerate(one.pieces)
        ]
    return {"data": [trace], "layout": layout, "how_to_read": HOW_TO_READ_BLOCKS}


def _cell(one: BlockRow, place: int) -> str:
    said = say("empty")
    if place < len(one.pieces):
        said = say("token {place}: {piece}", place=one.first + place + 1, piece=bold(one.pieces[place]))
    return on_lines(literal(one.name), said)


def cache_places_spec(
    names: Sequence[str], filled: Sequence[int], empty: Sequence[int], *, token_bytes: int, title: str
) -> Spec:
    """Draw how many places each way of keeping a cache fills, and how many it keeps empty."""
    if not len(names) == len(filled) == len(empty):
        raise ValueError(f"{len(names)} names, {len(filled)} and {len(empty)} counts: give one of each.")
    layout = base_layout(title, say("Places, each for one token"), "") | {"barmode": "stack", "bargap": 0.35}
    layout["height"] = 130 + 48 * len(names)
    legend(layout, 74)
    layout["legend"]["traceorder"] = "normal"
    listed(layout, [literal(name) for name in names])
    called = say("filled"), say("empty")
    table_of(layout, (say("cache"), names), (called[0], filled), (called[1], empty))
    data = []
    for name, counts, marker in zip(called, (filled, empty), ({"color": theme.TARGET_COLOR}, HATCHED), strict=True):
        texts = [
            on_lines(literal(which), with_number(name, f"{n:,}"), say("{n:,} bytes", n=n * token_bytes))
            for which, n in zip(names, counts, strict=True)
        ]
        data.append(layer("lying", list(counts), list(range(len(names))), {"marker": marker}, name=name, texts=texts))
    return {"data": data, "layout": layout, "how_to_read": HOW_TO_READ_PLACES}
