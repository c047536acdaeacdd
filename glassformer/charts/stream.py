"""The residual stream by depth, and what was added to it."""

from collections.abc import Sequence

import numpy as np

from glassformer.charts import theme
from glassformer.charts.grammar import SIDES, along, finite, layer, legend, note, stroke, table
from glassformer.charts.hover import bold, hover, on_lines, with_number
from glassformer.charts.lens import AFTER, DEPTH_AXIS, Depth, after
from glassformer.charts.theme import Colour, Spec, base_layout, capitalised, literal, subtitle
from transformer.i18n import say

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
        subtitle(
            layout,
            [say("{n} tokens: only the smallest and largest values and the chosen token are drawn", n=len(pieces))],
        )
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


def named_token(place: int, piece: str) -> str:
    """A token on hover, its place counted from 1."""
    return say("token {place}: {piece}", place=place, piece=bold(piece))


def _lines(
    depths: Sequence[Depth], numbers: np.ndarray, pieces: Sequence[str], tokens: Sequence[int], value_name: str
) -> Spec:
    """One trace with a gap after each token's line: a trace for each would take a browser long."""
    n_depths = len(depths)
    gapped = np.full((len(tokens), n_depths + 1), np.nan, np.float32)
    gapped[:, :-1] = numbers[:, tokens].T
    names = [named_token(token + 1, pieces[token]) for token in tokens]
    points = [after(literal(depth.name)) for depth in depths] + [""]
    x = np.tile(np.arange(n_depths + 1, dtype=np.float32), len(tokens))
    return layer(
        "lines+markers",
        x,
        gapped.ravel(),
        says=hover("%{hovertext}", with_number(literal(value_name), "%{y:.3f}")),
        texts=[on_lines(name, point) for name in names for point in points],
        clicks=[token for token in tokens for _ in range(n_depths + 1)],
    ) | {"connectgaps": False}


def _range(depths: Sequence[Depth], numbers: np.ndarray, value_name: str, colour: str) -> list[Spec]:
    """The least and the largest of all tokens, with a shade between them."""
    x, texts = np.arange(len(depths), dtype=np.int32), [after(literal(depth.name)) for depth in depths]
    name = literal(value_name)
    ends = (
        (say("least {value}", value=name), numbers.min(axis=1)),
        (say("largest {value}", value=name), numbers.max(axis=1)),
    )
    low, high = (
        layer("lines", x, values, says=hover("%{hovertext}", with_number(which, "%{y:.3f}")), texts=texts)
        | stroke(colour, 1)
        for which, values in ends
    )
    return [low, high | {"fill": "tonexty", "fillcolor": theme.SCALES["neutral"][0][1]}]


# ------------------------------------------------------------------------------------------------ what was added


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
    columns = [say("sub-layer"), say("stream"), say("added"), say("added / stream"), say("cosine")]
    table(layout, columns, [[depth.name, *map(finite, row)] for depth, *row in rows])
    texts = [
        on_lines(
            literal(depth.name),
            say(
                "stream {stream}, added {added}, ratio {share}",
                stream=f"<b>{one:.3f}</b>",
                added=f"<b>{two:.3f}</b>",
                share=f"<b>{share:.3f}</b>",
            ),
            with_number(say("cosine"), f"{cos:.3f}"),
        )
        for depth, one, two, share, cos in rows
    ]
    bars = zip((say("stream"), say("added")), (old, new), shades(colour), strict=True)
    places = np.arange(len(depths), dtype=np.int32)
    data = [
        layer("bar", places, each, name=name, texts=texts) | {"marker": {"color": shade}} for name, each, shade in bars
    ]
    return {"data": data, "layout": layout, "how_to_read": HOW_TO_READ_ADDED}
