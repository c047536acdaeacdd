"""Residual stream by depth: the logit lens of a step as a table, a measure of each token as lines, what was added.

Depths run downwards in the order of the computation: the embedding on top, the model's own prediction last.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from glassformer.charts import theme
from glassformer.charts.candidates import PROBABILITY
from glassformer.charts.grammar import PALE_FROM, SIDES, along, cells, finite, frame, layer, legend, note, stroke, table
from glassformer.charts.hover import bold, hover, on_lines, with_number
from glassformer.charts.theme import Colour, Spec, base_layout, capitalised, in_cell, literal, subtitle
from transformer.i18n import say

HOW_TO_READ_TABLE = say(
    "Each row is one depth and lists the most probable tokens there, best first. Their probability is softmax(W · "
    "norm(stream)), where W is the output layer and norm the decoder's final norm, if it has one. A frame marks "
    "the token in the output; the last row is the model's own prediction."
)

DEPTH_AXIS = say("After", about="what happened at a depth of the model")
RANK = say("rank")
AFTER = say("after", about="what happened at a depth of the model")
_MOST_TALL = 6  # depths; of more a piece gets one line, not two


@dataclass(frozen=True)
class Depth:
    """A depth: its name on an axis, and its name on hover."""

    short: str
    name: str


def lens_table_spec(
    depths: Sequence[Depth],
    pieces: Sequence[Sequence[str]],
    probabilities: np.ndarray,
    *,
    chosen: np.ndarray,
    title: str,
) -> Spec:
    """Draw the most probable pieces of each depth in cells, the first depth on top.

    `pieces` are [depth][place], best first, their `probabilities` [depth, place]; `chosen` is bool [depth, place]:
    the piece that the output has.
    """
    values = np.asarray(probabilities, np.float32)
    if values.ndim != 2 or values.shape != np.shape(chosen) or [values.shape[1]] * len(depths) != [*map(len, pieces)]:
        raise ValueError(f"{values.shape} probabilities for {len(depths)} depths: give one for each token.")
    layout = base_layout(title, say("Rank among the candidates"), "")
    count = values.shape[1]
    layout["xaxis"] |= {"range": [-0.5, count - 0.5], "tickvals": list(range(count)), "fixedrange": True}
    layout["xaxis"] |= {"ticktext": [str(place + 1) for place in range(count)], "showgrid": False}
    along(layout, [depth.short for depth in depths], axis="yaxis")
    # On a phone pixels are scarce.
    layout["yaxis"] |= {"fixedrange": True, "title": {"text": "", "standoff": 0}, "tickfont": {"size": 11}}
    layout["margin"] |= {"l": 0, "r": 2}
    tall = len(depths) <= _MOST_TALL
    layout["height"] = 110 + (max(62, 340 // max(1, len(depths))) if tall else 42) * len(depths)
    layout["meta"]["least_height"] = 110 + (50 if tall else 32) * len(depths)  # lower rows run into each other
    probs = values.tolist()
    layout["annotations"] = [
        _written(pieces[row][column], row, column, probs[row][column], most_lines=2 if tall else 1)
        for row, column in np.ndindex(values.shape)
    ]
    layout["shapes"] = [
        frame((place - 0.48, place + 0.48), (row - 0.46, row + 0.46)) for row, place in np.argwhere(chosen).tolist()
    ]
    rows = [
        [depth.name, place, piece, finite(probability), bool(is_chosen)]
        for depth, *row in zip(depths, pieces, probs, np.asarray(chosen).tolist(), strict=True)
        for place, (piece, probability, is_chosen) in enumerate(zip(*row, strict=True), start=1)
    ]
    table(layout, [AFTER, RANK, say("token"), PROBABILITY, say("in the output")], rows)
    texts = [_cells(*row) for row in zip(depths, pieces, probs, strict=True)]
    trace = cells(values, (0, 1), theme.SCALES["target"], hover("%{hovertext}"), gaps=(2, 2), named=False)
    return {"data": [trace | {"hovertext": texts}], "layout": layout, "how_to_read": HOW_TO_READ_TABLE}


def _cells(depth: Depth, pieces: Sequence[str], probabilities: Sequence[float]) -> list[str]:
    row = after(literal(depth.name))
    ranks = [say("rank {rank}: {piece}", rank=place, piece=bold(piece)) for place, piece in enumerate(pieces, start=1)]
    numbers = [with_number(PROBABILITY, f"{probability:.4g}") for probability in probabilities]
    return [on_lines(row, *lines) for lines in zip(ranks, numbers, strict=True)]


def after(depth: str) -> str:
    """A depth on hover, its name already escaped."""
    return say("after {depth}", depth=depth)


def _written(piece: str, row: int, column: int, probability: float, *, most_lines: int) -> Spec:
    pale = theme.SCALES["target"][0][1]
    font = {"size": 11, "color": pale if probability > PALE_FROM else theme.MARK_COLOR}
    # What is not 0 never reads as 0.
    digits = literal("< 0.01") if 0 < probability < 0.005 else f"{probability:.2f}"
    lines = [*map(literal, in_cell(piece, most_lines)), digits]
    return note(column, row, "<br>".join(lines)) | {"font": font}


# ------------------------------------------------------------------------------------------------ size

HOW_TO_READ_SIZE = say(
    "Each line shows the root mean square √(Σ xⱼ² / d) of one token's vector after each part; the thick line is "
    "the chosen token. The vector's length ‖x‖ is √d times as large."
)
HOW_TO_READ_KEPT = say(
    "Each line shows, for one token, the cosine x·e / (‖x‖ ‖e‖) between its vector x and its starting point e "
    "(embedding plus position). 1 means the same direction; 0 means that nothing of the starting direction is left."
)
HOW_TO_READ_ADDED = say(
    "For the chosen token, each pair of bars shows the root mean square of the stream before a sub-layer and of "
    "what the sub-layer adds. The number above them is the second divided by the first. Hover to see the cosine "
    "between the two vectors: below 0, the sub-layer partly cancels the stream."
)

_STEPS = 5  # of an axis, at most

MOST_LINES = 128
"""Tokens drawn as a line each; of more only the least and the largest are drawn, and the chosen one."""


def stream_lines_spec(
    depths: Sequence[Depth],
    values: np.ndarray,
    pieces: Sequence[str],
    *,
    chosen: int,
    title: str,
    value_name: str,
    limits: tuple[float, float] | None = None,
    colour: Colour = "source",
) -> Spec:
    """Draw a measure of every token by depth [depth, token]; a click returns the token.

    `limits` are the ends of the axis; None goes from 0 to the largest value.
    """
    numbers = np.asarray(values, np.float32)
    if numbers.shape != (len(depths), len(pieces)) or not 0 <= chosen < len(pieces):
        raise ValueError(f"{numbers.shape} values for {len(depths)} depths and {len(pieces)} tokens: give one each.")
    layout = base_layout(title, DEPTH_AXIS, capitalised(value_name)) | {"height": 360, "hovermode": "closest"}
    along(layout, [depth.short for depth in depths], room=0.3, revised=False)
    layout["xaxis"] |= {"fixedrange": True}
    layout["yaxis"] |= {"nticks": 6, "range": list(limits)} if limits else whole_steps(numbers)
    pale, full = shades(colour)
    strong = _lines(depths, numbers, pieces, [chosen], value_name) | stroke(full, 3, size=8)
    others = [token for token in range(len(pieces)) if token != chosen]
    if len(pieces) > MOST_LINES:
        weak = _range(depths, numbers, value_name, pale)
        said = say("{n} tokens: only the smallest and largest values and the chosen token are drawn", n=len(pieces))
        subtitle(layout, [said])
    else:
        weak = [_lines(depths, numbers, pieces, others, value_name) | stroke(pale, 1, size=5)] if others else []
    rows = [
        [token + 1, piece, depth.name, finite(numbers[row, token])]
        for token, piece in enumerate(pieces)
        for row, depth in enumerate(depths)
    ]
    table(layout, [say("token"), say("token"), AFTER, value_name], rows)
    return {"data": [*weak, strong], "layout": layout}


def whole_steps(numbers: np.ndarray) -> Spec:
    """An axis from 0 that ends at a tick, because above the last tick a line's height cannot be read.

    Values that are not finite do not count.
    """
    top = float(np.max(numbers, initial=0, where=np.isfinite(numbers))) or 1.0
    rough = top / _STEPS
    decade = 10 ** np.floor(np.log10(rough))
    step = float(decade * next(nice for nice in (1, 2, 2.5, 5, 10) if nice * decade >= rough))
    count = int(np.ceil(top / step - 1e-9))
    # A line along the very edge would be cut in half.
    return {"range": [0, count * step * 1.02], "tickmode": "linear", "tick0": 0, "dtick": step}


def shades(colour: Colour) -> tuple[str, str]:
    """A pale and a full shade for the tokens of a side, or of no side."""
    return SIDES[colour] if colour in ("source", "target") else (theme.GUIDE_COLOR, theme.MARK_COLOR)


def _lines(
    depths: Sequence[Depth], numbers: np.ndarray, pieces: Sequence[str], tokens: Sequence[int], value_name: str
) -> Spec:
    """One trace with a gap after each token's line: a trace for each would take a browser long."""
    n_depths = len(depths)
    gapped = np.full((len(tokens), n_depths + 1), np.nan, np.float32)
    gapped[:, :-1] = numbers[:, tokens].T
    names = [say("token {place}: {piece}", place=token + 1, piece=bold(pieces[token])) for token in tokens]
    points = [after(literal(depth.name)) for depth in depths] + [""]
    x = np.tile(np.arange(n_depths + 1, dtype=np.float32), len(tokens))
    says = hover("%{hovertext}", with_number(literal(value_name), "%{y:.3f}"))
    texts = [on_lines(name, point) for name in names for point in points]
    clicks = [token for token in tokens for _ in range(n_depths + 1)]
    look = {"connectgaps": False}
    return layer("lines+markers", x, gapped.ravel(), look, says=says, texts=texts, clicks=clicks)


