"""In the picture of all heads each tile holds its head's weights, closed where its layer's mask closes."""

import base64
from functools import partial

import numpy as np
import pytest

from glassformer import charts
from glassformer.charts.grid import tile_at
from glassformer.charts.heatmap import LOG_FLOOR, heads_columns, part_map
from glassformer.charts.theme import literal
from glassformer.components.plotly_component import figure_json

STEP = 1 / 250
LAYERED = np.stack([np.tri(4, dtype=bool), np.tri(4, dtype=bool) & ~np.tri(4, k=-2, dtype=bool)])


def maps_of(n_layers, n_heads, n_queries, n_keys, *, causal=False):
    scores = np.random.default_rng(3).normal(scale=2, size=(n_layers, n_heads, n_queries, n_keys))
    weights = np.exp(scores) * (np.tri(n_queries, n_keys) if causal else 1)
    return (weights / weights.sum(axis=-1, keepdims=True)).astype(np.float32)


def draw(maps, *, chart=charts.grid, **options):
    queries, keys = ([f"{letter}{place}" for place in range(maps.shape[axis])] for axis, letter in ((2, "q"), (3, "k")))
    return chart(maps, **{"queries": queries, "keys": keys, "title": "Maps", "allowed": None} | options)


spec_of = partial(draw, chart=charts.grid_spec)


def values(figure):
    """The number that each cell tells on hover, [row, column]."""
    return np.array([[cell[2] for cell in row] for row in figure.data[0].customdata], dtype=float)


def tiled(maps):
    """Maps as they are drawn: layers below each other, heads beside each other."""
    n_layers, n_heads, n_queries, n_keys = maps.shape
    return maps.transpose(0, 2, 1, 3).reshape(n_layers * n_queries, n_heads * n_keys)


@pytest.mark.parametrize(("own_scale", "log"), [(False, False), (True, False), (False, True), (True, True)])
def test_each_tile_holds_its_heads_weights_to_a_step_of_the_scale(own_scale, log):
    maps = maps_of(2, 3, 4, 5)
    figure = draw(maps, own_scale=own_scale, log=log)
    found = values(figure)
    assert not own_scale or [figure.data[0].z[:, head : head + 5].max() for head in (0, 5, 10)] == [1, 1, 1]
    tops = tiled(np.broadcast_to(maps.max(axis=(2, 3), keepdims=True), maps.shape)) if own_scale else 1
    if log:
        np.testing.assert_allclose(found, np.maximum(tiled(maps), tops * LOG_FLOOR), rtol=0.02)
    else:
        assert (np.abs(found - tiled(maps)) <= tops * STEP / 2 + 1e-6).all()


@pytest.mark.parametrize("allowed", [np.tri(4, dtype=bool), LAYERED], ids=["one mask", "a mask for each layer"])
def test_masked_cells_hold_no_number_and_say_why(allowed):
    maps = maps_of(2, 3, 4, 4, causal=True)
    figure = draw(maps, allowed=allowed, mask_reason="comes <later>")
    each = np.broadcast_to(allowed if allowed.ndim == 2 else allowed[:, None], maps.shape)
    np.testing.assert_array_equal(np.isnan(values(figure)), ~tiled(each))
    np.testing.assert_array_equal(np.isfinite(np.array(figure.data[1].z, dtype=float)), ~tiled(each))
    assert literal("comes <later>") in figure.data[1].hovertemplate
    heads = {"layers": [1, 2], "heads": [1, 2, 3], "queries": list("abcd"), "keys": list("abcd")}
    table = heads_columns(maps, allowed=each, **heads)
    np.testing.assert_array_equal(np.reshape(table["weight"], maps.shape), np.where(each, maps, np.nan))
    row = {str(name): values[39] for name, values in table.items()}
    assert row.items() >= {"layer": 1, "head": 3, "query number": 2, "query": "b", "key number": 4, "key": "d"}.items()
    with pytest.raises(ValueError, match="mask"):
        draw(maps, allowed=LAYERED[:, :3])


