"""Maps say which heads share keys and values, which layer closes what, and where a prompt ends."""

import numpy as np
import pytest

from glassformer import charts
from glassformer.charts.prompt import part_map
from glassformer.charts.tables import heads_columns
from glassformer.charts.theme import DARK_COLORS
from glassformer.components.plotly_component import figure_json
from tests.glassformer.charts.test_grid import draw, maps_of, tile
from tests.glassformer.charts.test_positions import colours

LAYERED = np.stack([np.tri(4, dtype=bool), np.tri(4, dtype=bool) & ~np.tri(4, k=-2, dtype=bool)])


def lines(layout, **ends):
    return [shape for shape in layout["shapes"] if all(shape.get(name) == value for name, value in ends.items())]


def test_each_layer_of_a_grid_has_its_own_mask():
    maps = maps_of(2, 3, 4, 4, causal=True)
    figure = draw(maps, allowed=LAYERED)
    closed = np.array(figure.data[1].z, dtype=float)
    for layer in range(2):
        for head in range(3):
            cells = closed[layer * 4 : layer * 4 + 4, head * 4 : head * 4 + 4]
            assert np.array_equal(np.isfinite(cells), ~LAYERED[layer])
            shown = tile(figure, maps, layer, head)
            np.testing.assert_allclose(shown[LAYERED[layer]], maps[layer, head][LAYERED[layer]], atol=1 / 250)
            assert np.isnan(shown[~LAYERED[layer]]).all()
    with pytest.raises(ValueError, match="mask"):
        draw(maps, allowed=LAYERED[:, :3])


def test_blocks_of_a_layer_are_closed_by_its_own_mask():
    maps = maps_of(2, 1, 4, 4, causal=True)
    spec = charts.grid_spec(maps, queries="abcd", keys="abcd", title="t", allowed=LAYERED, most_cells=8)
    assert spec["layout"]["meta"]["grid"]["block"] == 2
    closed = np.array(
        charts.grid(maps, queries="abcd", keys="abcd", title="t", allowed=LAYERED, most_cells=8).data[1].z
    )
    assert np.isfinite(closed).tolist() == [[False, True], [False, False], [False, True], [False, False]]


def test_a_table_of_heads_says_what_each_layer_closes():
    maps = maps_of(2, 3, 4, 4, causal=True)
    table = heads_columns(
        maps, layers=[1, 2], heads=[1, 2, 3], queries=list("abcd"), keys=list("abcd"), allowed=LAYERED[:, None]
    )
    there = np.isfinite(np.asarray(table["weight"])).reshape(maps.shape)
    assert np.array_equal(there, np.broadcast_to(LAYERED[:, None], maps.shape))


def test_heads_that_share_keys_and_values_stand_under_a_bracket():
    maps = maps_of(2, 6, 3, 3)
    layout = draw(maps, group=3).layout.to_plotly_json()
    assert [note["text"] for note in layout["annotations"]] == ["K, V 1", "K, V 2"]
    assert [note["x"] for note in layout["annotations"]] == [4.0, 13.0]  # of 18 columns
    (between,) = lines(layout, x0=8.5, x1=8.5, y0=0, y1=1)[-1:]
    assert between["line"]["width"] == 3
    assert "annotations" not in draw(maps).layout.to_plotly_json()
    named = charts.grid_spec(maps, queries="abc", keys="abc", allowed=None, title="t", group=3)["layout"]["meta"][
        "grid"
    ]["heads"]
    assert named[3] == "head 4 (key-value head 2)"
    assert figure_json(charts.grid_spec(maps, queries="abc", keys="abc", allowed=None, title="t", group=3))


def test_a_line_parts_the_prompt_from_the_output():
    spec = charts.heatmap_spec(np.tri(5) / 5, queries="abcde", keys="abcde", title="t", allowed=np.tri(5, dtype=bool))
    before = spec["layout"]["margin"]["t"]
    part_map(spec, row=2, column=3)
    layout = spec["layout"]
    assert lines(layout, y0=1.5, y1=1.5, x0=0, x1=1)
    assert lines(layout, x0=2.5, x1=2.5, y0=0, y1=1)
    assert [note["text"] for note in layout["annotations"]] == ["prompt", "output"] * 2
    assert layout["margin"]["t"] > before
    assert colours(spec) <= DARK_COLORS.keys()
    plain = charts.heatmap_spec(np.tri(2), queries="ab", keys="ab", allowed=None, title="t")
    part_map(plain, row=0, column=None)  # a prompt of one piece, and no piece of the output read
    assert plain["layout"]["annotations"] == plain["layout"]["shapes"] == []


def test_the_same_lines_go_through_all_tiles():
    layout = draw(maps_of(2, 3, 4, 4), prompt=1).layout.to_plotly_json()
    dotted = [shape for shape in layout["shapes"] if shape["line"].get("dash") == "dot"]
    assert [shape["y0"] for shape in dotted[:2]] == [0.5, 4.5]
    assert [shape["x0"] for shape in dotted[2:]] == [1.5, 5.5, 9.5]
    assert len(dotted) == 5
