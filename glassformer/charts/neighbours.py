"""Map of tokens with similar vectors: a sentence and its neighbours as labelled points in two dimensions.

The map labels as many points as fit a narrow screen, those of the sentence first. The other points show their piece
on hover; a wider screen only moves labels further apart.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from glassformer.charts import theme
from glassformer.charts.grammar import edge, layer, legend, table
from glassformer.charts.hover import bold, on_lines
from glassformer.charts.theme import Spec, base_layout, literal, shortened, subtitle
from transformer.i18n import say

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
    notes, missing = [literal(note)], placed.count("")
    if missing:
        notes.append(
            say(
                "{missing} of {all} labels do not fit: hover over a point to see its name",
                missing=missing,
                all=len(placed),
            )
        )
    subtitle(layout, notes)
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
    """Where a piece is from, and of which it is a neighbour."""
    named = KIND_NAMES[point.kind]
    if not point.near:
        return say("id {id}, {kind}", id=point.id, kind=named)
    return say("id {id}, {kind} of {pieces}", id=point.id, kind=named, pieces=literal(point.near))


def _marker(points: Sequence[MapPoint], kind: Kind, chosen: int | None) -> Spec:
    """The marks of one kind; that of the chosen piece is larger and has an edge."""
    here = [point.id == chosen for point in points]
    sizes = [_CHOSEN if mine else _STYLES[kind]["size"] for mine in here]
    return _STYLES[kind] | {"opacity": 1, "size": sizes, "line": edge([2.5 * mine for mine in here])}


# ------------------------------------------------------------------------------------------------ labels


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