def test_what_is_too_large_is_pooled_and_says_so_and_a_block_is_closed_only_if_all_of_it_is():
    maps = maps_of(2, 2, 7, 5)
    figure = draw(maps, most_cells=4 * 4 * 3)
    expected = np.array([[maps[1, 0, r : r + 2, c : c + 2].max() for c in (0, 2, 4)] for r in (0, 2, 4, 6)])
    np.testing.assert_allclose(values(figure)[4:, :3], expected, atol=STEP)
    assert "largest of 2 × 2 weights" in figure.layout.title.subtitle.text
    assert figure.data[0].customdata[7][0][0][1] == "7 to 7: <b>q6</b> … <b>q6</b>"
    (layer, _), (head, key), _ = draw(maps).data[0].customdata[7][6]
    assert (layer, head, key) == ("Layer 2", "head 2", "2: <b>k1</b>")
    assert figure.data[0].customdata[0][1][1][1] == "3 to 4: <b>k2</b> … <b>k3</b>"
    closed = draw(maps_of(2, 1, 4, 4, causal=True), allowed=LAYERED, most_cells=8).data[1].z
    assert np.isfinite(np.array(closed)).tolist() == [[False, True], [False, False], [False, True], [False, False]]


def test_a_tile_is_found_by_its_cell_and_the_chosen_head_or_layer_is_framed():
    maps = maps_of(2, 3, 4, 5)
    spec = spec_of(maps)
    found = [tile_at(spec, row, column) for row, column in ((0, 0), (3, 4), (4, 4), (7, 14), (0, 5))]
    assert found == [(0, 0), (0, 0), (1, 0), (1, 2), (0, 1)]

    def frame(chosen):
        shapes = [shape for shape in draw(maps, chosen=chosen).layout.shapes if shape.type == "rect"]
        return [(shape.y0, shape.y1, shape.x0, shape.x1) for shape in shapes]

    assert frame((1, 2)) == [(3.5, 7.5, 9.5, 14.5)]
    assert frame((1, None)) == [(3.5, 7.5, -0.5, 14.5)]
    assert frame((None, None)) == []


def test_a_grid_is_a_few_tens_of_kilobytes_not_squeezed_and_leaves_blank_what_is_no_number():
    pieces = [f"▁token{place}" for place in range(256)]
    spec = spec_of(np.tile(maps_of(1, 1, 256, 256), (6, 8, 1, 1)), queries=pieces, keys=pieces, most_cells=48_000)
    assert len(figure_json(spec)) < 80_000
    assert len(base64.b64decode(spec["layout"]["meta"]["grid"]["codes"])) <= 48_000
    assert figure_json(spec).count("token60") <= 2  # each piece is named once a side, not once a tile
    long = spec_of(maps_of(1, 1, 3, 3), queries=["a", "<" * 60, "c"])
    assert long["layout"]["meta"]["grid"]["queries"][1] == "2: <b>" + "&#60;" * 47 + "…</b>"
    layout = spec_of(maps_of(28, 16, 6, 6))["layout"]
    assert layout["height"] >= layout["meta"]["least_height"] >= 28 * 20
    maps = maps_of(1, 2, 3, 3)
    maps[0, 1, 2, 0] = np.nan
    figure = draw(maps)
    assert np.argwhere(np.isnan(figure.data[0].z)).tolist() == [[2, 3]]
    assert "cells have no finite value" in figure.layout.title.subtitle.text


def test_a_line_parts_the_prompt_from_the_output_through_all_tiles():
    spec = charts.heatmap_spec(np.tri(5) / 5, queries="abcde", keys="abcde", title="t", allowed=np.tri(5, dtype=bool))
    part_map(spec, row=2, column=3)
    ends = [(shape["x0"], shape["x1"], shape["y0"], shape["y1"]) for shape in spec["layout"]["shapes"]]
    assert {(0, 1, 1.5, 1.5), (2.5, 2.5, 0, 1)} <= {*ends}
    assert [note["text"] for note in spec["layout"]["annotations"]] == ["prompt", "output"] * 2
    plain = charts.heatmap_spec(np.tri(2), queries="ab", keys="ab", allowed=None, title="t")
    part_map(plain, row=0, column=None)  # a prompt of one piece, and no piece of the output read
    assert plain["layout"]["annotations"] == plain["layout"]["shapes"] == []
    dotted = [shape for shape in draw(maps_of(2, 3, 4, 4), prompt=1).layout.shapes if shape.line.dash == "dot"]
    assert [shape.y0 for shape in dotted[:2]] == [0.5, 4.5]
    assert [shape.x0 for shape in dotted[2:]] == [1.5, 5.5, 9.5]
