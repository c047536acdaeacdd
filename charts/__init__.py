"""Arrays and labels in, a plain Plotly figure out; it opens in a notebook as well as in the app.

Read `theme` first (colours, and text that is never taken for markup), then `heatmap`, `bars`, `candidates`, `curves`
and `training`.
Nothing here knows torch or Streamlit. Each chart comes twice: `heatmap` returns a `go.Figure`,
`heatmap_spec` the plain data of the same figure, which is much cheaper to make. A figure speaks English; the plain
data hold sentences (`words`), which the app says in the reader's language.

Example:
    >>> import charts
    >>> figure = charts.heatmap(weights, queries=["▁like"], keys=["▁I", "▁like"], title="Layer 1, head 1")
    >>> figure.show()
"""

from charts.aligned import aligned_outputs, aligned_outputs_spec
from charts.bars import attention_bar, attention_bar_spec
from charts.by_distance import (
    distance_curves,
    distance_curves_spec,
    distance_map,
    distance_map_spec,
    spreads,
    spreads_spec,
)
from charts.candidates import candidates, candidates_spec
from charts.contributions import (
    contribution_bars,
    contribution_bars_spec,
    contribution_map,
    contribution_map_spec,
)
from charts.costs import cost_curves, cost_curves_spec, cost_shares, cost_shares_spec
from charts.credit import piece_credit, piece_credit_spec
from charts.curves import entropy, entropy_spec
from charts.diagram import model_diagram, model_diagram_spec, with_links
from charts.difference import difference_map, difference_map_spec
from charts.draws import draws, draws_spec
from charts.embedding import embedding_rows, embedding_rows_spec, embedding_strengths, embedding_strengths_spec
from charts.given import all_heads, one_map
from charts.grid import grid, grid_spec
from charts.head_effects import head_effects, head_effects_spec
from charts.heatmap import heatmap, heatmap_spec
from charts.hidden_pieces import hidden_pieces, hidden_pieces_spec
from charts.lens import lens_curves, lens_curves_spec, lens_table, lens_table_spec
from charts.lens_map import lens_map, lens_map_spec
from charts.mask_rows import logit_movement, logit_movement_spec, masked_row, masked_row_spec
from charts.masks import mask_map, mask_map_spec, mask_own_shape, mask_own_shape_spec, padded_batch, padded_batch_spec
from charts.mistakes import two_bars, two_bars_spec, two_lines, two_lines_spec
from charts.neighbours import neighbour_bars, neighbour_bars_spec, piece_map, piece_map_spec
from charts.neuron_bars import active_neurons, active_neurons_spec, logit_effect, logit_effect_spec
from charts.neurons import (
    neuron_map,
    neuron_map_spec,
    neuron_tokens,
    neuron_tokens_spec,
    pre_activations,
    pre_activations_spec,
    silent_shares,
    silent_shares_spec,
)
from charts.norm_effect import norm_effect, norm_effect_spec
from charts.one_weight import (
    head_norms,
    head_norms_spec,
    key_row,
    key_row_spec,
    query_times_key,
    query_times_key_spec,
)
from charts.parameters import (
    number_spread,
    number_spread_spec,
    row_lengths,
    row_lengths_spec,
    singular_values,
    singular_values_spec,
)
from charts.perplexity import perplexity, perplexity_spec
from charts.piece_losses import piece_losses, piece_losses_spec
from charts.position_shift import shift_errors, shift_errors_spec, shift_points, shift_points_spec
from charts.position_waves import position_curves, position_curves_spec, wavelengths, wavelengths_spec
from charts.positions import (
    position_similarity,
    position_similarity_spec,
    position_table,
    position_table_spec,
    similarity_by_distance,
    similarity_by_distance_spec,
)
from charts.reshaped import reshaped, reshaped_spec
from charts.rotations import (
    rotation_map,
    rotation_map_spec,
    turning_circle,
    turning_circle_spec,
    turning_waves,
    turning_waves_spec,
)
from charts.search_tree import search_tree, search_tree_spec
from charts.sentences import line_points, line_points_spec, line_spread, line_spread_spec
from charts.shift import shift, shift_spec
from charts.signed import signed_rows, signed_rows_spec
from charts.statistics import head_measure, head_measure_spec, row_measure, row_measure_spec
from charts.stream import stream_added, stream_added_spec, stream_lines, stream_lines_spec
from charts.training import dev_scores, dev_scores_spec, learning_rates, learning_rates_spec, losses, losses_spec
from charts.two_texts import two_texts, two_texts_spec
