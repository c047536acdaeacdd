"""Scatter charts: tokens with similar vectors, sinusoidal positions after a shift, rotary angles on a circle.

The map of tokens labels as many points as fit a narrow screen, those of the sentence first. The other points show
their piece on hover; a wider screen only moves labels further apart. Positions, pairs and dimensions are counted from
0, as in the formula of the paper: dimension 2i is a sine, 2i + 1 its cosine.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from glassformer.charts import theme
from glassformer.charts.grammar import NO_DATA, edge, layer, legend, stroke, table
from glassformer.charts.hover import bold, hover, on_lines
from glassformer.charts.theme import Spec, base_layout, colour_bar, literal, shortened, subtitle
from transformer.i18n import joined, say

HOW_TO_READ_MAP = say(
    "Each point is one token's vector, projected onto the two directions in which these vectors differ most. The "
    "axes give each direction's share of the variance. Tokens that look close may be far apart in other directions."
)

Kind = Literal["source", "target", "both", "typed", "neighbour"]
KIND_NAMES: dict[Kind, str] = {
    "source": say("source"),
    "target": say("output"),
    "both": say("both"),
    "typed": say("chosen"),
    "neighbour": say("neighbour"),
}

_STYLES: dict[Kind, Spec] = {
    "neighbour": {"color": theme.GUIDE_COLOR, "symbol": "circle-open", "size": 7},
    "source": {"color": theme.SOURCE_COLOR, "symbol": "circle", "size": 9},
    "target": {"color": theme.TARGET_COLOR, "symbol": "square", "size": 9},
    "both": {"color": theme.NEUTRAL_COLOR, "symbol": "diamond", "size": 10},
    "typed": {"color": theme.MARK_COLOR, "symbol": "star", "size": 10},
}
_FONT = 12
_ROOM = (290.0, 350.0)  # pixels that the points have on a phone, across and down
_MARGIN = 0.12  # of the range, on each side, for the labels of the outermost points
_CHOSEN = 16.0  # pixels, the mark of the chosen piece
_PLACES = ("top center", "bottom center", "middle right", "middle left")


@dataclass(frozen=True)
class MapPoint:
    """One piece on the map."""

    piece: str  # its text
    id: int  # its id
    kind: Kind  # where it is from
    x: float  # its place
    y: float  # its place
    near: str = ""  # the pieces it was brought in by, as a neighbour; "" for one of the sentence


def piece_map_spec(
    points: Sequence[MapPoint], *, shares: tuple[float, float], chosen: int | None, title: str, note: str = ""
) -> Spec:
    """Draw pieces as points with their text; if labels do not all fit, earlier points come first.

    A click returns an id. `shares` are each axis's share of the points' variance, 0 to 1; `chosen` is an id.
    """
    axes = [
        say("Axis {place}: {share:.0%} of the variance", place=place, share=share)
        for place, share in enumerate(shares, start=1)
    ]
    layout = base_layout(title, *axes) | {"height": 560, "hovermode": "closest"}
    legend(layout, 132)
    spot = np.array([[point.x, point.y] for point in points], np.float64).reshape(-1, 2)
    ranges = [_padded(spot[:, axis]) for axis in (0, 1)]
    for axis, limits in zip(("xaxis", "yaxis"), ranges, strict=True):
        layout[axis] |= {"range": limits, "nticks": 6, "zeroline": True, "uirevision": repr(limits)}
    placed = _placed(points, ranges, chosen)
    missing, n, fewer = placed.count(""), len(points), ""
    if missing:
        fewer = say("{missing} of {all} labels do not fit: hover over a point to see its name", missing=missing, all=n)
    subtitle(layout, [literal(note), fewer])
    columns = [say("token"), say("id"), say("where"), say("near"), say("axis 1"), say("axis 2")]
    rows = [[point.piece, point.id, KIND_NAMES[point.kind], point.near, point.x, point.y] for point in points]
    table(layout, columns, rows)
    kinds = [kind for kind in _STYLES if any(point.kind == kind for point in points)]
    data = [_points(points, placed, kind, chosen) for kind in kinds]
    return {"data": data, "layout": layout, "how_to_read": HOW_TO_READ_MAP}


def _padded(values: np.ndarray) -> list[float]:
    low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 0.0)
    pad = _MARGIN / (1 - 2 * _MARGIN) * (high - low) or 1.0
    return [low - pad, high + pad]


def _points(points: Sequence[MapPoint], placed: Sequence[str], kind: Kind, chosen: int | None) -> Spec:
    mine = [(point, place) for point, place in zip(points, placed, strict=True) if point.kind == kind]
    ones = [point for point, _ in mine]
    look = {
        "text": [literal(shortened(point.piece)) if place else "" for point, place in mine],
        "textposition": [place or _PLACES[0] for _, place in mine],
        "textfont": {"size": _FONT},
        "marker": _STYLES[kind] if kind == "neighbour" else _marker(ones, kind, chosen),
    }
    x, y = (np.array([getattr(point, axis) for point in ones], np.float32) for axis in "xy")
    texts, ids = [on_lines(bold(point.piece), _said(point)) for point in ones], [point.id for point in ones]
    return layer("markers+text", x, y, look, name=KIND_NAMES[kind], texts=texts, clicks=ids)


def _said(point: MapPoint) -> str:
    named = KIND_NAMES[point.kind]
    if not point.near:
        return say("id {id}, {kind}", id=point.id, kind=named)
    return say("id {id}, {kind} of {pieces}", id=point.id, kind=named, pieces=literal(point.near))


def _marker(points: Sequence[MapPoint], kind: Kind, chosen: int | None) -> Spec:
    """The marks of one kind; that of the chosen piece is larger and has an edge."""
    here = [point.id == chosen for point in points]
    sizes = [_CHOSEN if mine else _STYLES[kind]["size"] for mine in here]
    return _STYLES[kind] | {"opacity": 1, "size": sizes, "line": edge([2.5 * mine for mine in here])}


def _placed(points: Sequence[MapPoint], ranges: list[list[float]], chosen: int | None) -> list[str]:
    """Where each label stands, "" for none: those of the chosen piece and of the sentence are placed first."""
    spot = np.array([[point.x, point.y] for point in points], np.float64).reshape(-1, 2)
    (left, right), (low, high) = ranges
    across = (spot[:, 0] - left) / (right - left) * _ROOM[0]
    down = (high - spot[:, 1]) / (high - low) * _ROOM[1]
    order = sorted(range(len(points)), key=lambda i: (points[i].id != chosen, points[i].kind == "neighbour", i))
    named = [i for i in order if points[i].kind != "neighbour"]
    # No label may cover the mark of a piece of the sentence, nor another label.
    radius = [(_CHOSEN if one.id == chosen else _STYLES[one.kind]["size"]) / 2 for one in points]
    taken = np.array(
        [[across[i] - radius[i], down[i] - radius[i], across[i] + radius[i], down[i] + radius[i]] for i in named]
    ).reshape(-1, 4)
    placed = [""] * len(points)
    for i in order:
        for place in _PLACES:
            box = _box(shortened(points[i].piece), (float(across[i]), float(down[i])), place, radius[i])
            beside = (taken[:, 0] >= box[2]) | (taken[:, 2] <= box[0])
            apart = beside | (taken[:, 1] >= box[3]) | (taken[:, 3] <= box[1])
            if box[0] >= 0 and box[2] <= _ROOM[0] and apart.all():
                placed[i] = place
                taken = np.vstack([taken, box])
                break
    return placed


def _box(text: str, spot: tuple[float, float], place: str, gap: float) -> np.ndarray:
    """Left, top, right and bottom of a label in pixels, which stands so far from the middle of its mark."""
    x, y = spot
    width = sum(1.05 if sign == "▁" or unicodedata.east_asian_width(sign) in "WF" else 0.6 for sign in text) * _FONT
    height = 1.2 * _FONT
    left = {"middle right": x + gap, "middle left": x - gap - width}.get(place, x - width / 2)
    top = {"top center": y - gap - height, "bottom center": y + gap}.get(place, y - height / 2)
    return np.array([left, top, left + width, top + height])


POSITION_AXIS = say("Position p")
DIMENSION_AXIS = say("Dimension")


HOW_TO_READ_ROTATION = say(
    "Each ring is PE(p+k): one position's two values (sin p·wᵢ, cos p·wᵢ) after a shift by k. Each cross is "
    "Rₖ·PE(p): the two values before the shift, turned clockwise by the angle k·wᵢ. A cross inside a ring means "
    "that Rₖ·PE(p) = PE(p+k)."
)
HOW_TO_READ_FIT = say(
    "Each ring is PE(p+k): one position's two values after a shift by k. Each mark is M·PE(p), where M is the best "
    "linear map: a cross if p was used to fit M, a diamond if p was held out for testing."
)

_GREEN = str(theme.SIGNED_SCALE[1][1])  # a colour of its own, with a dark twin


def shift_points_spec(
    wanted: np.ndarray,
    found: np.ndarray,
    *,
    pair: int,
    shift: int,
    title: str,
    held_out: np.ndarray | None = None,
    angle: float | None = None,
    note: str = "",
) -> Spec:
    """Draw two dimensions of PE(p + k), `wanted`, and of PE(p) after a linear map, `found`: [position, 2].

    `pair` i has dimensions 2i and 2i + 1; `shift` is k. Positions `held_out`, bool [position], were not used in a fit;
    None if nothing was fitted, as to a sine and its cosine. `angle` draws how far the vector
    of position 0 turns, in radians, clockwise from the top.
    """
    rings, marks = np.asarray(wanted, np.float32), np.asarray(found, np.float32)
    tested = np.zeros(len(rings), bool) if held_out is None else np.asarray(held_out, bool)
    if rings.shape != marks.shape or rings.shape[1:] != (2,) or tested.shape != rings.shape[:1]:
        raise ValueError(f"{rings.shape} and {marks.shape} points do not fit, or {tested.shape} marks of the fit.")
    first, second = 2 * pair, 2 * pair + 1
    names = [say("Dimension {place} (sine)", place=first), say("Dimension {place} (cosine)", place=second)]
    if held_out is not None:
        names = [say("Dimension {place}", place=place) for place in (first, second)]
    layout = base_layout(title, *names) | {"height": 480, "hovermode": "closest"}
    legend(layout, 104)
    limit = 1.15 * max(1e-6, float(np.abs(rings).max(initial=0)), float(np.abs(marks).max(initial=0)))
    both = {"range": [-limit, limit], "zeroline": True, "nticks": 6, "constrain": "domain"}
    layout["xaxis"] |= both
    layout["yaxis"] |= both | {"scaleanchor": "x"}
    subtitle(layout, [literal(note)])
    ring = {"symbol": "circle-open", "size": 12, "color": theme.GUIDE_COLOR}
    data = [_positions(rings, np.arange(len(rings)), shift, "PE(p+k)", ring)]
    name = "Rₖ·PE(p)" if held_out is None else say("M·PE(p), fitted")
    kinds = [(name, ~tested, {"symbol": "x-thin", "size": 7, "color": theme.NEUTRAL_COLOR}, 2)]
    kinds.append((say("M·PE(p), held out"), tested, {"symbol": "diamond", "size": 7, "color": theme.MARK_COLOR}, 0))
    for said, rows, marker, width in kinds:
        if rows.any():
            look = marker | {"line": {"width": width, "color": theme.NEUTRAL_COLOR}}
            data.append(_positions(marks[rows], np.flatnonzero(rows), shift, said, look))
    read = HOW_TO_READ_ROTATION if held_out is None else HOW_TO_READ_FIT
    return {"data": data if angle is None else [_arc(angle), *data], "layout": layout, "how_to_read": read}


def _positions(points: np.ndarray, positions: np.ndarray, shift: int, name: str, marker: Spec) -> Spec:
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


HOW_TO_READ_CIRCLE = say(
    "Each point is the pair's unit vector (1, 0), turned anticlockwise by p·wᵢ, as a query or key at position p "
    "would be. A score depends on the angle between two points, and so on the distance between their positions."
)
PAIR_AXIS = say("Pair i (dimensions i and i + n/2)")
_NUMBERED = 16  # points of the circle that are numbered
_OUTWARD = ("middle right", "top right", "top center", "top left", "middle left", "bottom left", "bottom center",
            "bottom right")  # fmt: skip


def turning_circle_spec(speed: float, n_positions: int, *, title: str, note: str = "") -> Spec:
    """Draw where a pair's first unit vector is after the turn, by position, at `speed` radians per position."""
    layout = base_layout(title, say("First dimension of the pair"), say("Second dimension of the pair"))
    layout |= {"height": 460, "hovermode": "closest"}
    both = {"range": [-1.25, 1.25], "zeroline": True, "nticks": 5, "constrain": "domain"}
    layout["xaxis"] |= both
    layout["yaxis"] |= both | {"scaleanchor": "x"}
    subtitle(layout, [literal(note)])
    circle = {"type": "circle", "x0": -1, "x1": 1, "y0": -1, "y1": 1, "layer": "below"}
    layout["shapes"] = [circle | stroke(theme.GUIDE_COLOR, 1, "dot")]
    places = np.arange(n_positions)
    angles = places * speed
    apart = np.abs(np.angle(np.exp(1j * speed * (places[:_NUMBERED, None] - places[:_NUMBERED]))))  # of numbered ones
    says = hover(
        say("position p = {p}", p="%{pointNumber}"),
        say("turned by {degrees}°", degrees="<b>%{customdata:,.4~g}</b>"),
        "%{hovertext}",
    )
    marker = {"color": places, "colorscale": theme.SCALES["neutral"], "cmin": 0, "cmax": max(1, n_positions - 1)}
    marker |= {"size": 10, "colorbar": colour_bar(POSITION_AXIS), "showscale": True}
    look = {
        "text": [str(p) if p < _NUMBERED and (apart[p, :p] > 0.15).all() else "" for p in range(n_positions)],
        "textposition": [_OUTWARD[int(np.round(angle / (np.pi / 4))) % 8] for angle in angles],
        "customdata": np.degrees(angles).astype(np.float32),
        "marker": marker | {"line": {"color": theme.MARK_COLOR, "width": 1}},
    }
    texts = [say("{turns:.3g} turns", turns=turns) for turns in angles / (2 * np.pi)]
    x, y = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
    points = layer("markers+text", x, y, look, says=says, texts=texts)
    return {"data": [points], "layout": layout, "how_to_read": HOW_TO_READ_CIRCLE}
