"""What masks do: one query's row before and after its mask, and how far the logits of two runs lie apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from charts import theme
from charts.grammar import HATCHED, SIDES, along, frame, layer, numbered, table, table_of, upright
from charts.hover import hover, italic, on_lines, with_number
from charts.tables import WEIGHT
from charts.theme import Colour, Spec, base_layout, literal
from words import joined, say

HOW_TO_READ_ROW = say(
    "From top to bottom: score q·k / √d_head of this query with each key, the score after the mask (−∞ where it is "
    "closed), and weight = exp(score) / Σ exp(scores) over the open keys; the bars of the last row make 1 together."
)
HOW_TO_READ_MOVEMENT = say(
    "Each mark is one row: the largest |difference| over all logits of that row between the two runs; the shaded "
    "band is what float32 rounding explains, and exactly 0 has a place of its own under the logarithmic scale."
)
HOW_TO_READ_VECTORS = say(
    "Each mark is one row: the largest |difference| over all dimensions of that row's vector between the two runs; "
    "the shaded band is what float32 rounding explains, and exactly 0 has a place of its own under the logarithmic "
    "scale."
)
LOGITS, VECTORS = say("max |Δ logit|"), say("max |Δ component|")
READS_PREDICTS = say("Reads → predicts")

_NUMBER = "%{y:.4f}"
_MOST_WRITTEN = 20  # above this many columns a sign in each cell is too small to read


def masked_row_spec(
    scores: np.ndarray,
    allowed: np.ndarray,
    weights: np.ndarray,
    *,
    keys: Sequence[str],
    title: str,
    key_axis: str,
    key: int,
    colour: Colour,
    mask_reasons: Sequence[str],
    filled: str = "−∞",
) -> Spec:
    """Draw one query's row three times over the same keys: scores before the mask, after it, and weights, all [key].

    `filled` is what a closed score becomes, as it is written; a closed key that weighs something has a bar.
    `mask_reasons` has for each closed key why it is. The `key` that is looked at is framed; a click returns the key's
    place.
    """
    shape = (len(keys),)
    if not scores.shape == allowed.shape == weights.shape == shape or len(mask_reasons) != len(keys):
        raise ValueError(f"{scores.shape} scores, {allowed.shape} mask, {weights.shape} weights, {len(keys)} keys.")
    layout = _row_layout(scores, keys, title, key_axis, key)
    low, high = layout["yaxis"]["range"]
    weighs = allowed | (weights > 0)
    kept, names = np.where(allowed, scores, np.nan), numbered(keys)
    score, shade = with_number(say("score"), _NUMBER), SIDES[colour][1]
    rows = [
        (kept, "y", score, shade),
        (kept, "y2", with_number(say("after the mask"), _NUMBER), shade),
        (np.where(weighs, weights, np.nan), "y3", with_number(WEIGHT, _NUMBER), shade),
    ]
    closed: list[int] = np.flatnonzero(~allowed).tolist()
    if closed:
        left_out = say("{score}, closed by the mask", score=score)
        rows.append((np.where(allowed, np.nan, scores), "y", left_out, theme.MASK_LINE))
    data = []
    for values, axis, last_line, own in rows:
        look, says = {"yaxis": axis, "marker": {"color": own}}, hover("%{hovertext}", last_line)
        y = values.astype(np.float32)
        data.append(layer("bar", np.arange(len(keys)), y, look, says=says, texts=names, clicks=range(len(keys))))
    if closed:
        named = {place: joined(" ", [names[place], italic(mask_reasons[place])]) for place in closed}
        data += [
            _closed(named, low, high - low, "y2", filled, written=len(keys) <= _MOST_WRITTEN),
            _closed({k: named[k] for k in closed if not weighs[k]}, 0.0, 1.0, "y3", say("weight exactly 0")),
        ]
    table_of(
        layout,
        (say("{rows} number", rows=key_axis), range(1, len(keys) + 1)),
        (key_axis, keys),
        (say("Score"), map(_digits, scores)),
        (say("After the mask"), map(_digits, kept)),  # no score, and no weight of 0, where the mask closes
        (say("Weight"), map(_digits, np.where(allowed | (weights != 0), weights, np.nan))),
        (say("note"), ("" if may else reason for may, reason in zip(allowed, mask_reasons, strict=True))),
    )
    return {"data": data, "layout": layout}


def _row_layout(scores: np.ndarray, keys: Sequence[str], title: str, key_axis: str, key: int) -> dict[str, Any]:
    layout = base_layout(title, key_axis, say("Score"))
    along(layout, keys, title=key_axis)
    layout["xaxis"] |= {"anchor": "y3"}
    finite = scores[np.isfinite(scores)]
    low, high = (min(0.0, float(finite.min())), max(0.0, float(finite.max()))) if finite.size else (0.0, 1.0)
    room = 0.08 * ((high - low) or 1.0)
    span = [low - room * (low < 0), high + room]
    fixed = {"fixedrange": True, "automargin": True, "zeroline": True, "nticks": 5, "showgrid": True}
    panels = (
        ("yaxis", say("Score"), span, [0.7, 1]),
        ("yaxis2", say("After mask"), span, [0.36, 0.64]),
        ("yaxis3", say("Weight"), [0, 1], [0, 0.3]),
    )
    for name, text, limits, domain in panels:
        layout[name] = {**fixed, "title": {"text": text, "standoff": 8}, "range": limits, "domain": domain}
    looked_at = frame((key - 0.5, key + 0.5), (0, 1), yref="paper")
    return layout | {"barmode": "overlay", "bargap": 0.25, "height": 520, "shapes": [looked_at]}


def _digits(value: float) -> float | None:
    """A float32 with as many digits as tell it from its neighbours; None for what is no number."""
    return float(f"{value:.9g}") if np.isfinite(value) else None


def _closed(
    named: Mapping[int, str], base: float, height: float, axis: str, word: str, *, written: bool = False
) -> Spec:
    places = list(named)
    heights = np.full(len(places), height, dtype=np.float32)
    look = {"base": base, "width": 0.96, "yaxis": axis, "marker": HATCHED}
    if written:
        look |= {"text": [word] * len(places), "textposition": "inside", "insidetextanchor": "middle", "textangle": 0}
    says = hover("%{hovertext}", word)
    return layer("bar", np.array(places), heights, look, says=says, texts=named.values(), clicks=places)


def logit_movement_spec(
    series: Mapping[str, np.ndarray],
    *,
    rows: Sequence[str],
    title: str,
    rounding: float,
    row_axis: str = READS_PREDICTS,
    value_name: str = LOGITS,
    changed: int | None = None,
) -> Spec:
    """Draw how far rows of logits or vectors moved between two runs; on the logarithmic axis exactly 0 has a place.

    `series` are one or two, name -> max |difference| [row]; the first is drawn filled. The band up to `rounding`, the
    largest difference that counts as float32 rounding, is shaded. `value_name` is `LOGITS` or `VECTORS`; a line marks
    the row whose input was `changed`.
    """
    if any(values.shape != (len(rows),) for values in series.values()):
        raise ValueError(f"{len(rows)} rows need as many numbers in each series.")
    every = np.concatenate([*series.values(), [rounding]])
    positive = every[np.isfinite(every) & (every > 0)]
    zero = 10.0 ** (np.floor(np.log10(positive.min())) - 1.0)
    top = 10.0 ** np.ceil(np.log10(positive.max()) + 0.1)
    layout = _movement_layout(title, rows, (row_axis, value_name), zero, top)
    moved = [say("{value} {run}", value=value_name, run=name) for name in series]
    cells = [[i + 1, label, *(_digits(one[i]) for one in series.values())] for i, label in enumerate(rows)]
    table(layout, [say("{rows} number", rows=row_axis), row_axis, *moved], cells)
    band = {"type": "rect", "xref": "paper", "x0": 0, "x1": 1, "y0": zero / 4, "y1": rounding, "layer": "below"}
    layout["shapes"] = [band | {"fillcolor": theme.MASK_COLOR, "line": {"width": 0}}]
    if changed is not None:
        layout["shapes"].append(upright(changed, below=False) | {"yref": "paper"})
    looks = (("●", "circle", theme.TARGET_COLOR), ("◇", "diamond-open", theme.NEUTRAL_COLOR))
    named = [joined(" ", [sign, literal(name)]) for (sign, _, _), name in zip(looks, series, strict=False)]
    layout["title"]["subtitle"] = {"text": joined(" ", named), "font": {"size": 13}}
    data = [
        _dots(values, zero, rows, name, symbol, shade)
        for (name, values), (_, symbol, shade) in zip(series.items(), looks, strict=False)
    ]
    return {"data": data, "layout": layout}


def _movement_layout(
    title: str, rows: Sequence[str], names: tuple[str, str], zero: float, top: float
) -> dict[str, Any]:
    layout = base_layout(title, *names) | {"height": 360}
    along(layout, rows, title=names[0])
    first, last = round(np.log10(zero)), round(np.log10(top))
    exponents = range(first + 1, last + 1, max(1, (last - first) // 6))
    layout["yaxis"] |= {
        "type": "log",
        "range": [float(first - 0.4), float(last + 0.2)],
        "tickmode": "array",
        "tickvals": [zero, *(10.0**exponent for exponent in exponents)],
        "ticktext": [say("exactly 0"), *(_power(exponent) for exponent in exponents)],
        "fixedrange": True,
    }
    return layout


def _power(exponent: int) -> str:
    return f"10<sup>−{-exponent}</sup>" if exponent < -3 else f"{10.0**exponent:g}"


def _dots(values: np.ndarray, zero: float, rows: Sequence[str], name: str, symbol: str, shade: str) -> Spec:
    said = [say("exactly 0") if value == 0 else f"{value:.3g}" for value in values]
    texts = [
        on_lines(label, with_number(say("moved by"), text)) for label, text in zip(numbered(rows), said, strict=True)
    ]
    heights = np.where(values == 0, zero, values).astype(np.float64)
    says = hover("%{hovertext}", literal(name))
    marker = {"symbol": symbol, "color": shade, "size": 10, "line": {"width": 2, "color": shade}}
    return layer("markers", np.arange(len(rows)), heights, name=literal(name), says=says, texts=texts) | {
        "marker": marker
    }
