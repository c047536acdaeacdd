"""Arrays and labels in, a plain Plotly figure out; it opens in a notebook as well as in the app.

Read `theme` first (colours, and text that is never taken for markup), then `heatmap`, `bars`, `curves`
and `training`.
Nothing here knows torch or Streamlit. Each chart comes twice: `heatmap` returns a `go.Figure`,
`heatmap_spec` the plain data of the same figure, which is much cheaper to make.

Example:
    >>> import charts
    >>> figure = charts.heatmap(weights, queries=["▁like"], keys=["▁I", "▁like"], title="Layer 1, head 1")
    >>> figure.show()
"""

from charts.bars import attention_bar, attention_bar_spec, candidates, candidates_spec
from charts.curves import entropy, entropy_spec
from charts.grid import grid, grid_spec
from charts.heatmap import heatmap, heatmap_spec
from charts.statistics import head_measure, head_measure_spec, row_measure, row_measure_spec
from charts.training import (
    dev_scores,
    dev_scores_spec,
    learning_rates,
    learning_rates_spec,
    losses,
    losses_spec,
)

__all__ = [
    "attention_bar",
    "attention_bar_spec",
    "candidates",
    "candidates_spec",
    "dev_scores",
    "dev_scores_spec",
    "entropy",
    "entropy_spec",
    "head_measure",
    "head_measure_spec",
    "grid",
    "grid_spec",
    "heatmap",
    "heatmap_spec",
    "learning_rates",
    "learning_rates_spec",
    "losses",
    "losses_spec",
    "row_measure",
    "row_measure_spec",
]
