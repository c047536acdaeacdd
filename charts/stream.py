"""The residual stream by depth, what was added to it, and what a norm did to it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from charts.lens import DEPTH_AXIS, Depth
from charts.theme import (
    GUIDE_COLOR,
    MARK_COLOR,
    SCALES,
    SOURCE_COLOR,
    SOURCE_PALE,
    TARGET_COLOR,
    TARGET_PALE,
    Colour,
    Spec,
    as_figure,
    base_layout,
    literal,
    ticks,
)

HOW_TO_READ_SIZE = (
    "Each line is one token, the strong one is chosen: root mean square √(Σ xⱼ² / d) of its vector after each part; "
    "the vector's length ‖x‖ is √d times that."
)
HOW_TO_READ_KEPT = (
    "Each line is one token: the cosine x·e / (‖x‖ ‖e‖) of its vector with what it began as, its embedding plus "
    "position; 1 is the same direction, 0 nothing left of it."
)
HOW_TO_READ_ADDED = (
    "For the chosen token: root mean square of the stream before a sub-layer and of what that adds; the number above "
    "is the second as a share of the first, and hover has the cosine of the two: below 0 the sub-layer takes away."
)
HOW_TO_READ_NORM = (
    "Over the d numbers of each token: their mean μ and standard deviation σ before the norm, and after "
    "y = γ (x − μ) / √(σ² + ε) + β; without γ and β they would be 0 and 1."
)
HOW_TO_READ_STRIP = (
    "Each row is the chosen token's vector, a column for each dimension: as the norm reads it, with μ taken off and "
    "divided by √(σ² + ε), and times γ plus β, which is what the model goes on with."
)

MOST_LINES = 128
"""Tokens drawn as a line each; of more only the least and the largest are drawn, and the chosen one."""
_SIDES = {"source": (SOURCE_PALE, SOURCE_COLOR), "target": (TARGET_PALE, TARGET_COLOR)}


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
    """Draw a measure of every token by depth.

    Args:
        depths: The places, in order.
        values: `[depth, token]`.
        pieces: The tokens; equal ones stay apart.
        chosen: The token whose line is strong.
        title: What the chart shows.
        value_name: What a number is.
        limits: Ends of the axis; None goes from 0 to the largest value.
        colour: Whose tokens they are.

    Returns:
        The figure; a click on a point returns its token as `customdata`.

    Raises:
        ValueError: If there is not one value for each depth and token.
    """
    numbers = np.asarray(values, np.float32)
    if numbers.shape != (len(depths), len(pieces)) or not 0 <= chosen < len(pieces):
        raise ValueError(f"{numbers.shape} values for {len(depths)} depths and {len(pieces)} tokens: give one each.")
    layout = base_layout(title, DEPTH_AXIS, value_name[:1].upper() + value_name[1:])
    axis = ticks([depth.short for depth in depths], title=DEPTH_AXIS)
    layout["xaxis"] = {**axis["axis"], "range": [-0.3, len(depths) - 0.7], "fixedrange": True}
    layout["yaxis"] |= {"nticks": 6} | ({"range": list(limits)} if limits else {"rangemode": "tozero"})
    layout |= {"height": 360, "hovermode": "closest", "meta": {"ticks": {"xaxis": axis["spec"]}}}
    pale, full = _SIDES.get(colour, (GUIDE_COLOR, MARK_COLOR))
    strong = _lines(depths, numbers, pieces, [chosen], value_name, full)
    strong |= {"line": {"color": full, "width": 3}, "marker": {"color": full, "size": 8}}
    others = [token for token in range(len(pieces)) if token != chosen]
    drawn_apart = len(pieces) <= MOST_LINES
    weak = [_lines(depths, numbers, pieces, others, value_name, pale)] if others and drawn_apart else []
    weak = weak if drawn_apart else _range(depths, numbers, value_name, pale)
    if not drawn_apart:
        text = f"{len(pieces)} tokens: their least and largest, and the chosen one"
        layout["title"]["subtitle"] = {"text": text, "font": {"size": 13}}
    layout["meta"]["table"] = {
        "columns": ["token", "piece", "after", value_name],
        "rows": [
            [token + 1, piece, depth.name, float(numbers[row, token]) if np.isfinite(numbers[row, token]) else None]
            for token, piece in enumerate(pieces)
            for row, depth in enumerate(depths)
        ],
    }
    return {"data": [*weak, strong], "layout": layout}


stream_lines = as_figure(stream_lines_spec)


def _lines(
    depths: Sequence[Depth],
    numbers: np.ndarray,
    pieces: Sequence[str],
    tokens: Sequence[int],
    value_name: str,
    colour: str,
) -> Spec:
    """One trace with a gap after each token's line: a trace for each would take a browser long."""
    n_depths = len(depths)
    gapped = np.full((len(tokens), n_depths + 1), np.nan, np.float32)
    gapped[:, :-1] = numbers[:, tokens].T
    names = [f"token {token + 1}: <b>{literal(pieces[token])}</b>" for token in tokens]
    points = [f"after {literal(depth.name)}" for depth in depths] + [""]
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "x": np.tile(np.arange(n_depths + 1, dtype=np.float32), len(tokens)),
        "y": gapped.ravel(),
        "connectgaps": False,
        "customdata": [token for token in tokens for _ in range(n_depths + 1)],
        "hovertext": [f"{name}<br>{point}" for name in names for point in points],
        "hovertemplate": f"%{{hovertext}}<br>{literal(value_name)} <b>%{{y:.3f}}</b><extra></extra>",
        "line": {"color": colour, "width": 1},
        "marker": {"color": colour, "size": 5},
    }


