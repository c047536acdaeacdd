"""Theme of all charts: colours, base layout, escaped text, ticks; a Plotly figure from a chart's plain data.

Source is blue and target is vermillion, two colours of the Okabe-Ito set that colour-blind readers can distinguish;
the scales grow steadily darker, so they also work in grey. Text colours are left open: the browser component takes
them from the app's theme, and replaces each colour named here by its dark twin (`DARK_COLORS`) in a dark theme.
"""

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import lru_cache, wraps
from typing import Any, Literal, ParamSpec

import numpy as np
import plotly.graph_objects as go

from transformer.i18n import ENGLISH, joined, said_throughout, say, through
from transformer.i18n.sentence import Joined, Passed, Sentence, Template

SOURCE_COLOR = "#0072B2"
TARGET_COLOR = "#D55E00"
NEUTRAL_COLOR = "#6B5FA0"
SOURCE_PALE = "#A9CFE5"
TARGET_PALE = "#F0C3A0"
MASK_COLOR = "#E4E6EA"
MASK_LINE = "#A9B0BA"
MARK_COLOR = "#1F2933"
GUIDE_COLOR = "#8A919B"
CLOSED = say("closed by the mask")

HEAD_COLOURS: tuple[tuple[str, str], ...] = (
    ("#006ACA", "#3A7FE0"),
    ("#BB8712", "#E8A317"),
    ("#1F6B57", "#2FD8A8"),
    ("#F05697", "#D98AC4"),
    ("#2191FD", "#9AD8FF"),
    ("#B04A00", "#F0643A"),
    ("#20272E", "#F4F4F4"),
    ("#503D00", "#E9E04A"),
    ("#3A22B8", "#8A4DFF"),
    ("#9866FF", "#BFA8FF"),
    ("#B20077", "#E0359B"),
    ("#5E0F6B", "#8C6A2A"),
)
"""Colour of each head's lines on a light and on a dark ground; after the last they begin again, and numbers tell.

The hues of Okabe and Ito's set, but as dark on paper as a line must be to stand out (a contrast of 3 to 1, which its
yellow, sky blue and purple do not have), ink for its black, and four more; they stay apart for colour-blind readers.
"""

Colour = Literal["source", "target", "neutral", "signed"]
Spec = dict[str, Any]
"""A figure as plain data: `data` (traces) and `layout`, as Plotly's schema names them; `how_to_read`, in sentences;
and, where what is drawn was rounded, `table`, which makes the columns of a table with all that it was made of."""

_Arguments = ParamSpec("_Arguments")

_SCALES: dict[str, tuple[str, ...]] = {
    "source": ("#F3F8FC", "#B8D8EB", "#69AED6", "#1C7FB8", "#00446F"),
    "target": ("#FCF5EF", "#F6CFB0", "#EA9A62", "#CF5B04", "#7A3400"),
    "neutral": ("#F7F6FA", "#D0CBE0", "#9F96C4", "#6C609F", "#372C63"),
}
_DARK_SCALES: dict[str, tuple[str, ...]] = {
    "source": ("#17222C", "#1E4560", "#2E78A6", "#57B4E8", "#CDE9FA"),
    "target": ("#2A1F16", "#5C3A1B", "#A3662B", "#EFA25D", "#FBE3CA"),
    "neutral": ("#201D2C", "#3E3760", "#6C62A2", "#A89FDC", "#E6E1FA"),
}
_BELOW_ZERO = ("#0F4A33", "#3F8766", "#7FB79C", "#C2DFD2")
_DARK_BELOW_ZERO = ("#D3F3E4", "#74BF9F", "#3D7A62", "#1F4437")
LEFT_COLOR, RIGHT_COLOR = _BELOW_ZERO[1], NEUTRAL_COLOR
"""Two runs beside each other, in the colours of both sides of 0: a difference is right minus left."""
SCALES: dict[str, list[list[Any]]] = {
    name: [[index / 4, shade] for index, shade in enumerate(shades)] for name, shades in _SCALES.items()
}
SIGNED_SCALE = [[index / 8, shade] for index, shade in enumerate((*_BELOW_ZERO, *_SCALES["neutral"]))]
"""For numbers on both sides of 0, which is its middle: green below, purple above, darker the further away."""
SCALES["signed"] = SIGNED_SCALE

