"""The logit lens at one step: candidates by depth as a coloured table.

Depths run downwards in the order of the computation: the embedding on top, the model's own prediction last.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from glassformer.charts import theme
from glassformer.charts.candidates import PROBABILITY
from glassformer.charts.grammar import PALE_FROM, along, cells, finite, frame, note, table
from glassformer.charts.hover import bold, hover, on_lines, with_number
from glassformer.charts.theme import Spec, base_layout, literal
from transformer.i18n import say

HOW_TO_READ_TABLE = say(
    "Each row is one depth and lists the most probable tokens there, best first. Their probability is softmax(W · "
    "norm(stream)), where W is the output layer and norm the decoder's final norm, if it has one. A frame marks "
    "the token in the output; the last row is the model's own prediction."
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
        raise ValueError(f"{values.shape} probabilities for {len(depths)} depths: give one for each token.")
    layout = base_layout(title, say("Rank among the candidates"), "")
    count = values.shape[1]
    layout["xaxis"] |= {"range": [-0.5, count - 0.5], "tickvals": list(range(count)), "fixedrange": True}
    layout["xaxis"] |= {"ticktext": [str(place + 1) for place in range(count)], "showgrid": False}
    along(layout, [depth.short for depth in depths], axis="yaxis")
    # On a phone pixels are scarce.
    layout["yaxis"] |= {"fixedrange": True, "title": {"text": "", "standoff": 0}, "tickfont": {"size": 11}}
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
    table(layout, [AFTER, RANK, say("token"), PROBABILITY, say("in the output")], rows)
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
    # About in halves, so no letter is alone on the second line.
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
