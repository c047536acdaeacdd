"""Charts of corpus runs: queries and keys as points of a joint space (one head, all of a layer), a histogram."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

from glassformer.charts import theme
from glassformer.charts.grammar import at_a_line, edge, frame, layer, legend, upright
from glassformer.charts.grammar import note as written
from glassformer.charts.histograms import number_spread_spec
from glassformer.charts.hover import bold, on_lines
from glassformer.charts.theme import Spec, base_layout, colour_bar, literal, subtitle
from transformer.i18n import Sentence, say

HOW_TO_READ = say(
    "Each point is the query or the key of one token, projected onto the two directions in which they differ most. "
    "Points that look close may be far apart in other directions. Click a point to select it."
)
HOW_TO_READ_HEADS = say(
    "The same tokens in every head of the layer; each head has its own axes. Click a point to open its head and "
    "select it."
)
By = Literal["side", "place", "group"]
Group = Literal["other", "punctuation", "special"]
GROUPS: Final[dict[Group, tuple[Sentence, str]]] = {  # name and colour
    "other": (say("other tokens"), theme.NEUTRAL_COLOR),
    "punctuation": (say("punctuation"), theme.TARGET_COLOR),
    "special": (say("special tokens"), theme.SOURCE_COLOR),
}
_COLOURS: Final = {False: theme.SOURCE_COLOR, True: theme.TARGET_COLOR}  # which colour-blind users can distinguish
_HEIGHT, _TILE = 520, 150  # pixels
_PALE: Final = 0.13  # opacity of what is not selected
_MOST_IN_TILE = 300  # tokens that are not selected
_COLUMNS = 4  # of tiles
_EDGE = 0.46  # how far the points of a tile reach from its middle


@dataclass(frozen=True, eq=False)
class Cloud:
    """The tokens of a head [N]; a click returns a token's place in it."""

    points: np.ndarray  # [N, 2]
    is_query: np.ndarray  # bool
    pieces: Sequence[str]
    lines: np.ndarray  # from 1
    places: np.ndarray  # of the token in its line, from 1
    lit: np.ndarray | None = None  # bool, those that are selected; None where nothing is
    chosen: int | None = None  # the one that was clicked

    def said(self, token: int) -> str:
        """What hover says of a token."""
        place, line = int(self.places[token]), int(self.lines[token])
        said = say("key of token {n}, line {line}", n=place, line=line)
        if self.is_query[token]:
            said = say("query of token {n}, line {line}", n=place, line=line)
        return on_lines(bold(self.pieces[token]), said)

    def columns(self) -> Mapping[str, Any]:
        """The table that is saved."""
        lit = np.zeros(len(self.lines), bool) if self.lit is None else self.lit
        return {
            say("line"): self.lines,
            say("token"): self.places,
            say("token"): list(self.pieces),
            say("side"): [say("query") if one else say("key") for one in self.is_query.tolist()],
            say("selected"): lit.astype(int),
            say("axis 1"): self.points[:, 0],
            say("axis 2"): self.points[:, 1],
        }


def joined_spec(
    cloud: Cloud,
    *,
    shares: tuple[float, float],
    title: str,
    note: str = "",
    by: By = "side",
    groups: Sequence[Group] = (),
) -> Spec:
    """Draw the queries and keys of a head; a click returns a token's place.

    `shares` are each axis's share of the variance, 0 to 1. Colours go `by` the side, by the place in the line, or by
    the group of each token.
    """
    axes = [
        say("Axis {place}: {share:.0%} of the variance", place=place, share=share)
        for place, share in enumerate(shares, start=1)
    ]
    layout = base_layout(title, *axes) | {"height": _HEIGHT, "hovermode": "closest"}
    legend(layout, 156 if by == "group" else 132)  # on a phone it has several rows
    subtitle(layout, [literal(note)])
    for axis in ("xaxis", "yaxis"):
        layout[axis] |= {"nticks": 6, "zeroline": True, "uirevision": title}
    drawn = np.array(groups, dtype=object) if by == "group" else np.full(len(cloud.pieces), None)
    data = [
        _marks(cloud, (cloud.is_query == is_query) & (drawn == group), _look(cloud, is_query, group, by))
        for is_query in (False, True)
        for group in (GROUPS if by == "group" else (None,))
    ]
    data = [trace for trace in data if len(trace["x"])]
    if by == "place" and data:
        data[0]["marker"] |= {"showscale": True, "colorbar": colour_bar(say("Token"))}
    data += _ring(cloud) + _legend(by)
    return {"data": data, "layout": layout, "how_to_read": HOW_TO_READ, "table": cloud.columns}


