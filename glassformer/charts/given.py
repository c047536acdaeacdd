"""Two charts of given attention maps with their labels: every head as a small map, and one head or a mean.

Pass `of("encoder")` of what `transformer.given_maps` returns, or any object with the same five values. To see what
heads do, `marks.heat` draws the results of `transformer.analysis.head_statistics.measure_maps`.

Knows nothing of the origin of the maps.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import plotly.graph_objects as go

from glassformer.charts.grid import grid
from glassformer.charts.heatmap import heatmap_spec
from glassformer.charts.theme import as_figure
from transformer.i18n import say


class Attention(Protocol):
    """The maps of one attention."""

    @property
    def weights(self) -> np.ndarray:
        """[layer, head, query, key], 0 to 1."""

    @property
    def queries(self) -> Sequence[str]:
        """A label for each row."""

    @property
    def keys(self) -> Sequence[str]:
        """A label for each column."""

    @property
    def allowed(self) -> np.ndarray | None:
        """Bool [query, key], True = may attend. None: all may."""

    @property
    def sums_to_one(self) -> bool:
        """Whether rows should sum to 1."""


def all_heads(attention: Attention, *, title: str = "", own_scale: bool = False, log: bool = False) -> go.Figure:
    """Draw every head of every layer as a small map.

    `own_scale`: each head has its own scale instead of 0 to 1 for all; `log`: colours follow the logarithm.
    """
    layers, heads = attention.weights.shape[:2]
    return grid(
        attention.weights,
        queries=attention.queries,
        keys=attention.keys,
        title=title or say("{layers} layers × {heads} heads", layers=layers, heads=heads),
        allowed=attention.allowed,
        own_scale=own_scale,
        log=log,
    )


def one_map(
    attention: Attention, *, layer: int | None = None, head: int | None = None, title: str = "", log: bool = False
) -> go.Figure:
    """Draw the map of one head, from 0, or the mean of several.

    `head` None is the mean of its layer; both None is the mean of all layers. Raises ValueError if there is no such
    layer or head. `log`: colours follow the logarithm of the weight.
    """
    layers, heads = attention.weights.shape[:2]
    for name, place, count in (("layer", layer, layers), ("head", head, heads)):
        if place is not None and not 0 <= place < count:
            raise ValueError(f"{name} {place} of {count}: give 0 to {count - 1}, or None for the mean.")
    if layer is None and head is not None:
        raise ValueError(f"head {head} of no layer: give a layer, too.")
    if layer is None:
        weights = attention.weights.mean(axis=(0, 1))
        name = say("mean of {layers} layers × {heads} heads", layers=layers, heads=heads)
    elif head is None:
        weights = attention.weights[layer].mean(axis=0)
        name = say("layer {layer}, mean of {heads} heads", layer=layer + 1, heads=heads)
    else:
        weights, name = (
            attention.weights[layer, head],
            say("layer {layer}, head {head}", layer=layer + 1, head=head + 1),
        )
    return as_figure(heatmap_spec)(
        weights,
        queries=attention.queries,
        keys=attention.keys,
        title=title or name,
        allowed=attention.allowed,
        log=log,
        rows_sum_to_one=attention.sums_to_one,
    )