def _range(depths: Sequence[Depth], numbers: np.ndarray, value_name: str, colour: str) -> list[Spec]:
    """The least and the largest of all tokens, with a shade between them."""
    edge = {
        "type": "scatter",
        "mode": "lines",
        "x": np.arange(len(depths), dtype=np.int32),
        "hovertext": [f"after {literal(depth.name)}" for depth in depths],
        "line": {"color": colour, "width": 1},
    }
    low, high = (
        {
            "y": values,
            "hovertemplate": f"%{{hovertext}}<br>{word} {literal(value_name)} <b>%{{y:.3f}}</b><extra></extra>",
        }
        for word, values in (("least", numbers.min(axis=1)), ("largest", numbers.max(axis=1)))
    )
    return [{**edge, **low}, {**edge, **high, "fill": "tonexty", "fillcolor": SCALES["neutral"][0][1]}]


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
    """Draw what each sub-layer added to one token's stream beside what was there.

    Args:
        depths: The sub-layers, in order.
        before: Size of the stream that a sub-layer adds to `[sub-layer]`.
        added: Size of what it adds `[sub-layer]`.
        aligned: Cosine of the two `[sub-layer]`.
        title: What the chart shows.
        colour: Whose token it is.

    Raises:
        ValueError: If there is not one value for each sub-layer.
    """
    numbers = [np.asarray(values, np.float64) for values in (before, added, aligned)]
    if any(values.shape != (len(depths),) for values in numbers):
        raise ValueError(f"{len(depths)} sub-layers: give one value for each.")
    old, new, cosine = numbers
    shares = np.divide(new, old, out=np.full(len(depths), np.nan), where=old > 0)
    layout = base_layout(title, "Sub-layer", "Root mean square") | {"height": 360, "showlegend": True}
    axis = ticks([depth.short for depth in depths], title="Sub-layer")
    layout["xaxis"] = {**axis["axis"], "range": [-0.5, len(depths) - 0.5], "fixedrange": True}
    top = float(np.nanmax(np.concatenate([old, new]), initial=0)) or 1.0
    layout["yaxis"] |= {"range": [0, 1.15 * top], "nticks": 6}
    layout |= {"barmode": "group", "bargap": 0.25, "bargroupgap": 0}
    layout["legend"] = {"orientation": "h", "x": 0, "xanchor": "left", "y": 1, "yanchor": "bottom"}
    layout["margin"]["t"] = 92
    layout["annotations"] = [
        {"x": place, "y": max(old[place], new[place]), "text": f"{share:.2f}", "showarrow": False, "yshift": 10}
        for place, share in enumerate(shares)
        if np.isfinite(share)
    ]
    layout["meta"] = {"ticks": {"xaxis": axis["spec"]}, "table": _added_table(depths, old, new, shares, cosine)}
    pale, full = _SIDES.get(colour, (GUIDE_COLOR, MARK_COLOR))
    texts = [
        f"{literal(depth.name)}<br>stream <b>{one:.3f}</b>, added <b>{two:.3f}</b>, share <b>{share:.3f}</b>"
        f"<br>cosine <b>{cos:.3f}</b>"
        for depth, one, two, share, cos in zip(depths, old, new, shares, cosine, strict=True)
    ]
    bars = [("stream", old, pale), ("added", new, full)]
    return {"data": [_bars(name, values, texts, shade) for name, values, shade in bars], "layout": layout}


