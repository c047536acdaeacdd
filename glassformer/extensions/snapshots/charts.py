"""Filmstrip chart (Plotly): one attention map at several training snapshots as tiles; layout, the clicked tile.

A tile for each moment has its name above it. How many are in a row depends on the room: the browser lays them out
anew (`glassformer/components/plotly/film.js`); what is sent is laid out for a sheet of paper. One heat map holds all
tiles, with empty rows and columns of cells between them.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from glassformer.charts import theme
from glassformer.charts.grammar import GREY, frame, note
from glassformer.charts.heatmap import WEIGHT, map_columns
from glassformer.charts.hover import hover, italic, of_axis, on_lines, with_number
from glassformer.charts.theme import CLOSED, Colour, Spec, as_figure, base_layout, colour_bar, literal, subtitle
from transformer.i18n import say

HOW_TO_READ = say(
    "Each tile is the same map at another moment, all on one scale: queries run from top to bottom, keys from left "
    "to right. The stronger the colour, the larger the weight."
)
FILM, FILM_CLOSED = "film", "film-closed"
"""Mark the traces of a figure with `layout.meta.film`: its weights, and its closed cells."""

COLUMNS = 6  # of tiles, on paper
_SHORT: Spec = {"lenmode": "pixels", "len": 150, "y": 1, "yanchor": "top"}
GAP = 0.08  # between two tiles, of the width of one
_WIDTH, _FRAME, _LABEL = 700, 96, 36  # pixels: of a sheet, of title and axis, of the name of a tile
_LEAST, _MOST, _A_CELL = 88, 200, 3.6  # pixels that a tile takes at least, which grow with its cells


def film_spec(
    maps: np.ndarray,
    *,
    names: Sequence[tuple[str, str]],
    queries: Sequence[str],
    keys: Sequence[str],
    title: str,
    query_axis: str = say("Query"),
    key_axis: str = say("Key"),
    allowed: np.ndarray | None,
    mask_reason: str = CLOSED,
    chosen: int | None = None,
    colour: Colour = "neutral",
    block: int = 1,
) -> Spec:
    """Draw maps [moment, query, key] of weights 0 to 1, each with the two lines of its name; NaN is an empty cell.

    `allowed` is bool [query, key]; None means that nothing is closed. `chosen` is the moment whose tile is framed.
    With `block` cells are the largest of so many queries and keys, labelled by the first. `moment_in_film` reads what
    a click gives.
    """
    open_cells = np.ones(maps.shape[1:], bool) if allowed is None else np.asarray(allowed, dtype=bool)
    shape = (len(names), len(queries), len(keys))
    if maps.shape != shape or open_cells.shape != shape[1:]:
        raise ValueError(f"Maps {maps.shape} and mask {open_cells.shape} for {shape} names and labels.")
    layout = base_layout(title, key_axis, query_axis) | {"height": 220}
    if not maps.size:
        return {"data": [], "layout": layout}
    tiles = np.where(open_cells, np.asarray(maps, np.float32), np.nan)
    film: Spec = {
        "names": [on_lines(*map(literal, name)) for name in names],
        "queries": _labels(queries, block),
        "keys": _labels(keys, block),
        "chosen": chosen,
        "columns": min(COLUMNS, len(names)),
        "share": float(np.clip(tiles.shape[1] / tiles.shape[2], 0.4, 1.6)),
        "least": int(np.clip(_A_CELL * max(tiles.shape[1:]), _LEAST, _MOST)),
    }
    layout["meta"] = {FILM: film}
    x, y = _lay_out(layout, film)
    axes = [of_axis(literal(name), f"%{{customdata[{place}]}}") for place, name in enumerate((query_axis, key_axis), 1)]
    says = partial(hover, "%{customdata[0]}", *axes)
    bar = {"showscale": True, "name": WEIGHT, "colorbar": colour_bar(WEIGHT) | _SHORT}
    weights = _trace(FILM, _sheet(tiles, film["columns"]), theme.SCALES[colour], says(with_number(WEIGHT, "%{z:.3~g}")))
    data = [weights | {"x": x, "y": y} | bar]
    if not open_cells.all():
        grey = _sheet(np.broadcast_to(np.where(open_cells, np.nan, 0.0), tiles.shape), film["columns"])
        data.append(_trace(FILM_CLOSED, grey, GREY, says(italic(mask_reason))) | {"x": x, "y": y})
    several = say("pooled: each cell is the largest of {size} × {size} weights", size=block)
    subtitle(layout, [several] * (block > 1))
    columns = partial(_columns, tiles, moments=[first for first, _ in names], queries=queries, keys=keys,
                      query_axis=query_axis, key_axis=key_axis, allowed=open_cells,
                      mask_reason=mask_reason)  # fmt: skip
    return {"data": data, "layout": layout, "table": columns, "how_to_read": HOW_TO_READ}


def _whole_spec(*args: Any, **options: Any) -> Spec:
    """`film_spec` with the names of every cell, for those who have no browser side of ours."""
    spec = film_spec(*args, **options)
    film = spec["layout"].get("meta", {}).get(FILM)
    for trace in spec["data"]:
        labels = np.full((*trace["z"].shape, 3), "", dtype=object)
        rows, columns = len(film["queries"]) + 1, len(film["keys"]) + 1
        for place in np.ndindex(labels.shape[:2]):
            moment = place[0] // rows * film["columns"] + place[1] // columns
            row, column = place[0] % rows, place[1] % columns
            if moment < len(film["names"]) and row < rows - 1 and column < columns - 1:
                labels[place] = (film["names"][moment], film["queries"][row], film["keys"][column])
        trace["customdata"] = labels
    return spec


_whole_spec.__doc__ = film_spec.__doc__
film = as_figure(_whole_spec)


def moment_in_film(index: Sequence[int], n_queries: int) -> int | None:
    """The moment of a click on a tile of so many queries, from 0; None for no cell.

    The browser says the place as if a row had one tile; of an empty place at the end there is no moment.
    """
    return index[0] // (n_queries + 1) if len(index) == 2 else None


def _columns(tiles: np.ndarray, *, moments: Sequence[str], **cells: Any) -> dict[str, Any]:
    which = np.repeat(np.array(moments, dtype=object), tiles[0].size)
    return {say("moment"): which, **map_columns(tiles, **cells)}


def _labels(pieces: Sequence[str], block: int) -> list[str]:
    """Name each row or column of a tile."""
    return [f"{1 + place * block}: <b>{literal(piece)}</b>" for place, piece in enumerate(pieces)]


def _sheet(tiles: np.ndarray, columns: int) -> np.ndarray:
    """Tiles [moment, row, column] in rows of so many, an empty row and column of cells after each."""
    n_rows, n_queries, n_keys = -(-len(tiles) // columns), tiles.shape[1] + 1, tiles.shape[2] + 1
    sheet = np.full((n_rows * columns, n_queries, n_keys), np.nan, np.float16)
    sheet[: len(tiles), :-1, :-1] = tiles
    cells = sheet.reshape(n_rows, columns, n_queries, n_keys).swapaxes(1, 2)  # [row, query, column, key]
    return cells.reshape(n_rows * n_queries, columns * n_keys)


def _lay_out(layout: Spec, film: Spec) -> tuple[np.ndarray, np.ndarray]:
    """Names and frames of the tiles as on a sheet of paper; returns the edges of cells along both axes."""
    columns, count = film["columns"], len(film["names"])
    n_rows, tall = -(-count // columns), (_WIDTH / columns) * film["share"]
    gap = _LABEL / tall  # above a tile, of its height
    layout["height"] = int(_FRAME + n_rows * (tall + _LABEL))
    bare = {"showticklabels": False, "showgrid": False, "ticks": "", "fixedrange": True}
    layout["xaxis"] |= bare | {"range": [-0.01, columns * (1 + GAP) - GAP + 0.01]}
    layout["yaxis"] |= bare | {"range": [n_rows * (1 + gap) - gap + 0.01, -gap]}
    layout |= {"annotations": [], "shapes": []}
    for place, name in enumerate(film["names"]):
        left, top = place % columns * (1 + GAP), place // columns * (1 + gap)
        font = {"size": 11}
        layout["annotations"].append(
            note(left, top, name) | {"xanchor": "left", "yanchor": "bottom", "align": "left", "font": font}
        )
        layout["shapes"].append(frame((left, left + 1), (top, top + 1), width=3 if place == film["chosen"] else 0.5))
    return _edges(columns, len(film["keys"]), GAP), _edges(n_rows, len(film["queries"]), gap)


def _edges(tiles: int, cells: int, gap: float) -> np.ndarray:
    """Where cells begin and end along a row of tiles, each 1 long and followed by a gap that is one cell."""
    own = np.append(np.arange(cells) / cells, 1.0)
    return np.append(np.concatenate([place * (1 + gap) + own for place in range(tiles)]), tiles * (1 + gap))


def _trace(meta: str, cells: np.ndarray, colours: list[list[Any]], says: str) -> Spec:
    found = {"type": "heatmap", "meta": meta, "z": cells, "zmin": 0, "zmax": 1, "colorscale": colours}
    return found | {"showscale": False, "hoverongaps": False, "hovertemplate": says}
