"""Marker of the current step's row, moved by the browser.

The mark is not part of the figure: a map of a long sentence would be sent again at every step. The figure says which
row belongs to which step; `glassformer/components/plotly/follow.js` draws the mark.
"""

from collections.abc import Sequence

from glassformer.charts.theme import MARK_COLOR, Spec
from transformer.i18n import say

HOW_TO_READ = say("The row of the current step is marked.")

_MOST_BOLD = 64  # rows; above this a bold frame would hide its row
_POINTERS: list[Spec] = [
    {"type": "path", "xref": "paper", "xsizemode": "pixel", "xanchor": edge, "ysizemode": "pixel", "path": path,
     "fillcolor": MARK_COLOR, "line": {"width": 0}}
    for edge, path in ((0, "M0,0L-7,-4L-7,4Z"), (1, "M0,0L7,-4L7,4Z"))
]  # fmt: skip


def follow_steps(
    spec: Spec,
    rows: Sequence[int | None],
    *,
    n_rows: int,
    n_columns: int,
    starts: Sequence[int] = (0,),
    most_framed: int = 128,
) -> None:
    """Have the browser mark the row of the current step: with a frame, or with pointers if rows are thin.

    `rows` has for each step its row of a map from `heatmap_spec` or `grid_spec`, or None. `starts` are the first rows
    of maps below each other; with more than `most_framed` rows in all, a frame would hide its row. Raises ValueError
    if a row is not in the map.
    """
    wrong = [row for row in rows if row is not None and not 0 <= row < n_rows]
    if wrong:
        raise ValueError(f"Row {wrong[0]} of a map with {n_rows}.")
    total = n_rows * len(starts)
    line = {"color": MARK_COLOR, "width": 2 if total <= _MOST_BOLD else 1}
    frame = {"type": "rect", "x0": -0.5, "x1": n_columns - 0.5, "line": line}
    layout, framed = spec["layout"], total <= most_framed
    layout.setdefault("meta", {})["follow"] = {
        "rows": list(rows),
        "starts": list(starts),
        "marks": [frame] if framed else _POINTERS,
    }
    if not framed:
        layout["yaxis"]["ticklabelstandoff"] = 8  # pixels, the room of a pointer
