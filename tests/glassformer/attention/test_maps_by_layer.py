"""What is drawn and measured of a run that keeps no maps is what is drawn of one that keeps them."""

from dataclasses import replace

import numpy as np
import pytest

from glassformer.attention.drawn_maps import drawn_map, piece_map
from glassformer.attention.one_weight_pictures import opening
from glassformer.charts.grid import block_size, open_blocks, pooled
from glassformer.runs.viewed_run import VisibleTrace
from glassformer.state.view import View
from transformer.analysis.head_statistics import measure, measure_by_layer
from transformer.runs.dynamic_batching import run_together
from transformer.runs.running import each_layer

KINDS = ("encoder", "decoder", "cross")


@pytest.fixture(scope="module")
def runs(reverse):
    """The run that keeps its maps, and the one that keeps none."""
    query = reverse.query("abcde fgh")
    return [next(run_together(reverse, [query], most_map_bytes=most)) for most in (None, 0)]


def visible(reverse, trace, **view):
    asked = []

    def by_layer(kind, work, *, key, layers):
        asked.append((kind, key, layers))
        return each_layer(reverse, trace, kind, work, layers=layers)

    return VisibleTrace(trace, replace(View(), **view), by_layer=by_layer), asked


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "view",
    [
        {"layer": 1, "head": 2},
        {},
        {"aggregate": "max", "words": True},
        {"layer": 1, "aggregate": "rollout", "hide_special": True},
    ],
    ids=str,
)
def test_one_map_is_the_same(reverse, runs, kind, view):
    (kept, none), (gone, asked) = (visible(reverse, trace, **view) for trace in runs)
    for draw in (lambda of: drawn_map(of, reverse, kind).weights, lambda of: piece_map(of, kind)):
        np.testing.assert_array_equal(draw(gone), draw(kept))
    assert asked
    assert not none  # what is there is not computed again
    whole = [layers for _, key, layers in asked if key == "heads"]
    assert whole == [(1,), (1,)] * ("layer" in view and view.get("aggregate") != "rollout")  # never all of them


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_look_and_all_measures_are_the_same(reverse, runs, kind):
    kept, bare = runs
    first = [opening(visible(reverse, trace, kind=kind)[0]) for trace in runs]
    assert first[0] == first[1]
    whole = measure(kept, kind, eos_id=reverse.config.eos_id)
    parts = measure_by_layer(reverse, bare, kind)
    assert list(parts) == list(whole)
    for name, one in whole.items():
        np.testing.assert_array_equal(parts[name].values, one.values)
        np.testing.assert_array_equal(parts[name].rows, one.rows)


def test_tiles_of_one_layer_are_those_of_all(runs):
    kept, _ = runs
    maps, allowed = kept.decoder_self, kept.mask("decoder")
    size = block_size(maps.shape, maps.size // 8)
    assert size > 1
    whole = pooled(maps, allowed, size)
    for layer, tiles in enumerate(whole.weights):
        np.testing.assert_array_equal(pooled(maps[layer][None], allowed, size).weights[0], tiles)
    np.testing.assert_array_equal(np.broadcast_to(open_blocks(allowed, size), whole.allowed.shape), whole.allowed)
