"""Arrays and labels in, a plain Plotly figure out, for notebooks and for the app.

Read `theme` first (colours, and text that is never read as markup), then `heatmap`, `bars`, `candidates` and
`curves`. Nothing here knows torch or Streamlit. Extensions add charts of theirs.

Each chart has two functions. `heatmap_spec` makes the chart's plain data, which is much cheaper than a `go.Figure`;
the app translates its sentences (`words`). `heatmap` returns the same as a figure in English, for notebooks.

In all charts there is one label per place, in order; equal labels stay separate. Axes and values are named with their
unit; `colour` is the side they belong to. `chosen` and `marked_...` count from 0, and None marks nothing. `note` is
shown under the title. `allowed` is True where a query may attend; closed cells show `mask_reason` on hover instead of
a number. Shapes follow the name of an array: [layer, head]. Sizes that do not fit together raise a ValueError. A
click gives the `customdata` of a mark or the index of a cell, and `layout.height` suggests a height in pixels.

Example:
    >>> from glassformer import charts
    >>> figure = charts.heatmap(weights, queries=["▁like"], keys=["▁I", "▁like"], allowed=mask, title="Head 1")
    >>> figure.show()
"""

import sys
from types import ModuleType
from typing import Any

from transformer.extensions import extensions, imported

# Where the functions are; extensions have more.
_OWN = {
    "aligned": ("aligned_outputs_spec",),
    "bars": ("attention_bar_spec",),
    "by_distance": ("distance_curves_spec", "distance_map_spec", "spreads_spec"),
    "candidates": ("candidates_spec",),
    "contributions": ("contribution_bars_spec", "contribution_map_spec"),
    "costs": ("cost_curves_spec", "cost_shares_spec"),
    "credit": ("piece_credit_spec",),
    "curves": ("entropy_spec",),
    "diagram": ("model_diagram_spec", "with_links"),
    "difference": ("difference_map_spec",),
    "draws": ("draws_spec",),
    "embedding": ("embedding_rows_spec", "embedding_strengths_spec"),
    "given": ("all_heads", "one_map"),
    "grid": ("grid", "grid_spec"),
    "head_effects": ("head_effects_spec",),
    "heatmap": ("heatmap_spec",),
    "lens": ("lens_curves_spec", "lens_map_spec", "lens_table_spec"),
    "masks": ("logit_movement_spec", "mask_map_spec", "mask_own_shape_spec", "masked_row_spec", "padded_batch_spec"),
    "mistakes": ("two_bars_spec", "two_lines_spec"),
    "neighbours": ("neighbour_bars_spec", "piece_map_spec"),
    "neurons": ("pre_activations_spec",),
    "one_weight": ("head_norms_spec", "key_row_spec", "query_times_key_spec"),
    "perplexity": ("perplexity_spec",),
    "piece_losses": ("hidden_pieces_spec", "piece_losses_spec"),
    "piece_rows": ("piece_rows_spec",),
    "positions": (
        "position_curves_spec",
        "position_similarity_spec",
        "position_table_spec",
        "shift_errors_spec",
        "shift_points_spec",
        "similarity_by_distance_spec",
        "wavelengths_spec",
    ),
    "reshaped": ("reshaped_spec",),
    "rotations": ("rotation_map_spec", "turning_circle_spec", "turning_waves_spec"),
    "search_tree": ("search_tree_spec",),
    "shift": ("shift_spec",),
    "signed": ("signed_rows_spec",),
    "spread": ("number_spread_spec",),
    "statistics": ("head_measure_spec", "row_measure_spec"),
    "stream": ("norm_effect_spec", "stream_added_spec", "stream_lines_spec"),
    "tiles": ("cache_blocks_spec", "cache_places_spec", "tile_output_spec", "tile_scores_spec"),
    "two_texts": ("two_texts_spec",),
}
_CHARTS = {name: f"{__name__}.{module}:{name}" for module, names in _OWN.items() for name in names}


class _Door(ModuleType):
    """The package, in which a figure is not hidden by a module of its name that is imported."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (isinstance(value, ModuleType) and (name in _CHARTS or f"{name}_spec" in _CHARTS)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Door


def __getattr__(name: str) -> Any:
    """A chart, or its figure, imported when it is asked for."""
    for charts in (_CHARTS, *(one.charts for one in extensions())):
        if name in charts:
            return imported(charts[name])
        if f"{name}_spec" in charts:
            return imported(f"{__name__}.theme:as_figure")(imported(charts[f"{name}_spec"]))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """All charts and their figures."""
    known = {*_CHARTS, *(name for one in extensions() for name in one.charts)}
    return sorted(known | {name.removesuffix("_spec") for name in known})
