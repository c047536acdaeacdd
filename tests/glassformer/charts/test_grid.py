import base64

import numpy as np
import plotly.graph_objects as go
import pytest

from glassformer import charts
from glassformer.charts.grid import tile_at
from glassformer.charts.heatmap import LOG_FLOOR
from glassformer.charts.theme import literal
from glassformer.components.plotly_component import figure_json

STEP = 1 / 250


def maps_of(n_layers, n_heads, n_queries, n_keys, *, causal=False):
    scores = np.random.default_rng(3).normal(scale=2, size=(n_layers, n_heads, n_queries, n_keys))
    weights = np.exp(scores) * (np.tri(n_queries, n_keys) if causal else 1)
    return (weights / weights.sum(axis=-1, keepdims=True)).astype(np.float32)


def names(letter, count):
    return [f"{letter}{place}" for place in range(count)]


def draw(maps, **options):
    queries, keys = names("q", maps.shape[2]), names("k", maps.shape[3])
    return charts.grid(maps, **{"queries": queries, "keys": keys, "title": "Maps", "allowed": None, **options})


def values(figure):
    """The number that each cell tells on hover, [row, column]."""
    return np.array([[cell[2] for cell in row] for row in figure.data[0].customdata], dtype=float)


def tile(figure, maps, layer, head):
    return values(figure)[
        layer * maps.shape[2] : (layer + 1) * maps.shape[2], head * maps.shape[3] : (head + 1) * maps.shape[3]
    ]


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("own_scale", [False, True])
def test_each_tile_holds_its_heads_weights_to_a_step_of_the_scale(own_scale, log):
    maps = maps_of(2, 3, 4, 5)
    figure = draw(maps, own_scale=own_scale, log=log)
    assert isinstance(figure, go.Figure)
    for layer in range(2):
        for head in range(3):
            weights = maps[layer, head]
            top = weights.max() if own_scale else 1
            if log:
                expected, bounds = np.maximum(weights, top * LOG_FLOOR), {"rtol": 0.02}
            else:
                expected, bounds = weights, {"atol": top * STEP / 2 + 1e-6}
            np.testing.assert_allclose(tile(figure, maps, layer, head), expected, **bounds)


def test_colours_follow_the_weights_on_one_scale_or_on_each_heads_own():
    maps = maps_of(1, 2, 3, 3) * np.array([1, 0.1]).reshape(1, 2, 1, 1)
    shared, own = draw(maps), draw(maps, own_scale=True)
    assert (shared.data[0].zmin, shared.data[0].zmax) == (0, 1)
    np.testing.assert_allclose(shared.data[0].z[:, 3:], maps[0, 1], atol=STEP)
    assert own.data[0].z[:, :3].max() == own.data[0].z[:, 3:].max() == 1
    assert "own scale" in own.layout.title.subtitle.text
    assert shared.layout.title.subtitle.text is None


def test_hover_names_layer_head_query_and_key():
    figure = draw(maps_of(2, 2, 2, 3), query_axis="Output", key_axis="Source", queries=["<s>", "▁a"])
    (layer, query), (head, key), _ = figure.data[0].customdata[2][4]
    assert (layer, query, head, key) == ("Layer 2", f"1: <b>{literal('<s>')}</b>", "head 2", "2: <b>k1</b>")
    assert "rounded" in figure.data[0].hovertemplate
    assert "Output %{customdata[0][1]}<br>Source %{customdata[1][1]}" in figure.data[0].hovertemplate


def test_masked_cells_hold_no_number_and_say_why():
    maps, allowed = maps_of(2, 2, 3, 3, causal=True), np.tri(3, dtype=bool)
    figure = draw(maps, allowed=allowed, mask_reason="comes <later>")
    drawn, closed = figure.data
    expected = np.kron(np.ones((2, 2)), ~allowed).astype(bool)
    np.testing.assert_array_equal(np.isnan(drawn.z), expected)
    np.testing.assert_array_equal(np.isfinite(closed.z), expected)
    assert literal("comes <later>") in closed.hovertemplate


