"""Single dimensions of a table of positions: their curves and their waves, beside those of the formula."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from charts.hover import hover, with_number
from charts.positions import DIMENSION_AXIS, POSITION_AXIS
from charts.theme import GUIDE_COLOR, LEGEND, MARK_COLOR, NEUTRAL_COLOR, Spec, as_figure, base_layout, literal
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
    """Draw some dimensions of a table over the positions, one band each, with the formula's.

    Args:
        values: [position, dimension], the chosen dimensions.
        formula: The same of the formula.
        dimensions: The number of each, from 0.
        notes: What to say of each, such as "sine, one turn in 6.3 positions".
        title: What the curves show.

    Raises:
        ValueError: If the sizes do not fit together.
    """
    table, expected = np.asarray(values, np.float32), np.asarray(formula, np.float32)
    count = len(dimensions)
    if table.shape != expected.shape or table.ndim != 2 or table.shape[1] != count or len(notes) != count:
        raise ValueError(
            f"{table.shape} values, {expected.shape} of the formula, {len(notes)} notes, {count} numbers."
        )
    layout = base_layout(title, POSITION_AXIS, "") | {"showlegend": True, "height": 130 + _BAND * max(count, 1)}
    layout["legend"] = {"orientation": "h", "x": 0, "xanchor": "left", "y": 1, "yanchor": "bottom", "yref": "paper"}
    layout["margin"]["t"] = 98
    layout["legend"]["y"] = 1 + 22 / (_BAND * max(count, 1))  # above the first band's name
    layout["xaxis"] |= {"anchor": f"y{count}" if count > 1 else "y", "showgrid": False, "tickformat": "d"}
    layout["xaxis"] |= {"dtick": 1} if len(table) <= 10 else {"nticks": 8}
    limit = 1.08 * max(1.0, float(np.abs(table).max(initial=0)))
    layout["annotations"] = []
    data: list[Spec] = []
    for place, (dimension, said) in enumerate(zip(dimensions, notes, strict=True)):
        axis = "" if place == 0 else str(place + 1)
        top = 1 - place / count
        band = {
            "domain": [top - 0.72 / count, top],
            "range": [-limit, limit],
            "tickvals": [-1, 0, 1],
            "fixedrange": True,
        }
        name = {"text": f"PE(p, {dimension})", "font": {"size": 11}, "standoff": 4}  # heads the column when saved
        layout[f"yaxis{axis}"] = {"title": name, "automargin": True, "zeroline": True, "showgrid": False, **band}
        layout["annotations"].append(
            _band_name(
                say("Dimension {dimension}; formula: {said}", dimension=dimension, said=said), f"y{axis} domain"
            )
        )
        data += _pair_of_curves(table[:, place], expected[:, place], dimension, f"y{axis}", first=place == 0)
    return {"data": data, "layout": layout}


def wavelengths_spec(
    wavelengths: np.ndarray, periods: np.ndarray, shares: np.ndarray, *, n_positions: int, title: str
) -> Spec:
    """Draw the formula's wavelengths, and the strongest wave that was found in each dimension.

    Args:
        wavelengths: Of the formula, in positions, [pair].
        periods: Found, in positions a turn, [dimension]; NaN where a dimension does not vary.
        shares: The share of its dimension's variance that each holds, 0 to 1, [dimension].
        n_positions: How many positions were measured.
        title: What the chart shows.

    Raises:
        ValueError: If there is not one wavelength for every two dimensions.
    """
    if len(wavelengths) != -(-len(periods) // 2) or len(shares) != len(periods):
        raise ValueError(f"{len(wavelengths)} pairs, {len(periods)} periods and {len(shares)} shares do not fit.")
    layout = base_layout(title, DIMENSION_AXIS, say("Wavelength (positions, log)")) | {
        "showlegend": True,
        "height": 400,
    }
    layout["yaxis"] |= {"type": "log", "dtick": 1, "exponentformat": "power"}
    layout["xaxis"] |= {"showgrid": False, "tickformat": "d"}
    layout["legend"] = dict(LEGEND)
    layout["margin"]["t"] = 100
    lines = [_formula_waves(wavelengths, len(periods)), _across(n_positions, len(periods))]
    return {"data": [*lines, _found_waves(periods, shares)], "layout": layout}


position_curves = as_figure(position_curves_spec)
wavelengths = as_figure(wavelengths_spec)


def _pair_of_curves(table: np.ndarray, formula: np.ndarray, dimension: int, axis: str, *, first: bool) -> list[Spec]:
    def curve(name: str, y: np.ndarray, colour: str, dash: str, width: float) -> Spec:
        return {
            "type": "scatter",
            "name": name,
            "legendgroup": str(name),
            "showlegend": first,
            "x": np.arange(len(y), dtype=np.int32),
            "y": y,
            "yaxis": axis,
            "mode": "lines+markers" if dash == "solid" and len(y) <= 64 else "lines",
            "line": {"color": colour, "width": width, "dash": dash},
            "marker": {"color": colour, "size": 5},
            "hovertemplate": hover(
                say("dimension {dimension}, p = {p}", dimension=dimension, p="%{x}"),
                with_number(name, "%{y:.4f}"),
            ),
        }

    return [
        curve(say("table"), table, NEUTRAL_COLOR, "solid", 2),
        curve(say("formula"), formula, MARK_COLOR, "dot", 1.5),
    ]


def _band_name(text: str, yref: str) -> Spec:
    at = {"x": 0, "xref": "paper", "xanchor": "left", "y": 1, "yref": yref, "yanchor": "bottom"}
    return {"text": literal(text), "showarrow": False, **at}


def _across(height: int, d_model: int) -> Spec:
    """How many positions were measured, from the first dimension to the last."""
    return {
        "type": "scatter",
        "name": say("{n:,} positions measured", n=height),
        "x": np.array([0, d_model - 1], dtype=np.int32),
        "y": np.array([height, height], dtype=np.int32),
        "mode": "lines",
        "line": {"color": GUIDE_COLOR, "width": 1.5, "dash": "dot"},
        "marker": {"color": "rgba(0,0,0,0)"},  # it is no data, so it is not saved as such
        "hoverinfo": "skip",
    }


def _formula_waves(waves: np.ndarray, d_model: int) -> Spec:
    return {
        "type": "scatter",
        "name": say("formula"),
        "x": np.arange(d_model, dtype=np.int32),
        "y": np.repeat(np.asarray(waves, np.float32), 2)[:d_model],
        "mode": "lines",
        "line": {"color": MARK_COLOR, "width": 1.5, "dash": "dash", "shape": "hvh"},
        "hovertemplate": hover(
            say("dimension {place}", place="%{x}"),
            say("formula: one turn in {positions} positions", positions="<b>%{y:.4s}</b>"),
        ),
    }


def _found_waves(periods: np.ndarray, shares: np.ndarray) -> Spec:
    return {
        "type": "scatter",
        "name": say("strongest wave of the table"),
        "x": np.arange(len(periods), dtype=np.int32),
        "y": np.asarray(periods, np.float32),
        "hovertext": [say("{share:.0%} of the variance", share=share) for share in shares],
        "mode": "markers",
        "marker": {"color": NEUTRAL_COLOR, "size": 7, "opacity": np.asarray(0.2 + 0.8 * shares, np.float32)},
        "hovertemplate": hover(
            say("dimension {place}", place="%{x}"),
            say("one turn in {positions} positions", positions="<b>%{y:.2f}</b>"),
            "%{hovertext}",
        ),
    }
