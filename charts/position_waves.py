"""Single dimensions of a table of positions: their curves and their waves, beside those of the formula."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from charts.grammar import NO_DATA, Kind, layer, legend, note, stroke
from charts.hover import hover, with_number
from charts.positions import DIMENSION_AXIS, POSITION_AXIS
from charts.theme import GUIDE_COLOR, MARK_COLOR, NEUTRAL_COLOR, Spec, base_layout, literal
from words import say

HOW_TO_READ_CURVES = say(
    "Each band is one dimension followed from position to position: the solid line is the table, the dashed one the "
    "formula sin or cos of p / 10000^(2i/d)."
)
HOW_TO_READ_WAVES = say(
    "The dashed line is the formula's wavelength 2π · 10000^(2i/d); each point is the strongest wave that a Fourier "
    "transform finds in that dimension, paler the less of its variance it holds. Above the dotted line a wave is "
    "longer than what was measured, and a transform cannot tell how long."
)
_BAND = 88  # pixels for one curve


def position_curves_spec(
    values: np.ndarray, formula: np.ndarray, *, dimensions: Sequence[int], notes: Sequence[str], title: str
) -> Spec:
    """Draw some dimensions of a table over the positions, [position, dimension], one band each, with the formula's.

    `notes` say what the formula has in each, such as "sine, one turn in 6.3 positions".
    """
    table, expected = np.asarray(values, np.float32), np.asarray(formula, np.float32)
    count = len(dimensions)
    if table.shape != expected.shape or table.ndim != 2 or table.shape[1] != count or len(notes) != count:
        raise ValueError(
            f"{table.shape} values, {expected.shape} of the formula, {len(notes)} notes, {count} numbers."
        )
    layout = base_layout(title, POSITION_AXIS, "") | {"height": 130 + _BAND * max(count, 1), "annotations": []}
    legend(layout, 98)
    layout["legend"] |= {"yref": "paper", "y": 1 + 22 / (_BAND * max(count, 1))}  # above the first band's name
    layout["xaxis"] |= {"anchor": f"y{count}" if count > 1 else "y", "showgrid": False, "tickformat": "d"}
    layout["xaxis"] |= {"dtick": 1} if len(table) <= 10 else {"nticks": 8}
    limit = 1.08 * max(1.0, float(np.abs(table).max(initial=0)))
    data: list[Spec] = []
    for place, (dimension, said) in enumerate(zip(dimensions, notes, strict=True)):
        axis = "" if place == 0 else str(place + 1)
        top = 1 - place / count
        name = {"text": f"PE(p, {dimension})", "font": {"size": 11}, "standoff": 4}  # heads the column when saved
        band = {"domain": [top - 0.72 / count, top], "range": [-limit, limit], "tickvals": [-1, 0, 1]}
        bare = {"fixedrange": True, "automargin": True, "zeroline": True, "showgrid": False}
        layout[f"yaxis{axis}"] = {"title": name, **band, **bare}
        text = literal(say("Dimension {dimension}; formula: {said}", dimension=dimension, said=said))
        at = {"xref": "paper", "xanchor": "left", "yref": f"y{axis} domain", "yanchor": "bottom"}
        layout["annotations"].append(note(0, 1, text) | at)
        data += _pair_of_curves(table[:, place], expected[:, place], dimension, f"y{axis}", first=place == 0)
    return {"data": data, "layout": layout}


def wavelengths_spec(
    wavelengths: np.ndarray, periods: np.ndarray, shares: np.ndarray, *, n_positions: int, title: str
) -> Spec:
    """Draw the formula's wavelengths [pair], and the strongest wave that was found in each dimension.

    All are in positions a turn; `periods` [dimension] are NaN where a dimension does not vary, and `shares` are the
    shares of its dimension's variance that each holds, 0 to 1.
    """
    count = len(periods)
    if len(wavelengths) != -(-count // 2) or len(shares) != count:
        raise ValueError(f"{len(wavelengths)} pairs, {count} periods and {len(shares)} shares do not fit.")
    layout = base_layout(title, DIMENSION_AXIS, say("Wavelength (positions, log)")) | {"height": 400}
    layout["yaxis"] |= {"type": "log", "dtick": 1, "exponentformat": "power"}
    layout["xaxis"] |= {"showgrid": False, "tickformat": "d"}
    legend(layout, 100)
    place = say("dimension {place}", place="%{x}")
    dashed = {"line": {"color": MARK_COLOR, "width": 1.5, "dash": "dash", "shape": "hvh"}}
    expected = hover(place, say("formula: one turn in {positions} positions", positions="<b>%{y:.4s}</b>"))
    dots = {"marker": {"color": NEUTRAL_COLOR, "size": 7, "opacity": np.asarray(0.2 + 0.8 * shares, np.float32)}}
    found = hover(place, say("one turn in {positions} positions", positions="<b>%{y:.2f}</b>"), "%{hovertext}")
    across, width = np.array([n_positions, n_positions], dtype=np.int32), np.array([0, count - 1], dtype=np.int32)
    measured, dotted = say("{n:,} positions measured", n=n_positions), stroke(GUIDE_COLOR, 1.5, "dot") | NO_DATA
    waves, x = np.repeat(np.asarray(wavelengths, np.float32), 2)[:count], np.arange(count, dtype=np.int32)
    texts = [say("{share:.0%} of the variance", share=share) for share in shares]
    strongest, y = say("strongest wave of the table"), np.asarray(periods, np.float32)
    data = [
        layer("lines", x, waves, dashed, name=say("formula"), says=expected),
        layer("lines", width, across, dotted, name=measured),
        layer("markers", x, y, dots, name=strongest, says=found, texts=texts),
    ]
    return {"data": data, "layout": layout}


def _pair_of_curves(table: np.ndarray, formula: np.ndarray, dimension: int, axis: str, *, first: bool) -> list[Spec]:
    x, found = np.arange(len(table), dtype=np.int32), []
    curves = ((say("table"), table, NEUTRAL_COLOR, "solid", 2), (say("formula"), formula, MARK_COLOR, "dot", 1.5))
    for name, y, colour, dash, width in curves:
        kind: Kind = "lines+markers" if dash == "solid" and len(y) <= 64 else "lines"
        look = {"legendgroup": str(name), "showlegend": first, "yaxis": axis, **stroke(colour, width, dash, size=5)}
        place = say("dimension {dimension}, p = {p}", dimension=dimension, p="%{x}")
        found.append(layer(kind, x, y, look, name=name, says=hover(place, with_number(name, "%{y:.4f}"))))
    return found
