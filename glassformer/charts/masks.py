"""Masks as charts: a padded batch, a mask of queries and keys, one query's scores and weights at its mask.

Open cells have the colour of the key's side, closed ones are hatched or grey. A mask has no numbers: its cells say
True and False, or 0 and −∞ if it is written as an addition to the scores.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from glassformer.charts import theme
from glassformer.charts.grammar import HATCHED, SIDES, along, cells, frame, layer, numbered, table, table_of
from glassformer.charts.heatmap import WEIGHT, heatmap_spec
from glassformer.charts.hover import bold, hover, italic, of_cell, with_number
from glassformer.charts.theme import CLOSED, Colour, Spec, base_layout, capitalised, literal
from transformer.i18n import joined, say

Convention = Literal["bool", "additive"]

HOW_TO_READ_BATCH = say(
    "Each row is one sentence of the batch, each column one position. Hatched positions are padding, added only to "
    "make all rows equally long."
)
HOW_TO_READ: dict[Convention, str] = {
    "bool": say(
        "Row = query, column = key: T (True) = this query may attend to this key, hatched F (False) = it may not."
    ),
    "additive": say(
        "The same mask as numbers M in softmax(q·k / √d_head + M): 0 changes nothing, a hatched −∞ makes the weight "
        "exactly 0."
    ),
}
HOW_TO_READ_CHANGED = say("A ring marks a cell that a change to the model has opened or closed.")

_PADDING = say("padding")
_MOST_WRITTEN = 20  # above this many columns a letter or a sign in each cell is too small to read
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
    marked_row: int,
    colour: Colour,
) -> Spec:
    """Draw a padded batch: pieces [sentence][position]; `real`, bool [sentence, position], is False for padding."""
    layout, hatching = _frame_of(real, sentences, columns, title, (SENTENCE, POSITION), marked_row)
    layout["height"] = 150 + 34 * len(sentences)
    text = {"text": [[literal(piece) for piece in row] for row in pieces]}
    marks = zip(sentences, pieces, real.tolist(), strict=True)
    rows = [
        [sentence, column, piece, "" if is_real else _PADDING]
        for sentence, line, its_marks in marks
        for column, piece, is_real in zip(columns, line, its_marks, strict=True)
    ]
    names = (SENTENCE, POSITION)
    table(layout, [*names, say("Token"), say("note")], rows)
    data = [_cells(real, theme.SCALES[colour][2][1], of_cell(names, "<b>%{text}</b>")) | text]
    if hatching:
        padding = joined(" ", ["<b>%{text}</b>", italic(_PADDING)])
        data.append(_cells(~real, theme.MASK_COLOR, of_cell(names, padding)) | text)
    return {"data": [*data, *hatching], "layout": layout, "how_to_read": HOW_TO_READ_BATCH}


def mask_map_spec(
    mask: np.ndarray,
    *,
    reasons: Mapping[str, np.ndarray],
    changed: np.ndarray | None = None,
    queries: Sequence[str],
    keys: Sequence[str],
    title: str,
    axes: tuple[str, str],
    cell: tuple[int, int],
    colour: Colour,
    convention: Convention,
) -> Spec:
    """Draw one sentence's mask after broadcasting, bool [query, key], True = may attend.

    `reasons` maps each reason to the cells that it closes, bool [query, key]; ValueError if together they are not all
    closed cells. Cells that are `changed`, bool [query, key], have a ring. `axes` are the names of rows and columns,
    the chosen `cell` is framed, `colour` is the side of the keys.
    """
    layout, hatching = _frame_of(mask, queries, keys, title, axes, None)
    if not np.array_equal(np.sum([*reasons.values(), np.zeros(mask.shape)], axis=0), ~mask):
        raise ValueError("Each closed cell needs one reason, and open cells none.")
    row, column = cell
    layout["shapes"] = [frame((column - 0.5, column + 0.5), (row - 0.5, row + 0.5))]
    words, on_hover = _WORDS[convention], _ON_HOVER[convention]
    data = []
    if mask.any():
        says = of_cell(axes, joined(": ", [bold(on_hover[0]), say("may attend")]))
        bar = {"title": {"text": say("may attend") if convention == "bool" else say("added")}}
        z = np.where(mask, np.float32(convention == "bool"), np.float32(np.nan))  # what the table has
        data.append(_cells(mask, theme.SCALES[colour][2][1], says) | {"colorbar": bar, "z": z})
    for reason, where in reasons.items():
        if where.any():
            says = of_cell(axes, joined(": ", [bold(on_hover[1]), italic(reason)]))
            data.append(_cells(where, theme.MASK_COLOR, says))
    if data and len(keys) <= _MOST_WRITTEN:  # on the last map, which lies over the others, for the cells of all
        closed = words[1] if convention == "bool" or len(keys) <= _MOST_INFINITE else ""
        text = [[words[0] if may else closed for may in line] for line in mask]
        data[-1] |= {"text": text, "texttemplate": "%{text}", "textfont": {"color": theme.MARK_COLOR}}
    rings = [_rings(changed)] if changed is not None and changed.any() else []
    how_to_read = joined(" ", [HOW_TO_READ[convention], *[HOW_TO_READ_CHANGED] * len(rings)])
    return {"data": [*data, *hatching, *rings], "layout": layout, "how_to_read": how_to_read}


def _rings(cells: np.ndarray) -> Spec:
    """A ring in each of these cells; hover and clicks go to the cell."""
    rows, columns = np.nonzero(cells)
    size = 18 if max(cells.shape) <= _MOST_WRITTEN else 7
    marker = {"symbol": "circle-open", "size": size, "color": theme.MARK_COLOR, "line": {"width": 1.5}}
    return layer("markers", columns, rows, {"marker": marker, "showlegend": False})


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
    gap = 1 if max(where.shape) <= 64 else 0
    z = np.where(where, 1, np.nan).astype(np.float32)
    return cells(z, (0, 1), [[0, shade], [1, shade]], says, gaps=(gap, gap)) | {"hoverongaps": False}


HOW_TO_READ_ROW = say(
    "From top to bottom: the score q·k / √d_head of this query with each key; the score after the mask (−∞ for "
    "closed keys); the weight exp(score) / Σ exp(scores), summed over the open keys. The bars of the last row sum "
    "to 1."
)

_NUMBER = "%{y:.4f}"


def masked_row_spec(
    scores: np.ndarray,
    allowed: np.ndarray,
    weights: np.ndarray,
    *,
    keys: Sequence[str],
    title: str,
    key_axis: str,
    key: int,
    colour: Colour,
    mask_reasons: Sequence[str],
    filled: str = "−∞",
) -> Spec:
    """Draw one query's row three times over the same keys: scores before the mask, after it, and weights, all [key].

    `filled` is how a closed score is written; a closed key with weight has a bar. `mask_reasons` has the reason for
    each closed key. The chosen `key` is framed; a click returns the key's place.
    """
    shape = (len(keys),)
    if not scores.shape == allowed.shape == weights.shape == shape or len(mask_reasons) != len(keys):
        raise ValueError(f"{scores.shape} scores, {allowed.shape} mask, {weights.shape} weights, {len(keys)} keys.")
    layout = _row_layout(scores, keys, title, key_axis, key)
    low, high = layout["yaxis"]["range"]
    weighs = allowed | (weights > 0)
    kept, names = np.where(allowed, scores, np.nan), numbered(keys)
    score, shade = with_number(say("score"), _NUMBER), SIDES[colour][1]
    rows = [
        (kept, "y", score, shade),
        (kept, "y2", with_number(say("after the mask"), _NUMBER), shade),
        (np.where(weighs, weights, np.nan), "y3", with_number(WEIGHT, _NUMBER), shade),
    ]
    closed: list[int] = np.flatnonzero(~allowed).tolist()
    if closed:
        left_out = joined(", ", [score, CLOSED])
        rows.append((np.where(allowed, np.nan, scores), "y", left_out, theme.MASK_LINE))
    data = []
    for values, axis, last_line, own in rows:
        look, says = {"yaxis": axis, "marker": {"color": own}}, hover("%{hovertext}", last_line)
        y = values.astype(np.float32)
        data.append(layer("bar", np.arange(len(keys)), y, look, says=says, texts=names, clicks=range(len(keys))))
    if closed:
        named = {place: joined(" ", [names[place], italic(mask_reasons[place])]) for place in closed}
        data += [
            _closed(named, low, high - low, "y2", filled, written=len(keys) <= _MOST_WRITTEN),
            _closed({k: named[k] for k in closed if not weighs[k]}, 0.0, 1.0, "y3", say("weight exactly 0")),
        ]
    table_of(
        layout,
        (say("{rows} number", rows=key_axis), range(1, len(keys) + 1)),
        (key_axis, keys),
        (say("Score"), map(_digits, scores)),
        (say("After the mask"), map(_digits, kept)),  # no score, and no weight of 0, where the mask closes
        (say("Weight"), map(_digits, np.where(allowed | (weights != 0), weights, np.nan))),
        (say("note"), ("" if may else reason for may, reason in zip(allowed, mask_reasons, strict=True))),
    )
    return {"data": data, "layout": layout, "how_to_read": HOW_TO_READ_ROW}


def _row_layout(scores: np.ndarray, keys: Sequence[str], title: str, key_axis: str, key: int) -> dict[str, Any]:
    layout = base_layout(title, key_axis, say("Score"))
    along(layout, keys)
    layout["xaxis"] |= {"anchor": "y3"}
    finite = scores[np.isfinite(scores)]
    low, high = (min(0.0, float(finite.min())), max(0.0, float(finite.max()))) if finite.size else (0.0, 1.0)
    room = 0.08 * ((high - low) or 1.0)
    span = [low - room * (low < 0), high + room]
    fixed = {"fixedrange": True, "automargin": True, "zeroline": True, "nticks": 5, "showgrid": True}
    panels = (
        ("yaxis", say("Score"), span, [0.7, 1]),
        ("yaxis2", capitalised(say("after the mask")), span, [0.36, 0.64]),
        ("yaxis3", say("Weight"), [0, 1], [0, 0.3]),
    )
    for name, text, limits, domain in panels:
        layout[name] = {**fixed, "title": {"text": text, "standoff": 8}, "range": limits, "domain": domain}
    looked_at = frame((key - 0.5, key + 0.5), (0, 1), yref="paper")
    return layout | {"barmode": "overlay", "bargap": 0.25, "height": 520, "shapes": [looked_at]}


def _digits(value: float) -> float | None:
    """A float32 with as many digits as distinguish it from its neighbours; None for what is not a number."""
    return float(f"{value:.9g}") if np.isfinite(value) else None


def _closed(
    named: Mapping[int, str], base: float, height: float, axis: str, word: str, *, written: bool = False
) -> Spec:
    places = list(named)
    heights = np.full(len(places), height, dtype=np.float32)
    look = {"base": base, "width": 0.96, "yaxis": axis, "marker": HATCHED}
    if written:
        look |= {"text": [word] * len(places), "textposition": "inside", "insidetextanchor": "middle", "textangle": 0}
    says = hover("%{hovertext}", word)
    return layer("bar", np.array(places), heights, look, says=says, texts=named.values(), clicks=places)
