"""Rotary positions as rotations: by position and pair of dimensions, as points on a circle, and as wavelengths.

Positions, pairs and dimensions are counted from 0, as in the formula.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from glassformer.charts import theme
from glassformer.charts.grammar import NO_DATA, Kind, cells, edge, frame, layer, legend, stroke
from glassformer.charts.hover import hover, on_lines, with_number
from glassformer.charts.positions import POSITION_AXIS, number_places
from glassformer.charts.theme import Spec, base_layout, colour_bar, literal, subtitle
from transformer.i18n import say, say_n

HOW_TO_READ_ROTATIONS = say(
    "Each row is a position p, each column a pair of dimensions (i, i + n/2) of a query or key. The colour is the "
    "cosine of the angle p·wᵢ by which the pair is turned at that position: 1 means no turn, −1 half a turn. Click "
    "a column to follow its pair."
)
HOW_TO_READ_CIRCLE = say(
    "Each point is the pair's unit vector (1, 0), turned anticlockwise by p·wᵢ, as a query or key at position p "
    "would be. A score depends on the angle between two points, and so on the distance between their positions."
)
HOW_TO_READ_TURNS = say(
    "Each point is one pair of dimensions; its height is the number of positions needed for one full turn, 2π/wᵢ. "
    "A pair above the dotted line does not complete a turn within the longest text that this model reads."
)

PAIR_AXIS = say("Pair i (dimensions i and i + n/2)")
_NUMBERED = 16  # points of the circle that are numbered
_OUTWARD = ("middle right", "top right", "top center", "top left", "middle left", "bottom left", "bottom center",
            "bottom right")  # fmt: skip


@dataclass(frozen=True, eq=False)
class Turns:
    """A line of `turning_waves_spec`: its name, the wavelength of each pair, and whether it is chosen."""

    name: str
    wavelengths: np.ndarray
    main: bool = False


def rotation_map_spec(
    angles: np.ndarray, *, n_pairs: int, pair: int | None, title: str, pairs: Sequence[int], note: str = ""
) -> Spec:
    """Draw how far, in radians, each pair is turned at each position [position, pair], position 0 on top.

    Of `n_pairs`, those in `pairs` are drawn, numbered from 0; `pair` is framed if drawn. A click's index is the cell.
    """
    cosines = np.cos(np.asarray(angles, np.float64)).astype(np.float32)
    if cosines.ndim != 2 or cosines.shape[1] != len(pairs):
        raise ValueError(f"{cosines.shape} angles and {len(pairs)} numbers of pairs do not fit.")
    layout = base_layout(title, PAIR_AXIS, POSITION_AXIS)
    number_places(layout, "xaxis", pairs)
    number_places(layout, "yaxis", range(len(cosines)))
    layout["height"] = int(np.clip(170 + 8 * len(cosines), 280, 560))
    subtitle(layout, [literal(note)])
    speeds = angles[1] if len(angles) > 1 else np.zeros(len(pairs))
    columns = [_pair(one, n_pairs, float(speed)) for one, speed in zip(pairs, speeds, strict=True)]
    layout["meta"]["cells"] = {"rows": [f"p = <b>{p}</b>" for p in range(len(cosines))], "columns": columns}
    if pair is not None and pair in pairs:
        place = list(pairs).index(pair)
        layout["shapes"] = [frame((place - 0.5, place + 0.5), (-0.5, len(cosines) - 0.5))]
    cosine = say("cosine of the angle")
    says = hover("%{customdata[0]}", "%{customdata[1]}", with_number(cosine, "%{z:.3f}"))
    trace = cells(cosines, (-1, 1), theme.SIGNED_SCALE, says, bar=colour_bar(cosine))
    return {"data": [trace] if cosines.size else [], "layout": layout, "how_to_read": HOW_TO_READ_ROTATIONS}


def _pair(pair: int, n_pairs: int, speed: float) -> str:
    which = say("pair {pair}: dimensions {first} and {second}", pair=f"<b>{pair}</b>", first=pair,
                second=pair + n_pairs)  # fmt: skip
    return on_lines(which, say("turned by p · {degrees}°", degrees=f"{np.degrees(speed):.4g}"))


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
    """Whether the number of a position would not stand on that of an earlier one."""
    apart = np.abs(np.angle(np.exp(1j * speed * (place - np.arange(place)))))
    return bool((apart > 0.15).all())


def turning_waves_spec(
    lines: Sequence[Turns], *, limits: Sequence[tuple[str, int]], pair: int | None, title: str
) -> Spec:
    """Draw how many positions each pair takes to turn once; a click returns the pair.

    The chosen layers come first, then other layers, or the wavelengths before a scaling. `limits` are text lengths to
    compare with, each with its name.
    """
    layout = base_layout(title, PAIR_AXIS, say("Positions per turn (log)")) | {"height": 400, "hovermode": "closest"}
    legend(layout, 52 + 22 * (len(lines) + len(limits)))  # where it is narrow, each has a line of its own
    layout["yaxis"] |= {"type": "log", "dtick": 1, "exponentformat": "power"}
    layout["xaxis"] |= {"showgrid": False, "tickformat": "d"}
    styles = [(theme.NEUTRAL_COLOR, "solid"), (theme.MARK_COLOR, "dash"), (theme.GUIDE_COLOR, "dashdot")]
    data = [_turns(line, *styles[min(place, 2)], pair) for place, line in enumerate(lines)]
    n_pairs = max((len(line.wavelengths) for line in lines), default=0)
    x, dotted = np.array([0, max(n_pairs - 1, 0)], dtype=np.int32), stroke(theme.GUIDE_COLOR, 1.5, "dot") | NO_DATA
    for name, length in limits:
        said = say_n("{name}: {n:,} token", "{name}: {n:,} tokens", length, name=literal(name))
        data.append(layer("lines", x, np.array([length, length], dtype=np.int32), dotted, name=said))
    return {"data": data, "layout": layout, "how_to_read": HOW_TO_READ_TURNS}


def _turns(line: Turns, colour: str, dash: str, pair: int | None) -> Spec:
    places = np.arange(len(line.wavelengths))
    here = places == (-1 if pair is None or not line.main else pair)
    look = stroke(colour, 2 if line.main else 1.5, dash, size=6)
    look["marker"] |= {"size": np.where(here, 13, 6), "line": edge(np.where(here, 2, 0))}
    says = hover(
        say("pair {pair}: {name}", pair="%{x}", name=literal(line.name)),
        say("one turn in {positions} positions", positions="<b>%{y:.4s}</b>"),
    )
    kind: Kind = "lines+markers" if line.main else "lines"
    x, y = places.astype(np.int32), np.asarray(line.wavelengths, np.float32)
    return layer(kind, x, y, look, name=literal(line.name), says=says, clicks=places.tolist())