def _legend(by: By) -> list[Spec]:
    """What shapes and colours mean: marks of no token, as those of tokens may be pale."""
    keys, queries = (_COLOURS[side] if by == "side" else theme.GUIDE_COLOR for side in (False, True))
    shown = [(say("keys"), "square", keys), (say("queries"), "circle", queries)]
    if by == "group":
        shown += [(name, "diamond", colour) for name, colour in GROUPS.values()]
    return [
        layer("markers", [None], [None], {"marker": {"symbol": symbol, "color": colour, "size": 8}}, name=name)
        for name, symbol, colour in shown
    ]


def _look(cloud: Cloud, is_query: bool, group: Group | None, by: By) -> Spec:
    """The marks of a layer: shapes are those of the sides, whatever colours say."""
    shape = {"symbol": "circle" if is_query else "square", "size": 7 if is_query else 6}
    if by == "place":
        last = int(cloud.places.max(initial=1))
        return shape | {"colorscale": theme.SCALES["neutral"], "cmin": 1, "cmax": max(last, 2)}
    return shape | {"color": _COLOURS[is_query] if group is None else GROUPS[group][1]}


def _marks(cloud: Cloud, mine: np.ndarray, look: Spec) -> Spec:
    """A layer of tokens; what is selected is drawn over the others, which are pale."""
    lit = np.ones(len(mine), bool) if cloud.lit is None else cloud.lit
    tokens = np.flatnonzero(mine)
    tokens = tokens[np.argsort(lit[tokens], kind="stable")]
    marker = look | {"opacity": np.where(lit[tokens], 0.75 if cloud.lit is None else 1, _PALE)}
    marker |= {"color": cloud.places[tokens].astype(np.int32)} if "colorscale" in look else {}
    x, y = cloud.points[tokens].astype(np.float32).T
    texts = [cloud.said(token) for token in tokens.tolist()]
    return layer("markers", x, y, {"marker": marker, "showlegend": False}, texts=texts, clicks=tokens.tolist())


def _ring(cloud: Cloud, at: np.ndarray | None = None) -> list[Spec]:
    """A ring around the token that was clicked; nothing where none was."""
    if cloud.chosen is None:
        return []
    x, y = (cloud.points if at is None else at)[cloud.chosen].tolist()
    look = {"symbol": "circle-open", "size": 15, "line": edge(2)} | {"color": theme.MARK_COLOR}
    return [layer("markers", [x], [y], {"marker": look, "showlegend": False})]


# ------------------------------------------------------------------------------------------------ all heads


