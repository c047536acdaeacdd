"""The difference of two maps with the same rows and columns: right minus left, with 0 in the middle of the scale."""

from collections.abc import Sequence

import numpy as np

from glassformer.charts.heatmap import heatmap_spec
from glassformer.charts.tables import CLOSED
from glassformer.charts.theme import SIGNED_SCALE, Spec
from transformer.i18n import say

DIFFERENCE = say("right − left")
HOW_TO_READ = say(
    "Each cell is the weight in the right-hand map minus the weight in the left-hand map: purple where the "
    "right-hand map gives the key more weight, green where it gives less, colourless where both give the same."
)


def difference_map_spec(
    left: np.ndarray,
    right: np.ndarray,
    *,
    queries: Sequence[str],
    keys: Sequence[str],
    title: str,
    query_axis: str = say("Query"),
    key_axis: str = say("Key"),
    allowed: np.ndarray | None,
    mask_reason: str = CLOSED,
) -> Spec:
    """Draw right minus left, both [query, key] of the same pieces; the scale is symmetric around 0.

    `allowed` is True where a query may attend in at least one of the two.
    """
    if left.shape != right.shape:
        raise ValueError(f"The left map is {left.shape}, the right one {right.shape}: give maps of the same pieces.")
    values = np.asarray(right, dtype=np.float32) - np.asarray(left, dtype=np.float32)
    there = values if allowed is None else values[np.asarray(allowed, dtype=bool)]
    most = float(np.abs(there[np.isfinite(there)]).max(initial=0)) or 1.0
    figure = heatmap_spec(
        values,
        queries=queries,
        keys=keys,
        title=title,
        query_axis=query_axis,
        key_axis=key_axis,
        allowed=allowed,
        mask_reason=mask_reason,
        value_name=DIFFERENCE,
        limits=(-most, most),
        rows_sum_to_one=False,
    )
    if figure["data"]:
        figure["data"][0]["colorscale"] = SIGNED_SCALE
    return figure