def test_what_is_too_large_is_pooled_and_says_so():
    maps = maps_of(2, 2, 7, 5)
    figure = draw(maps, most_cells=4 * 4 * 3)
    assert figure.data[0].z.shape == (2 * 4, 2 * 3)
    expected = np.array([[maps[1, 0, r : r + 2, c : c + 2].max() for c in (0, 2, 4)] for r in (0, 2, 4, 6)])
    np.testing.assert_allclose(values(figure)[4:, :3], expected, atol=STEP)
    assert "largest of 2 × 2 weights" in figure.layout.title.subtitle.text
    assert figure.data[0].customdata[7][0][0][1] == "7 to 7: <b>q6</b> … <b>q6</b>"
    assert figure.data[0].customdata[0][1][1][1] == "3 to 4: <b>k2</b> … <b>k3</b>"


def test_a_long_name_is_cut_for_hover():
    pieces = ["a", "<" * 60, "c"]
    spec = charts.grid_spec(maps_of(1, 1, 3, 3), queries=pieces, keys=names("k", 3), allowed=None, title="Maps")
    meta = spec["layout"]["meta"]["grid"]
    assert meta["queries"][1] == "2: <b>" + "&#60;" * 47 + "…</b>"


def test_a_pooled_block_is_closed_only_if_all_of_it_is():
    maps = maps_of(1, 1, 4, 4, causal=True)
    figure = draw(maps, allowed=np.tri(4, dtype=bool), most_cells=4)
    np.testing.assert_array_equal(np.isnan(figure.data[0].z), [[False, True], [False, False]])


def test_a_tile_is_found_by_its_cell():
    maps = maps_of(2, 3, 4, 5)
    spec = charts.grid_spec(maps, queries=names("q", 4), keys=names("k", 5), allowed=None, title="Maps")
    found = [tile_at(spec, row, column) for row, column in ((0, 0), (3, 4), (4, 4), (7, 14), (0, 5))]
    assert found == [(0, 0), (0, 0), (1, 0), (1, 2), (0, 1)]


def test_the_chosen_head_is_framed_and_a_layer_alone_frames_its_row():
    def frame(chosen):
        shapes = [shape for shape in draw(maps_of(2, 3, 4, 5), chosen=chosen).layout.shapes if shape.type == "rect"]
        return [(shape.y0, shape.y1, shape.x0, shape.x1) for shape in shapes]

    assert frame((1, 2)) == [(3.5, 7.5, 9.5, 14.5)]
    assert frame((1, None)) == [(3.5, 7.5, -0.5, 14.5)]
    assert frame((None, None)) == []


@pytest.mark.parametrize(("shape", "most"), [((6, 8, 512, 512), 48_000), ((3, 4, 61, 61), 48_000)])
def test_a_grid_is_a_few_tens_of_kilobytes(shape, most):
    pieces = [f"▁piece{place}" for place in range(shape[2])]
    spec = charts.grid_spec(maps_of(*shape), queries=pieces, keys=pieces, allowed=None, title="Maps", most_cells=most)
    assert len(figure_json(spec)) < 80_000
    assert len(base64.b64decode(spec["layout"]["meta"]["grid"]["codes"])) <= most
    assert figure_json(spec).count("piece60") <= 2  # each piece is named once a side, not once a tile


def test_a_weight_that_is_no_number_is_left_blank_and_said():
    maps = maps_of(1, 2, 3, 3)
    maps[0, 1, 2, 0] = np.nan
    figure = draw(maps)
    assert np.isnan(figure.data[0].z[2, 3])
    assert np.isfinite(figure.data[0].z).sum() == 17
    assert "cells have no finite value" in figure.layout.title.subtitle.text


def test_an_empty_grid_has_nothing_to_draw():
    assert not charts.grid(np.zeros((0, 0, 0, 0)), queries=[], keys=[], allowed=None, title="Maps").data


def test_sizes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="labels"):
        charts.grid(maps_of(1, 1, 2, 2), queries=["a"], keys=["b", "c"], allowed=None, title="Maps")


def test_many_layers_are_not_squeezed():
    spec = charts.grid_spec(
        maps_of(28, 16, 6, 6), queries=names("q", 6), keys=names("k", 6), allowed=None, title="Maps"
    )
    assert spec["layout"]["meta"]["least_height"] >= 28 * 20
    assert spec["layout"]["height"] >= spec["layout"]["meta"]["least_height"]
