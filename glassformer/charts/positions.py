"""A table of positions: as a map, by dimension, the similarity of its rows, and the effect of a shift by k.

Positions and dimensions are counted from 0 here, as in the formula of the paper: dimension 2i is a sine, 2i + 1 its
cosine.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from glassformer.charts import theme
from glassformer.charts.grammar import NO_DATA, Kind, cells, layer, legend, note, stroke, title_of, upright
from glassformer.charts.hover import hover, with_number
from glassformer.charts.theme import Spec, base_layout, colour_bar, literal, subtitle, ticks
from transformer.i18n import joined, say

HOW_TO_READ_TABLE = say(
    "Each row is the vector PE(p) that is added to the token at position p, counted from 0: token 1 has p = 0. In "
    "the formula, PE(p, 2i) = sin(p / 10000^(2i/d)) and PE(p, 2i+1) = cos(p / 10000^(2i/d)). On a narrow screen "
    "several dimensions share a pixel."
)
HOW_TO_READ_SIMILARITY = say(
    "Each cell compares the vectors p and q of two positions by their dot product p·q = Σ pⱼqⱼ. If only the "
    "distance between the positions matters, each diagonal has one colour."
)
HOW_TO_READ_COSINE = say(
    "Each cell is the cosine p·q / (‖p‖ ‖q‖) of the angle between the vectors p and q of two positions: 1 means "
    "the same direction, 0 a right angle."
)
HOW_TO_READ_DISTANCE = say(
    "The line is the mean similarity of all pairs of positions at that distance; the band runs from the smallest "
    "to the largest value. If the band has no width, only the distance matters. This holds for the formula: the "
    "dot product of the vectors at positions p and q is Σ cos((p − q) · wᵢ)."
)

HOW_TO_READ_APART = say("The sines (even dimensions) are left of the line, the cosines (odd dimensions) right of it.")

POSITION_AXIS = say("Position p")
DIMENSION_AXIS = say("Dimension")
DIMENSION = say("dimension")
PRODUCT = "p·q"


def position_table_spec(
    values: np.ndarray,
    *,
    positions: Sequence[int],
    dimensions: Sequence[int],
    title: str,
    note: str = "",
    n_sines: int = 0,
) -> Spec:
    """Draw a table of positions [position, dimension] with position 0 on top.

    If the sines come before the cosines, `n_sines` is their number: a line separates the two.
    """
    rows = [f"p = <b>{position}</b>" for position in positions]
    columns = [with_number(DIMENSION, str(dimension)) for dimension in dimensions]
    layout = base_layout(title, DIMENSION_AXIS, POSITION_AXIS)
    number_places(layout, "xaxis", dimensions)
    number_places(layout, "yaxis", positions)
    layout["height"] = int(np.clip(170 + 8 * len(positions), 280, 560))
    subtitle(layout, [literal(note)])
    if n_sines:
        layout["shapes"] = [upright(n_sines - 0.5, theme.MARK_COLOR, width=2, dash="", below=False)]
    spec = _map(values, layout, rows, columns, say("value"), signed=True)
    return spec | {"how_to_read": joined(" ", [HOW_TO_READ_TABLE, *[HOW_TO_READ_APART] * bool(n_sines)])}


def position_similarity_spec(
    similar: np.ndarray, *, positions: Sequence[int], title: str, value_name: str = PRODUCT, note: str = ""
) -> Spec:
    """Draw the similarity of every pair of positions [position, position].

    Colours show the sign if there is a negative value.
    """
    layout = base_layout(title, say("Position q"), POSITION_AXIS)
    number_places(layout, "xaxis", positions)
    number_places(layout, "yaxis", positions)
    layout["height"] = 440
    subtitle(layout, [literal(note)])
    rows, columns = ([f"{name} = <b>{position}</b>" for position in positions] for name in "pq")
    spec = _map(similar, layout, rows, columns, value_name, signed=bool(np.min(similar, initial=0) < 0))
    return spec | {"how_to_read": HOW_TO_READ_SIMILARITY if value_name == PRODUCT else HOW_TO_READ_COSINE}


def similarity_by_distance_spec(
    mean: np.ndarray, low: np.ndarray, high: np.ndarray, *, title: str, value_name: str = PRODUCT
) -> Spec:
    """Draw the similarity of positions by their distance, over all pairs [distance]."""
    if not len(mean) == len(low) == len(high):
        raise ValueError(f"{len(mean)} means, {len(low)} least and {len(high)} largest values: give one each.")
    layout = base_layout(title, say("Distance |p − q| (positions)"), value_name)
    layout |= {"height": 440, "hovermode": "closest"}
    layout["xaxis"] |= {"showgrid": False, "tickformat": "d"}
    layout["yaxis"] |= {"zeroline": True, "nticks": 7}
    distances, edge = np.arange(len(mean), dtype=np.int32), {"line": {"width": 0}}
    ends = np.stack([low, high], axis=1).astype(np.float32)
    shade = {"fill": "tonexty", "fillcolor": theme.SCALES["neutral"][1][1]}
    says = hover(
        say("distance {distance}", distance="%{x}"),
        with_number(say("mean {value}", value=literal(value_name)), "%{y:.3f}"),
        say("from {low} to {high}", low="%{customdata[0]:.3f}", high="%{customdata[1]:.3f}"),
    )
    look = stroke(theme.NEUTRAL_COLOR, 2, size=6) | {"customdata": ends}
    kind: Kind = "lines+markers" if len(mean) <= 64 else "lines"
    data = [
        layer("lines", distances, ends[:, 0], edge, name=say("least")),
        layer("lines", distances, ends[:, 1], edge | shade, name=say("largest")),
        layer(kind, distances, np.asarray(mean, np.float32), look, name=say("mean"), says=says),
    ]
    return {"data": data, "layout": layout, "how_to_read": HOW_TO_READ_DISTANCE}


def number_places(layout: Spec, name: str, numbers: Sequence[int]) -> None:
    """Label an axis of places by their numbers; if they simply count from 0, with round numbers as on any axis.

    The first place of a "yaxis" is on top; the layout gets `meta` if it has none.
    """
    count = len(numbers)
    meta = layout.setdefault("meta", {})
    if list(numbers) == list(range(count)):
        layout[name] |= {"tickformat": "d", "nticks": 12, "ticks": "outside", "showgrid": False}
        layout[name] |= {"dtick": 1} if count <= 10 else {}
    else:
        labels = ticks(list(map(str, numbers)), title=title_of(layout, name))
        layout[name] = labels["axis"]
        meta["ticks"] = meta.get("ticks", {}) | {name: labels["spec"]}
    ends = [-0.5, count - 0.5]
    layout[name] |= {"range": ends if name == "xaxis" else ends[::-1], "uirevision": str(count)}


def _map(
    values: np.ndarray, layout: Spec, rows: Sequence[str], columns: Sequence[str], value_name: str, *, signed: bool
) -> Spec:
    drawn = np.asarray(values, dtype=np.float32)
    if drawn.shape != (len(rows), len(columns)):
        raise ValueError(f"The map is {drawn.shape}, its labels {(len(rows), len(columns))}: give one for each.")
    layout["meta"]["cells"] = {"rows": list(rows), "columns": list(columns)}
    if not drawn.size:
        return {"data": [], "layout": layout}
    largest = float(np.abs(drawn).max()) or 1.0
    ends = (-largest if signed else float(drawn.min()), largest)
    says = hover("%{customdata[0]}", "%{customdata[1]}", with_number(literal(value_name), "%{z:.3f}"))
    scale, bar = theme.SIGNED_SCALE if signed else theme.SCALES["neutral"], colour_bar(literal(value_name))
    return {"data": [cells(drawn, ends, scale, says, bar=bar)], "layout": layout}


HOW_TO_READ_CURVES = say(
    "Each band shows how one dimension varies with position: the solid line is the table's value, the dotted line "
    "the formula's, sin or cos of p / 10000^(2i/d)."
)
HOW_TO_READ_WAVES = say(
    "The dashed line is the formula's wavelength 2π · 10000^(2i/d). Each point is the strongest wave that a "
    "Fourier transform detects in one dimension; the paler the point, the smaller its share of the variance. Waves "
    "above the dotted line are longer than the measured range, so the transform cannot measure their length."
)
_BAND = 88  # pixels for one curve


def position_curves_spec(
    values: np.ndarray, formula: np.ndarray, *, dimensions: Sequence[int], notes: Sequence[str], title: str
) -> Spec:
    """Draw some dimensions of a table over the positions, [position, dimension], one band each, with the formula's.

    `notes` describe the formula in each, such as "sine, one turn in 6.3 positions".
    """
    table, expected = np.asarray(values, np.float32), np.asarray(formula, np.float32)
    count = len(dimensions)
    if table.shape != expected.shape or table.ndim != 2 or table.shape[1] != count or len(notes) != count:
        raise ValueError(f"{table.shape} values, {expected.shape} of the formula, {len(notes)} notes, {count} numbers.")
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
    return {"data": data, "layout": layout, "how_to_read": HOW_TO_READ_CURVES}


def wavelengths_spec(
    wavelengths: np.ndarray, periods: np.ndarray, shares: np.ndarray, *, n_positions: int, title: str
) -> Spec:
    """Draw the formula's wavelengths [pair], and the strongest wave that was found in each dimension.

    All are in positions per turn; `periods` [dimension] are NaN where a dimension does not vary, and `shares` are the
    share of the dimension's variance in that wave, 0 to 1.
    """
    count = len(periods)
    if len(wavelengths) != -(-count // 2) or len(shares) != count:
        raise ValueError(f"{len(wavelengths)} pairs, {count} periods and {len(shares)} shares do not fit.")
    layout = base_layout(title, DIMENSION_AXIS, say("Wavelength (positions, log)")) | {"height": 400}
    layout["yaxis"] |= {"type": "log", "dtick": 1, "exponentformat": "power"}
    layout["xaxis"] |= {"showgrid": False, "tickformat": "d"}
    legend(layout, 100)
    place = say("dimension {place}", place="%{x}")
    dashed = {"line": {"color": theme.MARK_COLOR, "width": 1.5, "dash": "dash", "shape": "hvh"}}
    expected = hover(place, say("formula: one turn in {positions} positions", positions="<b>%{y:.4s}</b>"))
    opacity = np.asarray(0.2 + 0.8 * shares, np.float32)
    dots = {"marker": {"color": theme.NEUTRAL_COLOR, "size": 7, "opacity": opacity}}
    found = hover(place, say("one turn in {positions} positions", positions="<b>%{y:.2f}</b>"), "%{hovertext}")
    across, width = np.array([n_positions, n_positions], dtype=np.int32), np.array([0, count - 1], dtype=np.int32)
    measured, dotted = say("{n:,} positions measured", n=n_positions), stroke(theme.GUIDE_COLOR, 1.5, "dot") | NO_DATA
    waves, x = np.repeat(np.asarray(wavelengths, np.float32), 2)[:count], np.arange(count, dtype=np.int32)
    texts = [say("{share:.0%} of the variance", share=share) for share in shares]
    strongest, y = say("strongest wave of the table"), np.asarray(periods, np.float32)
    data = [
        layer("lines", x, waves, dashed, name=say("formula"), says=expected),
        layer("lines", width, across, dotted, name=measured),
        layer("markers", x, y, dots, name=strongest, says=found, texts=texts),
    ]
    return {"data": data, "layout": layout, "how_to_read": HOW_TO_READ_WAVES}


def _pair_of_curves(table: np.ndarray, formula: np.ndarray, dimension: int, axis: str, *, first: bool) -> list[Spec]:
    x, found = np.arange(len(table), dtype=np.int32), []
    expected = (say("formula"), formula, theme.MARK_COLOR, "dot", 1.5)
    curves = ((say("table"), table, theme.NEUTRAL_COLOR, "solid", 2), expected)
    for name, y, colour, dash, width in curves:
        kind: Kind = "lines+markers" if dash == "solid" and len(y) <= 64 else "lines"
        look = {"legendgroup": str(name), "showlegend": first, "yaxis": axis, **stroke(colour, width, dash, size=5)}
        place = say("dimension {dimension}, p = {p}", dimension=dimension, p="%{x}")
        found.append(layer(kind, x, y, look, name=name, says=hover(place, with_number(name, "%{y:.4f}"))))
    return found


HOW_TO_READ_ROTATION = say(
    "Each ring is PE(p+k): one position's two values (sin p·wᵢ, cos p·wᵢ) after a shift by k. Each cross is "
    "Rₖ·PE(p): the two values before the shift, turned clockwise by the angle k·wᵢ. A cross inside a ring means "
    "that Rₖ·PE(p) = PE(p+k)."
)
HOW_TO_READ_MAP = say(
    "Each ring is PE(p+k): one position's two values after a shift by k. Each mark is M·PE(p), where M is the best "
    "linear map: a cross if p was used to fit M, a diamond if p was held out for testing."
)
HOW_TO_READ_ROTATION_ERRORS = say(
    "Each point is the largest |Rₖ·PE(p) − PE(p+k)| over all positions p and dimensions, for one shift k. Rounding "
    "to 32 bits alone causes errors of about 10⁻⁷."
)
HOW_TO_READ_MAP_ERRORS = say(
    "Each point is ‖M·PE(p) − PE(p+k)‖ / ‖PE(p+k)‖ for one shift k: 0 is exact, 1 is as bad as always predicting "
    "0. Only held-out positions show whether a shift is a linear map."
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
    """Draw two dimensions of PE(p + k), `wanted`, and of PE(p) after a linear map, `found`: [position, 2].

    `pair` i has dimensions 2i and 2i + 1, `unpaired` if these are not a sine and its cosine; `shift` is k. Positions
    `held_out`, bool [position], were not used in a fit; None if nothing was fitted. `angle` draws how far the vector
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
    read = HOW_TO_READ_ROTATION if held_out is None else HOW_TO_READ_MAP
    return {"data": data if angle is None else [_arc(angle), *data], "layout": layout, "how_to_read": read}


def shift_errors_spec(
    shifts: Sequence[int], lines: Sequence[ErrorLine], *, shift: int, log: bool, y_title: str, title: str
) -> Spec:
    """Draw the error of at most four maps for several shifts k; a click returns the shift.

    `shift` is marked if it is drawn. On a `log` axis, an error of exactly 0 is a gap.
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
    read = HOW_TO_READ_ROTATION_ERRORS if log else HOW_TO_READ_MAP_ERRORS
    return {"data": data, "layout": layout, "how_to_read": read}


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
