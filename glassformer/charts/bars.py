"""Bars for one step: the weights over the source.

The axis starts at 0 and ends at the same number on every step, so you can compare steps by eye.
"""

from collections.abc import Sequence

import numpy as np

from glassformer.charts import theme
from glassformer.charts.grammar import HATCHED, along, layer, numbered
from glassformer.charts.hover import hover, italic, with_number
from glassformer.charts.tables import CLOSED, WEIGHT
from glassformer.charts.theme import Spec, base_layout
from transformer.i18n import say

_ENDS = (0.25, 0.5, 1.0)  # where an axis of weights may end

HOW_TO_READ = say("Each bar is the share of this step's attention that one source token gets. All bars sum to 1.")


def attention_bar_spec(
    weights: np.ndarray,
    keys: Sequence[str],
    *,
    title: str,
    key_axis: str = say("Source token"),
    allowed: np.ndarray | None,
    mask_reason: str = CLOSED,
    largest: float = 1.0,
) -> Spec:
    """Draw one query's weights [key], 0 to 1, over the keys, in sentence order; closed keys are hatched.

    `largest` is the largest weight of all rows that this one is compared with: the axis ends above it, at 1, 0.5 or
    0.25, because in a long sentence every bar would be too low to see. A click returns the key's place.
    """
    values = np.asarray(weights, dtype=np.float32)
    open_keys = np.ones(values.shape, bool) if allowed is None else np.asarray(allowed, dtype=bool)
    if values.shape != (len(keys),) or open_keys.shape != values.shape:
        raise ValueError(f"{values.shape} weights and a {open_keys.shape} mask for {len(keys)} keys: give one each.")
    top = next((end for end in _ENDS if largest <= end), 1.0)
    layout = base_layout(title, key_axis, say("Weight")) | {"bargap": 0.25, "barmode": "overlay", "height": 300}
    along(layout, keys)
    layout["yaxis"] |= {"range": [0, top], "fixedrange": True}
    bars, names = [], numbered(keys)
    if len(keys):
        says, y = hover("%{hovertext}", with_number(WEIGHT, "%{y:.4~g}")), np.where(open_keys, values, np.nan)
        look = {"marker": {"color": theme.SOURCE_COLOR}}
        bars.append(layer("bar", np.arange(len(keys)), y, look, says=says, texts=names, clicks=range(len(keys))))
    closed = [int(place) for place in np.flatnonzero(~open_keys)]
    if closed:
        says, texts = hover("%{hovertext}", italic(mask_reason)), [names[place] for place in closed]
        y = np.full(len(closed), top, dtype=np.float32)
        bars.append(layer("bar", np.array(closed), y, {"marker": HATCHED}, says=says, texts=texts, clicks=closed))
    return {"data": bars, "layout": layout}