def _range(depths: Sequence[Depth], numbers: np.ndarray, value_name: str, colour: str) -> list[Spec]:
    """The least and the largest of all tokens, with a shade between them."""
    x, texts = np.arange(len(depths), dtype=np.int32), [after(literal(depth.name)) for depth in depths]
    name, look = literal(value_name), stroke(colour, 1)
    least, largest = say("least {value}", value=name), say("largest {value}", value=name)
    fill = look | {"fill": "tonexty", "fillcolor": theme.SCALES["neutral"][0][1]}
    return [
        layer("lines", x, ends, style, says=hover("%{hovertext}", with_number(which, "%{y:.3f}")), texts=texts)
        for which, ends, style in ((least, numbers.min(axis=1), look), (largest, numbers.max(axis=1), fill))
    ]


def stream_added_spec(
    depths: Sequence[Depth],
    before: np.ndarray,
    added: np.ndarray,
    aligned: np.ndarray,
    *,
    title: str,
    colour: Colour = "source",
) -> Spec:
    """Draw what each sub-layer added to one token's stream, next to what was there, all [sub-layer].

    `before` and `added` are sizes, `aligned` is the cosine of the two.
    """
    numbers = [np.asarray(values, np.float64) for values in (before, added, aligned)]
    if any(values.shape != (len(depths),) for values in numbers):
        raise ValueError(f"{len(depths)} sub-layers: give one value for each.")
    old, new, cosine = numbers
    shares = np.divide(new, old, out=np.full(len(depths), np.nan), where=old > 0)
    layout = base_layout(title, say("Sub-layer"), say("Root mean square"))
    layout |= {"height": 360, "barmode": "group", "bargap": 0.25, "bargroupgap": 0}
    along(layout, [depth.short for depth in depths], revised=False)
    layout["xaxis"] |= {"fixedrange": True}
    top = float(np.nanmax(np.concatenate([old, new]), initial=0)) or 1.0
    layout["yaxis"] |= {"range": [0, 1.15 * top], "nticks": 6}
    legend(layout, 92)
    layout["annotations"] = [
        note(place, max(old[place], new[place]), f"{share:.2f}") | {"yshift": 10}
        for place, share in enumerate(shares)
        if np.isfinite(share)
    ]
    rows = list(zip(depths, old, new, shares, cosine, strict=True))
    names = [say("stream"), say("added"), say("added / stream"), say("cosine")]
    table(layout, [say("sub-layer"), *names], [[depth.name, *map(finite, row)] for depth, *row in rows])
    said = [[with_number(name, f"{n:.3f}") for name, n in zip(names, row, strict=True)] for _, *row in rows]
    texts = [on_lines(literal(depth.name), *lines) for depth, lines in zip(depths, said, strict=True)]
    places = np.arange(len(depths), dtype=np.int32)
    data = [
        layer("bar", places, each, {"marker": {"color": shade}}, name=name, texts=texts)
        for name, each, shade in zip(names, (old, new), shades(colour), strict=False)
    ]
    return {"data": data, "layout": layout, "how_to_read": HOW_TO_READ_ADDED}