def joined_heads_spec(clouds: Mapping[int, Cloud], *, chosen: int | None, title: str) -> Spec:
    """Draw the tokens of the heads of a layer, by the heads' places from 0, each in a tile; `chosen` is framed.

    A click returns head and token. Of many tokens some are drawn, and all that are selected.
    """
    columns = max(min(_COLUMNS, len(clouds)), 1)
    rows = -(-len(clouds) // columns)
    layout = base_layout(title, "", "") | {"height": 90 + _TILE * rows, "hovermode": "closest", "shapes": []}
    legend(layout, 78)
    bare = {"showticklabels": False, "showgrid": False, "ticks": "", "title": {"text": ""}}
    layout["xaxis"] |= bare | {"range": [-0.5, columns - 0.5]}
    layout["yaxis"] |= bare | {"range": [rows - 0.5, -0.5]}
    layout["annotations"], data = [], list[Spec]()
    for place, (head, cloud) in enumerate(clouds.items()):
        row, column = divmod(place, columns)
        tile = (column - 0.48, column + 0.48), (row - 0.48, row + 0.48)
        is_chosen = head == chosen
        layout["shapes"].append(frame(*tile, width=2.5 if is_chosen else 0.5))
        name = written(column - 0.46, row - 0.46, say("head {number}", number=head + 1))
        layout["annotations"].append(name | {"xanchor": "left", "yanchor": "top"})
        data += _tile(cloud, head, (column, row))
    return {"data": [*data, *_legend("side")], "layout": layout, "how_to_read": HOW_TO_READ_HEADS}


def _tile(cloud: Cloud, head: int, middle: tuple[int, int]) -> list[Spec]:
    """The layers of a head, its points moved to the middle of its tile."""
    reach = float(np.abs(cloud.points).max(initial=0)) or 1.0
    at = cloud.points / reach * (_EDGE, -_EDGE) + middle
    lit = np.zeros(len(at), bool) if cloud.lit is None else cloud.lit
    rest = np.flatnonzero(~lit)
    shown = lit.copy()
    shown[rest[np.linspace(0, len(rest) - 1, min(len(rest), _MOST_IN_TILE)).round().astype(int)]] = True
    data = list[Spec]()
    for is_query in (False, True):
        trace = _marks(cloud, shown & (cloud.is_query == is_query), _look(cloud, is_query, None, "side"))
        tokens = trace["customdata"]
        trace |= {"x": at[tokens, 0].astype(np.float32), "y": at[tokens, 1].astype(np.float32)}
        trace["customdata"] = [[head, token] for token in tokens]
        trace["marker"]["size"] = 4
        data.append(trace)
    return [*data, *_ring(cloud, at)]


# ------------------------------------------------------------------------------------------------ one measure

HOW_TO_READ_SPREAD = say(
    "Each bar counts the lines whose value falls into one interval. The solid line is the mean over the lines; the "
    "band around it is its 95 % interval, often too narrow to see."
)
_SPREAD_HEIGHT = 290
_NAMED = 14  # pixels over the bars for names
_NEAR = 0.4  # of the width: names of lines that are nearer could touch


def measure_spread_spec(
    edges: np.ndarray,
    counts: np.ndarray,
    *,
    mean: float,
    interval: tuple[float, float],
    title: str,
    value_name: str,
    here: float | None = None,
) -> Spec:
    """Draw how a measure is spread: `counts` [interval] of lines between rising `edges` [interval + 1].

    A line marks the `mean`, a band its 95 % `interval`, and a dotted line the value of the selected line,
    `here`.
    """
    spec = number_spread_spec(edges, counts, title=title, value_name=value_name, counted=say("Lines"))
    layout = spec["layout"]
    layout["height"] = _SPREAD_HEIGHT
    if not spec["data"]:
        return spec
    low, high = interval
    band = {"type": "rect", "x0": low, "x1": high, "y0": 0, "y1": 1, "yref": "y domain", "line": {"width": 0}}
    band |= {"fillcolor": theme.MARK_COLOR, "opacity": 0.25}
    marks = [band, upright(mean, theme.MARK_COLOR, width=2, dash="solid", below=False)]
    names = [(mean, say("mean {value:.3g}", value=mean))]
    if here is not None:
        marks.append(upright(here, theme.MARK_COLOR, width=2, below=False))
        names.append((here, say("line looked at {value:.3g}", value=here)))
    layout["shapes"] = marks
    layout["margin"]["t"] += _NAMED
    layout["annotations"] = [
        at_a_line(x, 1, literal(text), left=_is_left(x, names, edges))
        | {"font": {"color": theme.MARK_COLOR}, "yanchor": "bottom"}
        for x, text in names
    ]
    return spec


def _is_left(x: float, names: Sequence[tuple[float, str]], edges: np.ndarray) -> bool:
    """Whether a name stands left of its line: away from another that is near, else towards the middle."""
    width, (low, high) = edges[-1] - edges[0], (min(names)[0], max(names)[0])
    if low < high < low + _NEAR * width:
        return x == low
    return bool(x > edges[0] + width / 2)
