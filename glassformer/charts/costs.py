"""The cost of a model and what saves time: shares of its components, tiled attention, blocks of a KV cache."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from glassformer.charts import theme
from glassformer.charts.grammar import HATCHED, cells, frame, layer, legend, listed, stroke, table, table_of, upright
from glassformer.charts.hover import bold, hover, on_lines, with_number
from glassformer.charts.one_weight import key_row_spec
from glassformer.charts.theme import CLOSED, Colour, Spec, base_layout, literal, shortened
from transformer.i18n import say

HOW_TO_READ_SHARES = say(
    "Each pair of bars is one component: its share of all parameters and its share of all multiply-adds. The bars "
    "of one colour sum to 100 %."
)


def cost_shares_spec(
    names: Sequence[str], parameters: Sequence[int], multiply_adds: Sequence[int], *, title: str
) -> Spec:
    """Draw each component's share of the learned parameters and of the multiply-adds of a pass, the first on top."""
    if not len(names) == len(parameters) == len(multiply_adds):
        raise ValueError(
            f"{len(names)} names, {len(parameters)} counts of parameters and {len(multiply_adds)} of multiply-adds: "
            "give one of each for every component."
        )
    layout = base_layout(title, say("Share (%)"), "") | {"barmode": "group", "bargap": 0.3, "bargroupgap": 0}
    layout["height"] = 130 + 40 * len(names)
    legend(layout, 80)
    listed(layout, map(literal, names))
    traces = [
        _shares(say("Parameters"), parameters, names, str(theme.SCALES["neutral"][1][1])),
        _shares(say("Multiply-adds"), multiply_adds, names, theme.NEUTRAL_COLOR),
    ]
    first, second = (trace["x"] for trace in traces)
    layout["xaxis"] |= {"range": [0, max(1.0, 1.22 * max([*first, *second], default=0.0))], "nticks": 6}
    layout["xaxis"] |= {"fixedrange": True}
    table_of(
        layout,
        (say("Component"), names),
        (say("Parameters"), parameters),
        (say("Share of parameters (%)"), first),
        (say("Multiply-adds"), multiply_adds),
        (say("Share of multiply-adds (%)"), second),
    )
    return {"data": traces, "layout": layout, "how_to_read": HOW_TO_READ_SHARES}


def _shares(name: str, counts: Sequence[int], names: Sequence[str], colour: str) -> Spec:
    shares = [100 * count / (sum(counts) or 1) for count in counts]
    pairs = list(zip(counts, shares, strict=True))
    written = [f"{share:.1f}" if count else "0" for count, share in pairs]
    said = [
        say("{name}: {count}, {share:.2f} &#37;", name=name, count=f"<b>{count:,}</b>", share=share)
        for count, share in pairs
    ]
    texts = [on_lines(literal(label), text) for label, text in zip(names, said, strict=True)]
    look = {"text": written, "textposition": "outside", "textfont": {"size": 11}, "cliponaxis": False}
    look |= {"marker": {"color": colour}}
    return layer("lying", shares, list(range(len(names))), look, name=name, texts=texts)


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
    """What hover says of a place of a block."""
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
