"""The line between prompt and output on the maps of a decoder-only model.

The last row of the prompt reads its last piece and predicts the first piece of the output, so rows of the output
begin one before its columns.
"""

from glassformer.charts.theme import MARK_COLOR, Spec
from transformer.i18n import say

HOW_TO_READ = say(
    "The dotted lines separate the prompt from the output. Rows above the horizontal line predict the prompt, rows "
    "below it the output; columns left of the vertical line are the prompt."
)

_ROOM = 18  # pixels above the plot for the names
_LINE: Spec = {"type": "line", "line": {"color": MARK_COLOR, "width": 1.5, "dash": "dot"}}


def part_map(spec: Spec, *, row: int | None, column: int | None) -> None:
    """Draw a line above the first row of the output, and one before its first column, and name both sides.

    The map, of `heatmap_spec`, has closed cells in its upper right corner. The row is the first to predict an output
    piece, the column is the first output piece; None if none is drawn, or all are.
    """
    layout = spec["layout"]
    shapes, names = layout.setdefault("shapes", []), layout.setdefault("annotations", [])
    name = {"showarrow": False, "font": {"size": 12}}
    if row is not None and row > 0:
        shapes.append({**_LINE, "xref": "x domain", "x0": 0, "x1": 1, "y0": row - 0.5, "y1": row - 0.5})
        beside = {**name, "xref": "x domain", "x": 1, "xanchor": "right", "xshift": -4, "yref": "y", "y": row - 0.5}
        names.append({**beside, "yanchor": "bottom", "text": say("prompt", about="rows of a map")})
        names.append({**beside, "yanchor": "top", "text": say("output", about="rows of a map")})
    if column is not None and column > 0:
        shapes.append({**_LINE, "yref": "y domain", "y0": 0, "y1": 1, "x0": column - 0.5, "x1": column - 0.5})
        above = {**name, "yref": "y domain", "y": 1, "yanchor": "bottom", "xref": "x", "x": column - 0.5}
        names.append({**above, "xanchor": "right", "xshift": -4, "text": say("prompt", about="columns of a map")})
        names.append({**above, "xanchor": "left", "xshift": 4, "text": say("output", about="columns of a map")})
        layout["margin"]["t"] += _ROOM


def part_tiles(layout: Spec, drawn: tuple[int, ...], *, row: float, column: float) -> None:
    """Draw the same lines through all tiles of a grid, from edge to edge.

    `drawn` is its size, [layer, head, row, column] in blocks; so are `row` and `column`, of each tile.
    """
    n_layers, n_heads, n_rows, n_columns = drawn
    thin = {**_LINE, "line": {**_LINE["line"], "width": 1}}
    if 0 < row < n_rows:
        for layer in range(n_layers):
            at = layer * n_rows + row - 0.5
            layout["shapes"].append({**thin, "xref": "x domain", "x0": 0, "x1": 1, "y0": at, "y1": at})
    if 0 < column < n_columns:
        for head in range(n_heads):
            at = head * n_columns + column - 0.5
            layout["shapes"].append({**thin, "yref": "y domain", "y0": 0, "y1": 1, "x0": at, "x1": at})
