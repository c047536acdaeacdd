"""Masks: a batch and its padding, a mask at its own shape and after broadcasting.

Open cells have the colour of the key's side, closed ones are hatched or grey. A mask holds no numbers: its cells say
True and False, or 0 and −∞ where it is written as what is added to the scores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from charts.heatmap import heatmap_spec
from charts.hover import bold, hover, italic, of_axis
from charts.theme import CELLS, MARK_COLOR, MASK_COLOR, SCALES, Colour, Spec, as_figure, base_layout, literal
from words import joined, say

Convention = Literal["bool", "additive"]

HOW_TO_READ_BATCH = say(
    "Each row is one sentence of the batch, each column one position; hatched positions are padding, put there only "
    "to make all rows equally long."
)
HOW_TO_READ_OWN = say(
    "The mask as the model makes it, before it is stretched: an axis of size 1 is stored once and repeated for all "
    "when it meets the scores [batch, head, query, key]; grey is False, may not attend."
)
HOW_TO_READ_BLOCKS = joined(" ", [HOW_TO_READ_OWN, say("Blocks side by side are the sentences of the batch.")])
HOW_TO_READ_BOOL = say(
    "Row = query, column = key: T (True) = this query may attend to this key, hatched F (False) = it may not."
)
HOW_TO_READ_ADDITIVE = say(
    "The same mask as numbers M in softmax(q·k / √d_head + M): 0 changes nothing, a hatched −∞ makes the weight "
    "exactly 0."
)

_PADDING = say("padding")
_MOST_WRITTEN = 20  # above this many columns a letter in each cell is too small to read
_MOST_INFINITE = 8  # and above this many "−∞" is a grey band: the hatching says it
_WORDS: dict[Convention, tuple[str, str]] = {
    "bool": (say("T", about="True, in a small cell"), say("F", about="False, in a small cell")),
    "additive": ("0", "−∞"),
}
SENTENCE, POSITION = say("Sentence"), say("Position")
_ON_HOVER: dict[Convention, tuple[str, str]] = {
    "bool": (say("True"), say("False")),
    "additive": (say("0 is added"), say("−∞ is added")),
}


def padded_batch_spec(
    pieces: Sequence[Sequence[str]],
    real: np.ndarray,
    *,
    sentences: Sequence[str],
    columns: Sequence[str],
    title: str,
    column_axis: str,
    marked_row: int,
    colour: Colour,
) -> Spec:
    """Draw a padded batch.

    Args:
        pieces: The piece at each position, [sentence][position].
        real: bool `[sentence, position]`, False where it is padding.
        sentences: A label for each row.
        columns: A label for each position.
        title: What the chart shows.
        column_axis: What the columns are.
        marked_row: The sentence that is looked at.
        colour: The side.

    Returns:
        The figure; `layout.height` suggests a height in pixels.

    Raises:
        ValueError: If the sizes do not fit together.
    """
    layout, hatching = _frame_of(real, sentences, columns, title, (SENTENCE, column_axis), marked_row)
    layout["height"] = 150 + 34 * len(sentences)
    text = [[literal(piece) for piece in row] for row in pieces]
    layout["meta"]["table"] = {
        "columns": [SENTENCE, column_axis, say("Piece"), say("note")],
        "rows": [
            [sentence, column, piece, "" if is_real else _PADDING]
            for sentence, line, marks in zip(sentences, pieces, real.tolist(), strict=True)
            for column, piece, is_real in zip(columns, line, marks, strict=True)
        ],
    }
    names = (SENTENCE, POSITION)
    padding = joined(" ", ["<b>%{text}</b>", italic(_PADDING)])
    data = [
        _cells(real, _open(colour), _hover(names, "<b>%{text}</b>"), text=text),
        *([_cells(~real, MASK_COLOR, _hover(names, padding), text=text)] if hatching else []),
    ]
    return {"data": [*data, *hatching], "layout": layout}


padded_batch = as_figure(padded_batch_spec)


def mask_own_shape_spec(mask: np.ndarray, *, title: str, sentences: Sequence[str], colour: Colour) -> Spec:
    """Draw a mask at its own shape: one block of rows, or one block a sentence side by side.

    Args:
        mask: bool `[batch or 1, 1, query or 1, key]`, True = may attend.
        title: What the chart shows.
        sentences: A short label for each sentence; used where the batch axis is not 1.
        colour: The side of the keys.

    Returns:
        The figure; `layout.height` suggests a height in pixels.

    Raises:
        ValueError: If the sizes do not fit together.
    """
    n_batch, n_heads, n_queries, n_keys = mask.shape
    if n_heads != 1 or n_batch not in (1, len(sentences)):
        raise ValueError(f"A mask {mask.shape} of {len(sentences)} sentences: give one [batch or 1, 1, query, key].")
    rows_are_sentences = n_queries == 1
    blocks = [mask[:, 0, 0]] if rows_are_sentences else list(mask[:, 0])
    layout = base_layout(title, say("Key"), SENTENCE if rows_are_sentences else say("Query"))
    layout["height"] = int(np.clip(150 + 34 * n_batch, 184, 290)) if rows_are_sentences else 320
    down = dict(layout["yaxis"], range=[len(blocks[0]) + 0.5, 0.5], showgrid=False, **_counted(len(blocks[0])))
    if rows_are_sentences:
        down |= {
            "tickmode": "array",
            "tickvals": list(range(1, n_batch + 1)),
            "ticktext": [literal(label) for label in sentences],
        }
    layout["yaxis"] = down
    data = []
    for place, block in enumerate(blocks):
        name = "" if place == 0 else str(place + 1)
        of = say("Key ({sentence})", sentence=place + 1) if len(blocks) > 1 else say("Key")
        layout[f"xaxis{name}"] = {
            "title": {"text": of, "standoff": 8},
            "domain": [place / len(blocks) + 0.02 * bool(place), (place + 1) / len(blocks)],
            "range": [0.5, n_keys + 0.5],
            **_counted(n_keys),
            "showgrid": False,
            "zeroline": False,
            "automargin": True,
        }
        data.append(_block(block, f"x{name}", SENTENCE if rows_are_sentences else say("Query"), colour))
    return {"data": data, "layout": layout}


mask_own_shape = as_figure(mask_own_shape_spec)


def _counted(count: int) -> dict[str, Any]:
    """Whole numbers from 1, about six of them."""
    return {"tickmode": "linear", "tick0": 1, "dtick": max(1, -(-count // 6))}


def _block(block: np.ndarray, axis: str, row_name: str, colour: Colour) -> Spec:
    return {
        "type": "heatmap",
        "z": block.astype(np.int8),
        "zmin": 0,
        "zmax": 1,
        "x0": 1,
        "dx": 1,
        "y0": 1,
        "dy": 1,
        "xgap": 1 if max(block.shape) <= 32 else 0,
        "ygap": 1 if max(block.shape) <= 32 else 0,
        "xaxis": axis,
        "yaxis": "y",
        "colorscale": [[0, MASK_COLOR], [1, _open(colour)]],
        "showscale": False,
        "colorbar": {"title": {"text": say("True = 1")}},  # not drawn; the table's column is called so
        "hovertemplate": hover(
            say("{rows} {row}, key {column}", rows=row_name, row="%{y}", column="%{x}"),
            say("{value} (1 = True, may attend)", value="<b>%{z}</b>"),
        ),
    }


def mask_map_spec(
    mask: np.ndarray,
    *,
    reasons: Mapping[str, np.ndarray],
    queries: Sequence[str],
    keys: Sequence[str],
    title: str,
    axes: tuple[str, str],
    cell: tuple[int, int],
    colour: Colour,
    convention: Convention,
) -> Spec:
    """Draw one sentence's mask after broadcasting.

    Args:
        mask: bool `[query, key]`, True = may attend.
        reasons: Why cells are closed -> bool `[query, key]`, which ones; together they are all closed cells.
        queries, keys: Labels of rows and columns.
        title: What the chart shows.
        axes: What rows and columns are.
        cell: The cell that is looked at, row and column; it is framed.
        colour: The side of the keys.
        convention: How cells are written.

    Returns:
        The figure; `layout.height` suggests a height in pixels.

    Raises:
        ValueError: If the sizes do not fit together, or the reasons are not those of the closed cells.
    """
    layout, hatching = _frame_of(mask, queries, keys, title, axes, None)
    if not np.array_equal(np.sum([*reasons.values(), np.zeros(mask.shape)], axis=0), ~mask):
        raise ValueError("Each closed cell needs one reason, and open cells none.")
    row, column = cell
    layout["shapes"] = [_rectangle(column - 0.5, column + 0.5, row - 0.5, row + 0.5)]
    words, on_hover = _WORDS[convention], _ON_HOVER[convention]
    data = []
    if mask.any():
        data.append(_cells(mask, _open(colour), _hover(axes, say("{value}: may attend", value=bold(on_hover[0])))))
        data[0] |= {"colorbar": {"title": {"text": say("may attend") if convention == "bool" else say("added")}}}
        data[0]["z"] = np.where(mask, np.float32(convention == "bool"), np.float32(np.nan))  # what the table has
    for reason, where in reasons.items():
        if where.any():
            hover = _hover(axes, joined(": ", [bold(on_hover[1]), italic(reason)]))
            data.append(_cells(where, MASK_COLOR, hover))
    if data and len(keys) <= _MOST_WRITTEN:  # on the last map, which lies over the others, for the cells of all
        closed = words[1] if convention == "bool" or len(keys) <= _MOST_INFINITE else ""
        data[-1] |= {
            "text": [[words[0] if may else closed for may in cells] for cells in mask],
            "texttemplate": "%{text}",
            "textfont": {"color": MARK_COLOR},
        }
    return {"data": [*data, *hatching], "layout": layout}


mask_map = as_figure(mask_map_spec)


def _frame_of(
    open_cells: np.ndarray,
    rows: Sequence[str],
    columns: Sequence[str],
    title: str,
    axes: tuple[str, str],
    marked_row: int | None,
) -> tuple[dict[str, Any], list[Spec]]:
    """The layout of a map of these rows and columns, and the hatching of its closed cells."""
    spec = heatmap_spec(
        np.ones(open_cells.shape, dtype=np.float32),
        queries=rows,
        keys=columns,
        title=title,
        query_axis=axes[0],
        key_axis=axes[1],
        allowed=open_cells,
        marked_row=marked_row,
        rows_sum_to_one=False,
    )
    return spec["layout"], [trace for trace in spec["data"] if trace["type"] == "scatter"]


def _cells(
    where: np.ndarray,
    shade: str,
    hover: str,
    *,
    text: list[list[str]] | None = None,
) -> Spec:
    """Cells of one colour; none where `where` is False."""
    gap = 1 if max(where.shape) <= 64 else 0
    return {
        "type": "heatmap",
        "z": np.where(where, 1, np.nan).astype(np.float32),
        "zmin": 0,
        "zmax": 1,
        "colorscale": [[0, shade], [1, shade]],
        "showscale": False,
        "meta": CELLS,
        "hoverongaps": False,
        "hovertemplate": hover,
        **({} if text is None else {"text": text}),
        **{"x0": 0, "dx": 1, "y0": 0, "dy": 1, "xgap": gap, "ygap": gap},
    }


def _hover(names: tuple[str, str], last_line: str) -> str:
    row, column = (literal(name) for name in names)
    return hover(of_axis(row, "%{customdata[0]}"), of_axis(column, "%{customdata[1]}"), last_line)


def _open(colour: Colour) -> str:
    return str(SCALES[colour][2][1])


def _rectangle(x0: float, x1: float, y0: float, y1: float) -> dict[str, Any]:
    line = {"color": MARK_COLOR, "width": 2}
    return {"type": "rect", "x0": x0, "x1": x1, "y0": y0, "y1": y1, "line": line}
