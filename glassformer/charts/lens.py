"""The logit lens at one step: candidates by depth as a coloured table, and their measures by depth.

Depths run downwards in the order of the computation: the embedding on top, the model's own prediction last.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from glassformer.charts import theme
from glassformer.charts.candidates import PROBABILITY
from glassformer.charts.grammar import PALE_FROM, along, cells, finite, frame, layer, note, stroke, table
from glassformer.charts.heatmap import NUMBER
from glassformer.charts.hover import bold, hover, on_lines, with_number
from glassformer.charts.theme import Spec, base_layout, colour_bar, literal
from transformer.i18n import say

HOW_TO_READ_TABLE = say(
    "Each row is one depth and lists the most probable pieces there, best first. Their probability is softmax(W · "
    "norm(stream)), where W is the output layer and norm the decoder's final norm, if it has one. A frame marks "
    "the piece in the output; the last row is the model's own prediction."
)
HOW_TO_READ_CURVES = say(
    "Top: the output piece's probability and its rank among all candidates (1 is the best). Bottom: the entropy −Σ "
    "p log₂ p at each depth and the difference from the last depth, KL = Σ p_last log₂(p_last / p)."
)

DEPTH_AXIS = say("After", about="what happened at a depth of the model")
RANK = say("rank")
AFTER = say("after", about="what happened at a depth of the model")
_LINE = 9  # letters of a piece in a cell; a Chinese character takes the room of two
_MOST_TALL = 6  # depths; of more a piece gets one line, not two


@dataclass(frozen=True)
class Depth:
    """A depth: its name on an axis, and its name on hover."""

    short: str
    name: str


def lens_table_spec(
    depths: Sequence[Depth],
    pieces: Sequence[Sequence[str]],
    probabilities: np.ndarray,
    *,
    chosen: np.ndarray,
    title: str,
) -> Spec:
    """Draw the most probable pieces of each depth in cells, the first depth on top.

    `pieces` are [depth][place], best first, their `probabilities` [depth, place]; `chosen` is bool [depth, place]:
    the piece that the output has.
    """
    values = np.asarray(probabilities, np.float32)
    if values.ndim != 2 or values.shape != np.shape(chosen) or [values.shape[1]] * len(depths) != [*map(len, pieces)]:
        raise ValueError(f"{values.shape} probabilities for {len(depths)} depths: give one for each piece.")
    layout = base_layout(title, say("Rank among the candidates"), "")
    count = values.shape[1]
    layout["xaxis"] |= {"range": [-0.5, count - 0.5], "tickvals": list(range(count)), "fixedrange": True}
    layout["xaxis"] |= {"ticktext": [str(place + 1) for place in range(count)], "showgrid": False}
    depth_rows(layout, depths, fixed=True)
    # On a phone pixels are scarce.
    layout["yaxis"] |= {"title": {"text": "", "standoff": 0}, "tickfont": {"size": 11}}
    layout["margin"] |= {"l": 0, "r": 2}
    tall = len(depths) <= _MOST_TALL
    layout["height"] = 110 + (max(62, 340 // max(1, len(depths))) if tall else 42) * len(depths)
    layout["meta"]["least_height"] = 110 + (50 if tall else 32) * len(depths)  # lower rows run into each other
    probs = values.tolist()
    layout["annotations"] = [
        _written(pieces[row][column], row, column, probs[row][column], most_lines=2 if tall else 1)
        for row, column in np.ndindex(values.shape)
    ]
    layout["shapes"] = [
        frame((place - 0.48, place + 0.48), (row - 0.46, row + 0.46)) for row, place in np.argwhere(chosen).tolist()
    ]
    rows = [
        [depth.name, place, piece, finite(probability), bool(is_chosen)]
        for depth, *row in zip(depths, pieces, probs, np.asarray(chosen).tolist(), strict=True)
        for place, (piece, probability, is_chosen) in enumerate(zip(*row, strict=True), start=1)
    ]
    table(layout, [AFTER, RANK, say("piece"), PROBABILITY, say("in the output")], rows)
    texts = [_cells(*row) for row in zip(depths, pieces, probs, strict=True)]
    trace = cells(values, (0, 1), theme.SCALES["target"], hover("%{hovertext}"), gaps=(2, 2), named=False)
    return {"data": [trace | {"hovertext": texts}], "layout": layout, "how_to_read": HOW_TO_READ_TABLE}


def _cells(depth: Depth, pieces: Sequence[str], probabilities: Sequence[float]) -> list[str]:
    """What hover says of the cells of a row."""
    row = after(literal(depth.name))
    return [
        on_lines(
            row,
            say("rank {rank}: {piece}", rank=place, piece=bold(piece)),
            with_number(PROBABILITY, f"{probability:.4g}"),
        )
        for place, (piece, probability) in enumerate(zip(pieces, probabilities, strict=True), start=1)
    ]


def after(depth: str) -> str:
    """A depth on hover, its name already escaped."""
    return say("after {depth}", depth=depth)


def _written(piece: str, row: int, column: int, probability: float, *, most_lines: int) -> Spec:
    pale = theme.SCALES["target"][0][1]
    font = {"size": 11, "color": pale if probability > PALE_FROM else theme.MARK_COLOR}
    lines = [*map(literal, in_cell(piece, most_lines)), _two_digits(probability)]
    return note(column, row, "<br>".join(lines)) | {"font": font}


def _two_digits(probability: float) -> str:
    """A probability for a narrow cell; what is not 0 never reads as 0."""
    return literal("< 0.01") if 0 < probability < 0.005 else f"{probability:.2f}"


def in_cell(piece: str, most_lines: int, *, most: int = _LINE) -> list[str]:
    """The lines, of `most` letters, of a piece in a narrow cell; an ellipsis shows what is left out."""
    widths = [2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in piece]
    whole = sum(widths)
    # About in halves, so that no letter stands alone on the second line.
    line = whole // 2 + 1 if most_lines == 2 and most < whole < 2 * most else most
    lines, room = [""], line
    for character, width in zip(piece, widths, strict=True):
        if width > room and len(lines) == most_lines:
            lines[-1] = lines[-1][:-1] + "…"
            break
        if width > room:
            lines, room = [*lines, ""], line
        lines[-1] += character
        room -= width
    return lines


def depth_rows(layout: Spec, depths: Sequence[Depth], *, fixed: bool) -> None:
    """Name the rows by depth, the first on top."""
    along(layout, [depth.short for depth in depths], axis="yaxis")
    layout["yaxis"] |= {"fixedrange": fixed}


# ------------------------------------------------------------------------------------------------ one step by depth


def lens_curves_spec(
    depths: Sequence[Depth],
    *,
    probability: np.ndarray,
    rank: np.ndarray,
    entropy: np.ndarray,
    divergence: np.ndarray,
    title: str,
) -> Spec:
    """Draw how the output's piece and the whole prediction develop, each [depth], one panel below the other.

    `probability` and `rank`, from 1, are those of the output's piece; `entropy` of the prediction and `divergence`,
    KL(last || here), are in bits.
    """
    lines = [np.asarray(values, np.float64) for values in (probability, rank, entropy, divergence)]
    if any(values.shape != (len(depths),) for values in lines):
        raise ValueError(f"{len(depths)} depths: give one value for each.")
    layout = base_layout(title, DEPTH_AXIS, say("Probability")) | {"height": 460, "showlegend": True}
    along(layout, [depth.short for depth in depths], room=0.4, revised=False)
    layout["xaxis"] |= {"anchor": "y3", "fixedrange": True}
    panel = layout["yaxis"] | {"fixedrange": True}
    decades = range(int(np.ceil(np.log10(max(10.0, float(np.nanmax(lines[1], initial=1)))))) + 1)
    layout["yaxis"] = panel | {"domain": [0.7, 1], "range": [-0.05, 1.08], "tickvals": [0, 0.5, 1]}
    layout["yaxis2"] = panel | {"domain": [0.38, 0.62], "title": {"text": say("Rank"), "standoff": 8}, "type": "log"}
    layout["yaxis2"] |= {"range": [decades[-1] + 0.1, -0.2], "tickvals": [10**decade for decade in decades]}
    layout["yaxis2"] |= {"ticktext": [f"{10**decade:,}" for decade in decades]}
    layout["yaxis3"] = panel | {"domain": [0, 0.3], "title": {"text": say("Bits"), "standoff": 8}, "nticks": 4}
    layout["yaxis3"] |= {"rangemode": "tozero"}
    layout["legend"] = {"orientation": "h", "x": 1, "xanchor": "right", "y": 0.3, "yanchor": "bottom"}
    styles = [
        (PROBABILITY, "y", theme.TARGET_COLOR, "solid"),
        (RANK, "y2", theme.TARGET_COLOR, "solid"),
        (say("entropy"), "y3", theme.NEUTRAL_COLOR, "solid"),
        (say("KL to the last depth"), "y3", theme.GUIDE_COLOR, "dot"),
    ]
    places, texts = np.arange(len(depths), dtype=np.int32), [literal(depth.name) for depth in depths]
    data = []
    for values, (name, axis, colour, dash) in zip(lines, styles, strict=True):
        number = with_number(name, f"%{{y:{',d' if name is RANK else NUMBER}}}")
        says, look = hover(after("%{hovertext}"), number), stroke(colour, 2, dash, size=7)
        curve = layer("lines+markers", places, values, look, name=name, says=says, texts=texts)
        data.append(curve | {"yaxis": axis, "showlegend": axis == "y3"})
    columns = [AFTER, PROBABILITY, RANK, say("entropy (bits)"), say("KL to the last depth (bits)")]
    table(layout, columns, [[depth.name, *map(finite, row)] for depth, *row in zip(depths, *lines, strict=True)])
    return {"data": data, "layout": layout, "how_to_read": HOW_TO_READ_CURVES}


HOW_TO_READ_MAP = say(
    "Each column is one step. Each cell shows the probability or rank of that step's output piece at that depth. A "
    "filled dot marks the depth from which the piece stays the top candidate; a ring marks the depth where it "
    "first came out on top, if it fell back later. Click a cell to go to its step."
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
    """Draw how probable each step's output piece was at each depth, the first depth on top.

    `probability` and `rank`, from 1, are [depth, step]; `first` is the depth where the piece first ranks 1, `stays`
    the depth from which it keeps rank 1, both [step], -1 for none. `measure` is what colours show. A click's index is
    (depth, step).
    """
    shape = (len(depths), len(steps))
    maps, lines = (probability, rank), (first, stays)
    if any(np.shape(values) != shape for values in maps) or any(np.shape(line) != shape[1:] for line in lines):
        raise ValueError(f"The map is {np.shape(rank)}, its labels {shape}: give one label for each row and column.")
    layout = base_layout(title, STEP_AXIS, DEPTH_AXIS) | {"height": 200 + 26 * len(depths)}
    depth_rows(layout, depths, fixed=False)
    along(layout, steps)
    columns = [say("step {place}: {what}", place=place, what=bold(step)) for place, step in enumerate(steps, start=1)]
    layout["meta"]["cells"] = {"rows": [after(bold(depth.name)) for depth in depths], "columns": columns}
    if not len(steps):
        return {"data": [], "layout": layout, "how_to_read": HOW_TO_READ_MAP}
    text, numbers = _on_hover(np.asarray(probability), np.asarray(rank), measure)
    says = hover("%{customdata[0]}", "%{customdata[1]}", *numbers)
    name, drawn, ends, scale, bar = PROBABILITY, probability, (0, 1), theme.SCALES["target"], colour_bar(PROBABILITY)
    if measure == "rank":
        layout["meta"]["cells"]["floor"] = 1.0
        name, drawn = RANK, rank
        ends, scale, bar = _ranks(rank)
    gap = 1 if len(steps) <= _MOST_GAPPED else 0
    trace = cells(np.asarray(drawn, np.float32), ends, scale, says, bar=bar, gaps=(gap, gap))
    if step is not None and 0 <= step < len(steps):
        layout["shapes"] = [frame((step - 0.5, step + 0.5), (-0.5, len(depths) - 0.5))]
    dots = _dots(np.asarray(first), np.asarray(stays))
    return {"data": [trace | {"name": name, "text": text}, *dots], "layout": layout, "how_to_read": HOW_TO_READ_MAP}


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
    shades = [shade for _, shade in reversed(theme.SCALES["target"])]
    return (0, most), [[place / 4, shade] for place, shade in enumerate(shades)], bar


def _dots(first: np.ndarray, stays: np.ndarray) -> list[Spec]:
    """Marks that take no hover and no click, so those reach the cells under them."""
    lost = (first >= 0) & (first != stays)
    pale = theme.SCALES["target"][0][1]
    marks: list[tuple[np.ndarray, np.ndarray, Spec]] = [
        (np.flatnonzero(lost), first, {"color": pale, "line": {"color": theme.MARK_COLOR, "width": 2}}),
        (np.flatnonzero(stays >= 0), stays, {"color": theme.MARK_COLOR, "line": {"color": pale, "width": 1.5}}),
    ]
    return [
        layer("markers", places, depth[places], {"marker": {"symbol": "circle", "size": 9, **marker}})
        for places, depth, marker in marks
        if places.size
    ]
