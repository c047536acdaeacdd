"""Rotary positions as rotations: points on a circle.

Positions, pairs and dimensions are counted from 0, as in the formula.
"""

import numpy as np

from glassformer.charts import theme
from glassformer.charts.grammar import layer, stroke
from glassformer.charts.hover import hover
from glassformer.charts.positions import POSITION_AXIS
from glassformer.charts.theme import Spec, base_layout, colour_bar, literal, subtitle
from transformer.i18n import say

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
