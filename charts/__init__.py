"""Arrays and labels in, a plain Plotly figure out; it opens in a notebook as well as in the app.

Read `theme` first (colours, and text that is never taken for markup), then `heatmap`, `bars` and `curves`.
Nothing here knows torch or Streamlit.

Example:
    >>> import charts
    >>> figure = charts.heatmap(weights, queries=["▁like"], keys=["▁I", "▁like"], title="Layer 1, head 1")
    >>> figure.show()
"""

from charts.bars import attention_bar, candidates
from charts.curves import entropy
from charts.heatmap import heatmap

__all__ = ["attention_bar", "candidates", "entropy", "heatmap"]
