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
    >>> import charts
    >>> figure = charts.heatmap(weights, queries=["▁like"], keys=["▁I", "▁like"], allowed=mask, title="Head 1")
    >>> figure.show()
"""

from typing import Any

from charts.aligned import aligned_outputs_spec
from charts.bars import attention_bar_spec
from charts.by_distance import distance_curves_spec, distance_map_spec, spreads_spec
from charts.candidates import candidates_spec
from charts.contributions import contribution_bars_spec, contribution_map_spec
from charts.costs import cost_curves_spec, cost_shares_spec
from charts.credit import piece_credit_spec
from charts.curves import entropy_spec
from charts.diagram import model_diagram_spec, with_links
from charts.difference import difference_map_spec
from charts.draws import draws_spec
from charts.embedding import embedding_rows_spec, embedding_strengths_spec
from charts.given import all_heads, one_map
from charts.grid import grid, grid_spec
from charts.growing import growing_losses_spec
from charts.head_effects import head_effects_spec
from charts.heatmap import heatmap_spec
from charts.lens import lens_curves_spec, lens_map_spec, lens_table_spec
from charts.masks import logit_movement_spec, mask_map_spec, mask_own_shape_spec, masked_row_spec, padded_batch_spec
from charts.mistakes import two_bars_spec, two_lines_spec
from charts.neighbours import neighbour_bars_spec, piece_map_spec
from charts.neurons import (
    active_neurons_spec,
    logit_effect_spec,
    neuron_map_spec,
    neuron_tokens_spec,
    pre_activations_spec,
    silent_shares_spec,
)
from charts.one_weight import head_norms_spec, key_row_spec, query_times_key_spec
from charts.parameters import number_spread_spec, row_lengths_spec, singular_values_spec
from charts.perplexity import perplexity_spec
from charts.piece_losses import hidden_pieces_spec, piece_losses_spec
from charts.piece_rows import piece_rows_spec
from charts.positions import (
    position_curves_spec,
    position_similarity_spec,
    position_table_spec,
    shift_errors_spec,
    shift_points_spec,
    similarity_by_distance_spec,
    wavelengths_spec,
)
from charts.reshaped import reshaped_spec
from charts.rotations import rotation_map_spec, turning_circle_spec, turning_waves_spec
from charts.search_tree import search_tree_spec
from charts.sentences import line_points_spec, line_spread_spec
from charts.shift import shift_spec
from charts.signed import signed_rows_spec
from charts.statistics import head_measure_spec, row_measure_spec
from charts.stream import norm_effect_spec, stream_added_spec, stream_lines_spec
from charts.theme import as_figure
from charts.tiles import cache_blocks_spec, cache_places_spec, tile_output_spec, tile_scores_spec
from charts.two_texts import two_texts_spec
from transformer.extensions import extensions, imported

for _name, _spec in list(globals().items()):
    if _name.endswith("_spec") and _name != "grid_spec":  # the figure of which is unpacked besides
        globals()[_name.removesuffix("_spec")] = as_figure(_spec)


def __getattr__(name: str) -> Any:
    """A chart of an extension, or its figure."""
    for one in extensions():
        if name in one.charts:
            return imported(one.charts[name])
        if f"{name}_spec" in one.charts:
            return as_figure(imported(one.charts[f"{name}_spec"]))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
