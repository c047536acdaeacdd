"""Masks: a batch and its padding, a mask at its own shape and after broadcasting.

Open cells have the colour of the key's side, closed ones are hatched or grey. A mask holds no numbers: its cells say
True and False, or 0 and −∞ where it is written as what is added to the scores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from charts.grammar import cells, frame, table
from charts.heatmap import heatmap_spec
from charts.hover import bold, hover, italic, of_cell
from charts.theme import MARK_COLOR, MASK_COLOR, SCALES, Colour, Spec, base_layout, literal
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
    """Draw a padded batch: pieces [sentence][position], and where they are `real`, bool [sentence, position]."""
    layout, hatching = _frame_of(real, sentences, columns, title, (SENTENCE, column_axis), marked_row)
    layout["height"] = 150 + 34 * len(sentences)
    text = {"text": [[literal(piece) for piece in row] for row in pieces]}
    marks = zip(sentences, pieces, real.tolist(), strict=True)
    rows = [
        [sentence, column, piece, "" if is_real else _PADDING]
        for sentence, line, its_marks in marks
        for column, piece, is_real in zip(columns, line, its_marks, strict=True)
    ]
    table(layout, [SENTENCE, column_axis, say("Piece"), say("note")], rows)
    names = (SENTENCE, POSITION)
    data = [_cells(real, _open(colour), of_cell(names, "<b>%{text}</b>")) | text]
    if hatching:
        padding = joined(" ", ["<b>%{text}</b>", italic(_PADDING)])
        data.append(_cells(~real, MASK_COLOR, of_cell(names, padding)) | text)
    return {"data": [*data, *hatching], "layout": layout}


def mask_own_shape_spec(mask: np.ndarray, *, title: str, sentences: Sequence[str], colour: Colour) -> Spec:
    """Draw a mask at its own shape: one block of rows, or one block a sentence side by side.

    The mask is bool [batch or 1, 1, query or 1, key], True = may attend; `sentences` are named where the batch axis
    is not 1.
    """
    n_batch, n_heads, n_queries, n_keys = mask.shape
    if n_heads != 1 or n_batch not in (1, len(sentences)):
        raise ValueError(f"A mask {mask.shape} of {len(sentences)} sentences: give one [batch or 1, 1, query, key].")
    rows_are_sentences = n_queries == 1
    blocks = [mask[:, 0, 0]] if rows_are_sentences else list(mask[:, 0])
    row_name = SENTENCE if rows_are_sentences else say("Query")
    layout = base_layout(title, say("Key"), row_name)
    layout["height"] = int(np.clip(150 + 34 * n_batch, 184, 290)) if rows_are_sentences else 320
    layout["yaxis"] |= {"range": [len(blocks[0]) + 0.5, 0.5], "showgrid": False, **_counted(len(blocks[0]))}
    if rows_are_sentences:
        layout["yaxis"] |= {"tickmode": "array", "tickvals": list(range(1, n_batch + 1))}
        layout["yaxis"] |= {"ticktext": [literal(label) for label in sentences]}
    bare = {"showgrid": False, "zeroline": False, "automargin": True}
    data = []
    for place, block in enumerate(blocks):
        name = "" if place == 0 else str(place + 1)
        of = say("Key ({sentence})", sentence=place + 1) if len(blocks) > 1 else say("Key")
        width = [place / len(blocks) + 0.02 * bool(place), (place + 1) / len(blocks)]
        layout[f"xaxis{name}"] = {"title": {"text": of, "standoff": 8}, "domain": width, **_counted(n_keys), **bare}
        layout[f"xaxis{name}"] |= {"range": [0.5, n_keys + 0.5]}
        data.append(_block(block, f"x{name}", row_name, colour))
    return {"data": data, "layout": layout}


def _counted(count: int) -> dict[str, Any]:
    """Whole numbers from 1, about six of them."""
    return {"tickmode": "linear", "tick0": 1, "dtick": max(1, -(-count // 6))}


def _block(block: np.ndarray, axis: str, row_name: str, colour: Colour) -> Spec:
    gap = 1 if max(block.shape) <= 32 else 0
    says = hover(
        say("{rows} {row}, key {column}", rows=row_name, row="%{y}", column="%{x}"),
        say("{value} (1 = True, may attend)", value="<b>%{z}</b>"),
    )
    colours = [[0, MASK_COLOR], [1, _open(colour)]]
    return cells(block.astype(np.int8), (0, 1), colours, says, gaps=(gap, gap), named=False) | {
        **{"x0": 1, "y0": 1, "xaxis": axis, "yaxis": "y"},
        "colorbar": {"title": {"text": say("True = 1")}},  # not drawn; the table's column is called so
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
    """Draw one sentence's mask after broadcasting, bool [query, key], True = may attend.

    `reasons` say why cells are closed -> bool [query, key], which ones; ValueError if together they are not all
    closed cells. `axes` are what rows and columns are, the `cell` that is looked at is framed, `colour` is the side
    of the keys.
    """
    layout, hatching = _frame_of(mask, queries, keys, title, axes, None)
    if not np.array_equal(np.sum([*reasons.values(), np.zeros(mask.shape)], axis=0), ~mask):
        raise ValueError("Each closed cell needs one reason, and open cells none.")
    row, column = cell
    layout["shapes"] = [frame((column - 0.5, column + 0.5), (row - 0.5, row + 0.5))]
    words, on_hover = _WORDS[convention], _ON_HOVER[convention]
    data = []
    if mask.any():
        may_attend = _cells(mask, _open(colour), of_cell(axes, say("{value}: may attend", value=bold(on_hover[0]))))
        may_attend["colorbar"] = {"title": {"text": say("may attend") if convention == "bool" else say("added")}}
        may_attend["z"] = np.where(mask, np.float32(convention == "bool"), np.float32(np.nan))  # what the table has
        data.append(may_attend)
    for reason, where in reasons.items():
        if where.any():
            says = of_cell(axes, joined(": ", [bold(on_hover[1]), italic(reason)]))
            data.append(_cells(where, MASK_COLOR, says))
    if data and len(keys) <= _MOST_WRITTEN:  # on the last map, which lies over the others, for the cells of all
        closed = words[1] if convention == "bool" or len(keys) <= _MOST_INFINITE else ""
        text = [[words[0] if may else closed for may in line] for line in mask]
        data[-1] |= {"text": text, "texttemplate": "%{text}", "textfont": {"color": MARK_COLOR}}
    return {"data": [*data, *hatching], "layout": layout}


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


def _cells(where: np.ndarray, shade: str, says: str) -> Spec:
    """Cells of one colour; none where `where` is False."""
    gap = 1 if max(where.shape) <= 64 else 0
    z = np.where(where, 1, np.nan).astype(np.float32)
    return cells(z, (0, 1), [[0, shade], [1, shade]], says, gaps=(gap, gap)) | {"hoverongaps": False}


def _open(colour: Colour) -> str:
    return str(SCALES[colour][2][1])