DARK_COLORS: dict[str, str] = {
    SOURCE_COLOR: "#56B4E9",
    TARGET_COLOR: "#F0A35E",
    NEUTRAL_COLOR: "#B3A9E6",
    SOURCE_PALE: "#2C5873",
    TARGET_PALE: "#6E4826",
    MASK_COLOR: "#2B3037",
    MASK_LINE: "#646C78",
    MARK_COLOR: "#F4F6F8",
    GUIDE_COLOR: "#8E96A1",
    **{light: dark for name, shades in _SCALES.items() for light, dark in zip(shades, _DARK_SCALES[name], strict=True)},
    **dict(zip(_BELOW_ZERO, _DARK_BELOW_ZERO, strict=True)),
    **dict(HEAD_COLOURS),
}
"""Each colour of ours on a light ground, and what stands for it on a dark one."""

CELLS = "cells"
"""Marks a map: `layout.meta.cells` names its rows and columns for the hover; with a `floor` in it, colours go by the
logarithm of the numbers from there on. The browser does what `_with_cells` does here."""

_ARROW = " → "
_BEGINS_WITH_A_LETTER = re.compile(r"[\W_]*[^\W\d_]")
_BEGINS_WITH_A_VALUE = re.compile(r"\W*\{(\w+)")
_TRANSPARENT = "rgba(0,0,0,0)"
_RIGHT_TO_LEFT = {"R", "AL", "AN"}
_ISOLATE, _END_ISOLATE = "\u2068", "\u2069"
_DIRECTION_CONTROLS = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_UNSEEN = re.compile(f"[\x00-\x1f\x7f-\x9f{_DIRECTION_CONTROLS}\u2028\u2029\ufeff]")


@through
@lru_cache(maxsize=8192)  # the pieces of a sentence come back at every step
def literal(text: str) -> str:
    """Write a text for Plotly to show character by character.

    Plotly reads `<b>`, `<br>`, `<s>`, `<a href>` and entities as markup in titles, ticks and hover labels, `%{x}` as
    a value in hover templates, and `$x$` as TeX if MathJax is loaded. It decodes numbered entities last, after
    markup, so a character written as one is always shown as itself. Invisible characters are shown as `⟨U+200F⟩`, and
    right-to-left text is isolated, so it does not reorder the text around it.
    """
    # ⟨ is written as an entity, so `⟨U+200F⟩` always stands for the character: a table made of a figure has
    # to find the text again (`rawText` in plotly/numbers.js).
    escaped = re.sub(r"[&<>%${}⟨]", lambda match: f"&#{ord(match.group())};", text)
    seen = _UNSEEN.sub(lambda match: f"⟨U+{ord(match.group()):04X}⟩", escaped)
    if any(unicodedata.bidirectional(character) in _RIGHT_TO_LEFT for character in seen):
        return f"{_ISOLATE}{seen}{_END_ISOLATE}"
    return seen


def capitalised(text: str) -> str:
    """A text with a capital first letter, if its script has capitals; a sentence that begins with data stays."""
    return text if _begins_with_data(text) else _capitalised(text)


@through
def _capitalised(text: str) -> str:
    found = _BEGINS_WITH_A_LETTER.match(text)
    return found.group().upper() + text[found.end() :] if found else text


def _begins_with_data(text: object) -> bool:
    """Whether the first words of a sentence are data, such as the path or the name of a file."""
    match text:
        case Template(made_of=(one, _, _, values)) if found := _BEGINS_WITH_A_VALUE.match(one):
            first = values[found[1]]
        case Joined(made_of=(_, parts)):
            first = next(filter(None, parts), "")
        case Passed(made_of=(_, first, _, _)):
            pass
        case _:
            return False
    return _begins_with_data(first) if isinstance(first, Sentence) else True