stream_added = as_figure(stream_added_spec)


def _added_table(depths: Sequence[Depth], *columns: np.ndarray) -> Spec:
    rows = [
        [depth.name, *(float(value) if np.isfinite(value) else None for value in row)]
        for depth, *row in zip(depths, *columns, strict=True)
    ]
    return {"columns": ["sub-layer", "stream", "added", "added / stream", "cosine"], "rows": rows}


def _bars(name: str, values: np.ndarray, texts: Sequence[str], colour: str) -> Spec:
    return {
        "type": "bar",
        "name": name,
        "x": np.arange(len(values), dtype=np.int32),
        "y": values,
        "hovertext": list(texts),
        "hovertemplate": "%{hovertext}<extra></extra>",
        "marker": {"color": colour},
    }


# ------------------------------------------------------------------------------------------------ a norm


def norm_effect_spec(
    pieces: Sequence[str],
    *,
    means: tuple[np.ndarray, np.ndarray],
    deviations: tuple[np.ndarray, np.ndarray],
    chosen: int,
    title: str,
    token_axis: str,
    colour: Colour = "source",
) -> Spec:
    """Draw mean and standard deviation of every token's vector before and after a norm.

    Args:
        pieces: The tokens; equal ones stay apart.
        means: Before and after, each `[token]`.
        deviations: The same for the standard deviation.
        chosen: The token to frame.
        title: What the chart shows.
        token_axis: What the tokens are.
        colour: Whose tokens they are.

    Returns:
        The figure; a click on a mark returns its token as `customdata`.

    Raises:
        ValueError: If there is not one value for each token.
    """
    numbers = [np.asarray(values, np.float32) for values in (*means, *deviations)]
    if any(values.shape != (len(pieces),) for values in numbers):
        raise ValueError(f"{len(pieces)} tokens: give one value for each.")
    layout = base_layout(title, token_axis, "Mean") | {"height": 400, "showlegend": True, "hovermode": "closest"}
    axis = ticks(pieces, title=token_axis)
    layout["xaxis"] = {**axis["axis"], "range": [-0.5, len(pieces) - 0.5], "uirevision": "\n".join(pieces)}
    layout["xaxis"] |= {"anchor": "y2"}
    panel = layout["yaxis"] | {"nticks": 5, "fixedrange": True}
    layout["yaxis"] = panel | {"domain": [0.56, 1], "zeroline": True, "zerolinecolor": GUIDE_COLOR}
    layout["yaxis2"] = panel | {"domain": [0, 0.44], "title": {"text": "Deviation", "standoff": 8}}
    layout["yaxis2"] |= {"rangemode": "tozero"}
    layout["legend"] = {"orientation": "h", "x": 0, "xanchor": "left", "y": 1, "yanchor": "bottom"}
    layout["margin"]["t"] = 92
    layout["meta"] = {"ticks": {"xaxis": axis["spec"]}}
    line = {"color": MARK_COLOR, "width": 1.5, "dash": "dot"}
    edges = {"x0": chosen - 0.5, "x1": chosen + 0.5, "y0": 0, "y1": 1, "yref": "paper"}
    layout["shapes"] = [{"type": "rect", "line": line, **edges}]
    pale, full = _SIDES.get(colour, (GUIDE_COLOR, MARK_COLOR))
    words = [("mean before", "before", "y", pale), ("mean after", "after", "y", full),
             ("deviation before", "before", "y2", pale), ("deviation after", "after", "y2", full)]  # fmt: skip
    return {"data": [_marks(pieces, values, *word) for values, word in zip(numbers, words, strict=True)],
            "layout": layout}  # fmt: skip


norm_effect = as_figure(norm_effect_spec)


def _marks(pieces: Sequence[str], values: np.ndarray, what: str, name: str, axis: str, colour: str) -> Spec:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "x": np.arange(len(pieces), dtype=np.int32),
        "y": values,
        "yaxis": axis,
        "showlegend": axis == "y",
        "customdata": list(range(len(pieces))),
        "hovertext": [f"token {place}: <b>{literal(piece)}</b>" for place, piece in enumerate(pieces, start=1)],
        "hovertemplate": f"%{{hovertext}}<br>{what} <b>%{{y:.4f}}</b><extra></extra>",
        "marker": {"color": colour, "size": 9, "symbol": "circle" if name == "after" else "diamond"},
    }
