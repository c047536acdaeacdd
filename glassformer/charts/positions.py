"""Charts of positions: a pair of sinusoidal dimensions after a shift, and rotary turns on a circle.

Positions, pairs and dimensions are counted from 0, as in the formula of the paper: dimension 2i is a sine, 2i + 1 its
cosine.
"""

import numpy as np

from glassformer.charts import theme
from glassformer.charts.grammar import NO_DATA, layer, legend, stroke
from glassformer.charts.hover import hover
from glassformer.charts.theme import Spec, base_layout, colour_bar, literal, subtitle
from transformer.i18n import joined, say

POSITION_AXIS = say("Position p")
DIMENSION_AXIS = say("Dimension")


HOW_TO_READ_ROTATION = say(
    "Each ring is PE(p+k): one position's two values (sin p·wᵢ, cos p·wᵢ) after a shift by k. Each cross is "
    "Rₖ·PE(p): the two values before the shift, turned clockwise by the angle k·wᵢ. A cross inside a ring means "
    "that Rₖ·PE(p) = PE(p+k)."
)
HOW_TO_READ_MAP = say(
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
    says = hover(
        say("position p = {p}", p="%{pointNumber}"),
        say("turned by {degrees}°", degrees="<b>%{customdata:,.4~g}</b>"),
        "%{hovertext}",
    )
    marker = {"color": places, "colorscale": theme.SCALES["neutral"], "cmin": 0, "cmax": max(1, n_positions - 1)}
    marker |= {"size": 10, "colorbar": colour_bar(POSITION_AXIS), "showscale": True}
    look = {
        "text": [str(p) if p < _NUMBERED and _is_free(p, speed) else "" for p in range(n_positions)],
        "textposition": [_OUTWARD[int(np.round(angle / (np.pi / 4))) % 8] for angle in angles],
        "customdata": np.degrees(angles).astype(np.float32),
        "marker": marker | {"line": {"color": theme.MARK_COLOR, "width": 1}},
    }
    texts = [say("{turns:.3g} turns", turns=turns) for turns in angles / (2 * np.pi)]
    x, y = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
    points = layer("markers+text", x, y, look, says=says, texts=texts)
    return {"data": [points], "layout": layout, "how_to_read": HOW_TO_READ_CIRCLE}


def _is_free(place: int, speed: float) -> bool:
    """Whether the number of a position would not overlap that of an earlier one."""
    apart = np.abs(np.angle(np.exp(1j * speed * (place - np.arange(place)))))
    return bool((apart > 0.15).all())
