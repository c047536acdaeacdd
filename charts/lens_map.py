"""The logit lens at all steps: how the output's piece stood at every depth, and from where on it was settled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from charts.candidates import PROBABILITY
from charts.heatmap import NUMBER
from charts.hover import bold, hover, with_number
from charts.lens import DEPTH_AXIS, RANK, Depth, after, depth_rows
from charts.theme import CELLS, MARK_COLOR, SCALES, Spec, as_figure, base_layout, colour_bar, ticks
from words import say

HOW_TO_READ_MAP = say(
    "Each column is one step, each cell says how its output piece stood at that depth; a filled dot marks the depth "
    "from which it stays the top candidate, a ring where it was first on top for a while; click a cell to go there."
)

STEP_AXIS = say("Reads → predicts")
_MOST_GAPPED = 64  # above this many columns a gap between cells would eat the cells


def lens_map_spec(
    depths: Sequence[Depth],
    steps: Sequence[str],
    *,
    probability: np.ndarray,
    rank: np.ndarray,
    first: np.ndarray,
    stays: np.ndarray,
    step: int | None,
    title: str,
    measure: Literal["probability", "rank"] = "probability",
) -> Spec:
    """Draw how the output's piece of each step stood at each depth.

    Args:
        depths: The rows, first depth first.
        steps: What each step reads and predicts.
        probability: Of the piece that the output has `[depth, step]`.
        rank: Its place among the candidates, from 1 `[depth, step]`.
        first: The depth where it was first on top, -1 for never `[step]`.
        stays: The depth from which it stays on top, -1 for none `[step]`.
        step: The current step, framed; None frames none.
        title: What the map shows.
        measure: What the colours are.

    Returns:
        The figure; a click's index is `(depth, step)`.

    Raises:
        ValueError: If the sizes do not fit together.
    """
    shape = (len(depths), len(steps))
    maps, lines = (probability, rank), (first, stays)
    if any(np.shape(values) != shape for values in maps) or any(np.shape(line) != shape[1:] for line in lines):
        raise ValueError(f"The map is {np.shape(rank)}, its labels {shape}: give one label for each row and column.")
    layout = base_layout(title, STEP_AXIS, DEPTH_AXIS)
    depth_rows(layout, depths, fixed=False)
    across = ticks(steps, title=STEP_AXIS)
    layout["xaxis"] = {**across["axis"], "range": [-0.5, len(steps) - 0.5], "uirevision": "\n".join(steps)}
    layout["meta"]["ticks"]["xaxis"] = across["spec"]
    layout["meta"]["cells"] = {
        "rows": [after(bold(depth.name)) for depth in depths],
        "columns": [
            say("step {place}: {what}", place=place, what=bold(label)) for place, label in enumerate(steps, start=1)
        ],
    }
    layout["height"] = 200 + 26 * len(depths)
    if not len(steps):
        return {"data": [], "layout": layout}
    if measure == "rank":
        layout["meta"]["cells"]["floor"] = 1.0
    text, numbers = _on_hover(np.asarray(probability), np.asarray(rank), measure)
    gap = 1 if len(steps) <= _MOST_GAPPED else 0
    trace = {
        "type": "heatmap",
        "name": RANK if measure == "rank" else PROBABILITY,
        "meta": CELLS,
        "text": text,
        "hovertemplate": hover("%{customdata[0]}", "%{customdata[1]}", *numbers),
        **(_ranks(rank) if measure == "rank" else _probabilities(probability)),
        **{"x0": 0, "dx": 1, "y0": 0, "dy": 1, "xgap": gap, "ygap": gap},
    }  # fmt: skip
    if step is not None and 0 <= step < len(steps):
        layout["shapes"] = [_column(step, len(depths))]
    return {"data": [trace, *_dots(np.asarray(first), np.asarray(stays))], "layout": layout}


lens_map = as_figure(lens_map_spec)


def _on_hover(probability: np.ndarray, rank: np.ndarray, measure: str) -> tuple[list[list[str]], tuple[str, str]]:
    """What hover says of a cell: what is drawn is a field of Plotly's, the other measure a text of its own."""
    if measure == "rank":
        text = [[f"{p:.4g}" for p in row] for row in probability.tolist()]
        return text, (with_number(RANK, "%{customdata[2]:,d}"), with_number(PROBABILITY, "%{text}"))
    text = [[f"{place:,}" for place in row] for row in rank.tolist()]
    return text, (with_number(RANK, "%{text}"), with_number(PROBABILITY, f"%{{z:{NUMBER}}}"))


def _probabilities(probability: np.ndarray) -> Spec:
    z = np.asarray(probability, np.float32)
    return {"z": z, "zmin": 0, "zmax": 1, "colorscale": SCALES["target"], "colorbar": colour_bar(PROBABILITY)}


def _ranks(rank: np.ndarray) -> Spec:
    """The first place is the strongest colour; the browser takes the logarithms (`theme.CELLS`)."""
    most = max(1, int(np.ceil(np.log10(np.max(rank)))))
    words = [f"{10**decade:,}" for decade in range(most + 1)]
    bar = colour_bar(say("{value}, logarithmic", value=RANK), marks=(list(range(most + 1)), words))
    shades = [shade for _, shade in reversed(SCALES["target"])]
    backwards = [[place / 4, shade] for place, shade in enumerate(shades)]
    scale = {"zmin": 0, "zmax": most, "colorscale": backwards, "colorbar": bar}
    return {"z": np.asarray(rank, np.float32), **scale}


def _dots(first: np.ndarray, stays: np.ndarray) -> list[Spec]:
    """Marks that take no hover and no click, so those reach the cells under them."""
    lost = (first >= 0) & (first != stays)
    style = {"type": "scatter", "mode": "markers", "hoverinfo": "skip"}
    pale = SCALES["target"][0][1]
    marks: list[tuple[np.ndarray, np.ndarray, Spec]] = [
        (np.flatnonzero(lost), first, {"color": pale, "line": {"color": MARK_COLOR, "width": 2}}),
        (np.flatnonzero(stays >= 0), stays, {"color": MARK_COLOR, "line": {"color": pale, "width": 1.5}}),
    ]
    return [
        {**style, "x": places, "y": depth[places], "marker": {"symbol": "circle", "size": 9, **marker}}
        for places, depth, marker in marks
        if places.size
    ]


def _column(step: int, n_depths: int) -> Spec:
    line = {"color": MARK_COLOR, "width": 2}
    return {"type": "rect", "x0": step - 0.5, "x1": step + 0.5, "y0": -0.5, "y1": n_depths - 0.5, "line": line}