@through
def shortened(text: str, *, limit: int = 14) -> str:
    """Cut a text to this many letters, including the ellipsis; not yet escaped."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def in_cell(piece: str, most_lines: int, *, most: int = 9) -> list[str]:
    """The lines, of `most` letters, of a piece in a narrow cell; an ellipsis shows what is left out.

    A Chinese character takes the room of two letters.
    """
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


@through
def _tick(label: str) -> str:
    """Shorten a label; one that says "reads → predicts" keeps the beginning of both."""
    reads, arrow, predicts = label.partition(_ARROW)
    return f"{shortened(reads, limit=9)}{arrow}{shortened(predicts, limit=9)}" if arrow else shortened(label)


def ticks(labels: Sequence[str], *, title: str) -> dict[str, Any]:
    """Describe an axis of pieces: one integer place each, so equal pieces stay separate.

    With more labels than `MOST_TICKS`, only every nth is written, and the title says so. The browser component labels
    again for its own width and for the part in view; it needs `labels` for that.

    Returns `axis`: attributes for Plotly; `spec`: what the browser needs to label again, and `whole`, the labels that
    were cut, by place, for a table. The title is already escaped.
    """
    cut = [_tick(label) for label in labels]
    short = [literal(label) for label in cut]
    both = enumerate(zip(labels, cut, strict=True))
    whole = {str(place): literal(label) for place, (label, shown) in both if shown != label}
    step = -(-len(short) // MOST_TICKS) or 1
    named = title if step == 1 else say("{axis} (1 in {step} labelled)", axis=title, step=step)
    axis = {
        "title": {"text": named, "standoff": 8},
        "tickmode": "array",
        "tickvals": list(range(0, len(short), step)),
        "ticktext": short[::step],
        "showgrid": False,
        "zeroline": False,
        "automargin": True,
        "autotickangles": [0, -45, -90],
    }
    return {"axis": axis, "spec": {"labels": short, "whole": whole, "title": title}}


def as_figure(spec: Callable[_Arguments, Spec]) -> Callable[_Arguments, go.Figure]:
    """Make the function that returns a figure out of the one that returns its plain data.

    A `go.Figure` checks every attribute, which takes ten times as long as making the data. Notebooks and tests get
    the figure; the app, which draws four charts per step for many visitors, uses the data.
    """

    @wraps(spec)
    def figure(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> go.Figure:
        return figure_in(spec(*args, **kwargs), ENGLISH)

    figure.__annotations__ = getattr(spec, "__annotations__", {}) | {"return": go.Figure}
    return figure


def figure_in(spec: Spec, language: str) -> go.Figure:
    """The figure of plain data, in one of `transformer.i18n.languages()`."""
    parts = said_throughout(spec, language)
    return go.Figure(_with_cells({"data": parts["data"], "layout": parts["layout"]}))


def _with_cells(spec: Spec) -> Spec:
    """Give every cell of a map the pieces of its row and column; the app's browser side does that by itself."""
    cells = spec["layout"].get("meta", {}).get("cells")
    for trace in spec["data"]:
        if trace.get("meta") == CELLS:
            labels = np.empty((len(cells["rows"]), len(cells["columns"]), 2), dtype=object)
            labels[:, :, 0] = np.array(cells["rows"], dtype=object)[:, None]
            labels[:, :, 1] = np.array(cells["columns"], dtype=object)[None, :]
            trace["customdata"] = labels  # [row, column, (row's piece, column's piece)]
            if cells.get("floor") and "colorbar" in trace:  # hover finds the number itself as the third
                values = trace["z"].astype(object)[:, :, None]
                trace["customdata"] = np.concatenate([labels, values], axis=2)
                trace["z"] = np.log10(np.maximum(trace["z"], np.float32(cells["floor"])))
    return spec


MOST_TICKS = 40


LEGEND: Spec = {"orientation": "h", "x": 0, "xanchor": "left", "y": 1, "yanchor": "bottom"}
"""Names the marks between the title and the plot; leave a margin for it."""


def colour_bar(title: str = "", *, marks: tuple[Sequence[float], Sequence[str]] | None = None) -> Spec:
    """The scale next to a map; its title, already escaped, says what its numbers are.

    `marks` are places on the scale and their labels; None leaves both to Plotly.
    """
    numbers = {"nticks": 5} if marks is None else {"tickvals": marks[0], "ticktext": marks[1]}
    named = {"title": {"text": title, "side": "right"}} if title else {}
    return {**named, **numbers, "thickness": 10, "outlinewidth": 0, "x": 1.01, "xpad": 4, "ypad": 0, "len": 1}


def subtitle(layout: Spec, notes: Sequence[str]) -> None:
    """Write notes under the title, if there are any: whole sentences without a full stop, already escaped."""
    there = [note for note in notes if note]
    if there:
        text = capitalised(joined("; ", there))
        layout["title"]["subtitle"] = {"text": text, "font": {"size": 13}}


def base_layout(title: str, x_title: str, y_title: str) -> dict[str, Any]:
    """Start the layout of a chart; axes are named after what they count, with its unit.

    `uirevision` never changes, so a zoom stays when the data changes.
    """
    return {
        "template": "none",
        "title": {
            "text": literal(title),
            "x": 0,
            "xref": "container",
            "xanchor": "left",
            "yref": "container",
            "y": 1,
            "yanchor": "top",
            "pad": {"t": 10, "l": 8},
        },
        "xaxis": {"title": {"text": literal(x_title), "standoff": 8}, "automargin": True, "zeroline": False},
        "yaxis": {"title": {"text": literal(y_title), "standoff": 8}, "automargin": True, "zeroline": False},
        "margin": {"l": 8, "r": 8, "t": 46, "b": 8},
        "paper_bgcolor": _TRANSPARENT,
        "plot_bgcolor": _TRANSPARENT,
        "hoverlabel": {"align": "left"},
        "showlegend": False,
        "uirevision": "glassformer",
    }
