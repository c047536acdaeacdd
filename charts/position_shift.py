"""What a shift of k positions does to their vectors, and how far a map is from doing the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from charts import theme
from charts.grammar import NO_DATA, layer, legend, stroke, upright
from charts.hover import hover
from charts.theme import Spec, base_layout, literal, subtitle
from words import joined, say

HOW_TO_READ_ROTATION = say(
    "Each ring is one position's two values (sin p·wᵢ, cos p·wᵢ) after a shift, PE(p+k); each cross is Rₖ·PE(p), "
    "the two values before it, turned clockwise by the angle k·wᵢ: a cross in a ring means that Rₖ·PE(p) = PE(p+k)."
)
HOW_TO_READ_MAP = say(
    "Each ring is one position's two values after a shift, PE(p+k); each mark is M·PE(p) with the best linear map M: "
    "a cross where p was in the fit, a diamond where it was held out and so tests it."
)
HOW_TO_READ_ROTATION_ERRORS = say(
    "Each point is the largest |Rₖ·PE(p) − PE(p+k)| over all positions p and dimensions, for one shift k; about "
    "10⁻⁷ is the rounding of 32-bit numbers."
)
HOW_TO_READ_MAP_ERRORS = say(
    "Each point is ‖M·PE(p) − PE(p+k)‖ / ‖PE(p+k)‖ for one shift k: 0 is exact, 1 is as far off as answering 0; only "
    "held-out positions say whether shifting is a linear map."
)

_GREEN = str(theme.SIGNED_SCALE[1][1])  # a colour of its own, with a dark twin
_STYLES = [
    (theme.NEUTRAL_COLOR, "solid", "circle"),
    (theme.MARK_COLOR, "dash", "diamond"),
    (theme.GUIDE_COLOR, "dot", "square"),
    (_GREEN, "dashdot", "cross"),
]


@dataclass(frozen=True)
class ErrorLine:
    """One line of `shift_errors_spec`: a name and an error for each shift, NaN for a gap."""

    name: str
    errors: Sequence[float]


def shift_points_spec(
    wanted: np.ndarray,
    found: np.ndarray,
    *,
    pair: int,
    shift: int,
    title: str,
    held_out: np.ndarray | None = None,
    angle: float | None = None,
    unpaired: bool = False,
    note: str = "",
) -> Spec:
    """Draw two dimensions of PE(p + k), `wanted`, and of what a map makes of PE(p), `found`: [position, 2].

    `pair` i has dimensions 2i and 2i + 1, `unpaired` if these are no sine and its cosine; `shift` is k. Positions
    `held_out`, bool [position], took no part in a fit; None if nothing was fitted. `angle` draws how far the vector
    of position 0 turns, in radians, clockwise from the top.
    """
    rings, marks = np.asarray(wanted, np.float32), np.asarray(found, np.float32)
    tested = np.zeros(len(rings), bool) if held_out is None else np.asarray(held_out, bool)
    if rings.shape != marks.shape or rings.shape[1:] != (2,) or tested.shape != rings.shape[:1]:
        raise ValueError(f"{rings.shape} and {marks.shape} points do not fit, or {tested.shape} marks of the fit.")
    first, second = 2 * pair, 2 * pair + 1
    names = [say("Dimension {place} (sine)", place=first), say("Dimension {place} (cosine)", place=second)]
    if unpaired:
        names = [say("Dimension {place}", place=place) for place in (first, second)]
    layout = base_layout(title, *names) | {"height": 480, "hovermode": "closest"}
    legend(layout, 104)
    limit = 1.15 * max(1e-6, float(np.abs(rings).max(initial=0)), float(np.abs(marks).max(initial=0)))
    both = {"range": [-limit, limit], "zeroline": True, "nticks": 6, "constrain": "domain"}
    layout["xaxis"] |= both
    layout["yaxis"] |= both | {"scaleanchor": "x"}
    subtitle(layout, [literal(note)])
    ring = {"symbol": "circle-open", "size": 12, "color": theme.GUIDE_COLOR}
    data = [_points(rings, np.arange(len(rings)), shift, "PE(p+k)", ring)]
    name = "Rₖ·PE(p)" if held_out is None else say("M·PE(p), fitted")
    kinds = [(name, ~tested, {"symbol": "x-thin", "size": 7, "color": theme.NEUTRAL_COLOR}, 2)]
    kinds.append((say("M·PE(p), held out"), tested, {"symbol": "diamond", "size": 7, "color": theme.MARK_COLOR}, 0))
    for said, rows, marker, width in kinds:
        if rows.any():
            look = marker | {"line": {"width": width, "color": theme.NEUTRAL_COLOR}}
            data.append(_points(marks[rows], np.flatnonzero(rows), shift, said, look))
    return {"data": data if angle is None else [_arc(angle), *data], "layout": layout}


def shift_errors_spec(
    shifts: Sequence[int], lines: Sequence[ErrorLine], *, shift: int, log: bool, y_title: str, title: str
) -> Spec:
    """Draw the error of at most four maps for several shifts k; a click returns the shift.

    `shift` is marked if it is there. If the error axis is `log`, an error of exactly 0 is a gap.
    """
    layout = base_layout(title, say("Shift k (positions)"), y_title) | {"height": 480, "hovermode": "closest"}
    legend(layout, 46 if len(lines) == 1 else 124)
    layout["showlegend"] = len(lines) > 1
    layout["xaxis"] |= {"showgrid": False, "tickformat": "d"}
    layout["yaxis"] |= _decades(lines) if log else {"rangemode": "tozero"}
    if shift in shifts:
        layout["shapes"] = [upright(shift)]
    data, x = [], np.asarray(shifts, dtype=np.int32)
    for line, (colour, dash, symbol) in zip(lines, _STYLES, strict=False):
        errors = np.asarray(line.errors, dtype=np.float64)
        if len(errors) != len(shifts):
            raise ValueError(f"{len(shifts)} shifts and {len(errors)} errors: give one for each shift.")
        y = np.where(errors > 0, errors, np.nan) if log else errors
        look = stroke(colour, 2, dash, size=7, symbol=symbol)
        says = hover(literal(line.name), "k = %{x}: <b>%{y:.3g}</b>")
        clicks = [int(one) for one in shifts]
        data.append(layer("lines+markers", x, y, look, name=literal(line.name), says=says, clicks=clicks))
    return {"data": data, "layout": layout}


def _points(points: np.ndarray, positions: np.ndarray, shift: int, name: str, marker: Spec) -> Spec:
    said, texts = literal(name), [f"p = {position}" for position in positions.tolist()]
    says = hover(joined(", ", [said, "%{hovertext}", f"k = {shift}"]), "<b>(%{x:.4f}, %{y:.4f})</b>")
    return layer("markers", points[:, 0], points[:, 1], {"marker": marker}, name=said, says=says, texts=texts)


def _arc(angle: float) -> Spec:
    """From the top of the circle clockwise, whole turns left out, with a line from the middle to its end."""
    turned = np.linspace(0.0, angle % (2 * np.pi), 60)
    x = np.concatenate([[0.0], np.sin(turned), [0.0]])
    y = np.concatenate([[0.0], np.cos(turned), [0.0]])
    says = hover(f"k·wᵢ = {angle:.4g} rad = {np.degrees(angle):.4g}°")
    x, y = (0.5 * x).astype(np.float32), (0.5 * y).astype(np.float32)
    return layer("lines", x, y, stroke(_GREEN, 3) | NO_DATA, name=say("angle k·wᵢ"), says=says)


def _decades(lines: Sequence[ErrorLine]) -> Spec:
    """A logarithmic axis of whole decades, so that at least two of them are labelled."""
    errors = np.concatenate([np.asarray(line.errors, dtype=np.float64) for line in lines] or [np.empty(0)])
    powers = np.log10(errors[errors > 0])
    low, high = (np.floor(powers.min()), np.ceil(powers.max())) if powers.size else (-1, 0)
    return {"type": "log", "exponentformat": "power", "dtick": 1, "range": [float(low) - 0.1, float(high) + 0.1]}
