"""The logit lens at all steps: how the output's piece stood at every depth, and from where on it was settled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from charts.candidates import PROBABILITY
from charts.grammar import along, cells, frame, layer
from charts.heatmap import NUMBER
from charts.hover import bold, hover, with_number
from charts.lens import DEPTH_AXIS, RANK, Depth, after, depth_rows
from charts.theme import MARK_COLOR, SCALES, Spec, base_layout, colour_bar
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
    """Draw how the output's piece of each step stood at each depth, the first depth on top.

    `probability` and `rank`, from 1, are [depth, step]; `first` is the depth where the piece was first on top,
    `stays` that from which it stays there, both [step], -1 for none. `measure` is what the colours are. A click's
    index is (depth, step).
    """
    shape = (len(depths), len(steps))
    maps, lines = (probability, rank), (first, stays)
    if any(np.shape(values) != shape for values in maps) or any(np.shape(line) != shape[1:] for line in lines):
        raise ValueError(f"The map is {np.shape(rank)}, its labels {shape}: give one label for each row and column.")
    layout = base_layout(title, STEP_AXIS, DEPTH_AXIS) | {"height": 200 + 26 * len(depths)}
    depth_rows(layout, depths, fixed=False)
    along(layout, steps, title=STEP_AXIS)
    columns = [say("step {place}: {what}", place=place, what=bold(step)) for place, step in enumerate(steps, start=1)]
    layout["meta"]["cells"] = {"rows": [after(bold(depth.name)) for depth in depths], "columns": columns}
    if not len(steps):
        return {"data": [], "layout": layout}
    text, numbers = _on_hover(np.asarray(probability), np.asarray(rank), measure)
    says = hover("%{customdata[0]}", "%{customdata[1]}", *numbers)
    name, drawn, ends, scale, bar = PROBABILITY, probability, (0, 1), SCALES["target"], colour_bar(PROBABILITY)
    if measure == "rank":
        layout["meta"]["cells"]["floor"] = 1.0
        name, drawn = RANK, rank
        ends, scale, bar = _ranks(rank)
    gap = 1 if len(steps) <= _MOST_GAPPED else 0
    trace = cells(np.asarray(drawn, np.float32), ends, scale, says, bar=bar, gaps=(gap, gap))
    if step is not None and 0 <= step < len(steps):
        layout["shapes"] = [frame((step - 0.5, step + 0.5), (-0.5, len(depths) - 0.5))]
    dots = _dots(np.asarray(first), np.asarray(stays))
    return {"data": [trace | {"name": name, "text": text}, *dots], "layout": layout}


def _on_hover(probability: np.ndarray, rank: np.ndarray, measure: str) -> tuple[list[list[str]], tuple[str, str]]:
    """What hover says of a cell: what is drawn is a field of Plotly's, the other measure a text of its own."""
    if measure == "rank":
        text = [[f"{p:.4g}" for p in row] for row in probability.tolist()]
        return text, (with_number(RANK, "%{customdata[2]:,d}"), with_number(PROBABILITY, "%{text}"))
    text = [[f"{place:,}" for place in row] for row in rank.tolist()]
    return text, (with_number(RANK, "%{text}"), with_number(PROBABILITY, f"%{{z:{NUMBER}}}"))


def _ranks(rank: np.ndarray) -> tuple[tuple[int, int], list[list[Any]], Spec]:
    """The first place is the strongest colour; the browser takes the logarithms (`theme.CELLS`)."""
    most = max(1, int(np.ceil(np.log10(np.max(rank)))))
    words = [f"{10**decade:,}" for decade in range(most + 1)]
    bar = colour_bar(say("{value}, logarithmic", value=RANK), marks=(list(range(most + 1)), words))
    shades = [shade for _, shade in reversed(SCALES["target"])]
    return (0, most), [[place / 4, shade] for place, shade in enumerate(shades)], bar


def _dots(first: np.ndarray, stays: np.ndarray) -> list[Spec]:
    """Marks that take no hover and no click, so those reach the cells under them."""
    lost = (first >= 0) & (first != stays)
    pale = SCALES["target"][0][1]
    marks: list[tuple[np.ndarray, np.ndarray, Spec]] = [
        (np.flatnonzero(lost), first, {"color": pale, "line": {"color": MARK_COLOR, "width": 2}}),
        (np.flatnonzero(stays >= 0), stays, {"color": MARK_COLOR, "line": {"color": pale, "width": 1.5}}),
    ]
    return [
        layer("markers", places, depth[places], {"marker": {"symbol": "circle", "size": 9, **marker}})
        for places, depth, marker in marks
        if places.size
    ]
