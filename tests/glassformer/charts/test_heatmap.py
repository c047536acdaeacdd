from inspect import Parameter, signature

import numpy as np
import plotly.graph_objects as go
import pytest

from glassformer import charts
from glassformer.charts.heatmap import LOG_FLOOR
from glassformer.charts.theme import literal

QUERIES = ["<s>", "▁a", "▁a"]
KEYS = ["▁x", "▁x", "</s>", "▁y"]


@pytest.fixture
def weights():
    values = np.random.default_rng(0).random((3, 4)).astype(np.float32)
    return values / values.sum(axis=1, keepdims=True)


def draw(weights, allowed=None, **options):
    return charts.heatmap(weights, queries=QUERIES, keys=KEYS, allowed=allowed, title="A map", **options)


def test_the_figure_holds_the_numbers_it_was_given(weights):
    figure = draw(weights)
    assert isinstance(figure, go.Figure)
    np.testing.assert_array_equal(figure.data[0].z, weights)
    assert (figure.data[0].zmin, figure.data[0].zmax) == (0, 1)


def test_row_0_is_on_top_and_every_place_is_in_view(weights):
    figure = draw(weights)
    assert tuple(figure.layout.yaxis.range) == (2.5, -0.5)
    assert tuple(figure.layout.xaxis.range) == (-0.5, 3.5)


def test_equal_pieces_stay_apart(weights):
    figure = draw(weights)
    assert list(figure.layout.xaxis.tickvals) == [0, 1, 2, 3]
    assert figure.layout.xaxis.ticktext[:2] == ("▁x", "▁x")
    assert figure.data[0].z.shape == (3, 4)


def test_hover_names_both_pieces_and_places(weights):
    figure = draw(weights, query_axis="Output", key_axis="Source")
    assert figure.data[0].customdata[0][2].tolist() == [f"1: <b>{literal('<s>')}</b>", f"3: <b>{literal('</s>')}</b>"]
    assert figure.data[0].hovertemplate.startswith("Output %{customdata[0]}<br>Source %{customdata[1]}")


def test_masked_cells_hold_no_number_and_say_why(weights):
    allowed = np.tril(np.ones((3, 4), dtype=bool))
    figure = draw(np.where(allowed, weights, 0), allowed=allowed, mask_reason="comes <later>", rows_sum_to_one=False)
    drawn, closed, hatching = figure.data
    np.testing.assert_array_equal(np.isnan(drawn.z), ~allowed)
    np.testing.assert_array_equal(np.isfinite(closed.z), ~allowed)
    assert literal("comes <later>") in closed.hovertemplate
    assert "%{z" not in closed.hovertemplate
    assert hatching.hoverinfo == "skip"


def test_the_hatching_covers_exactly_the_masked_cells(weights):
    allowed = np.array([[1, 0, 0, 1], [1, 0, 0, 1], [0, 1, 1, 0]], dtype=bool)
    outline = draw(weights, allowed=allowed, rows_sum_to_one=False).data[2]
    corners = np.stack([outline.x, outline.y], axis=1).reshape(-1, 6, 2)
    covered = np.zeros((3, 4), dtype=int)
    for left, top, right, bottom in ((*corner[0], *corner[2]) for corner in corners):
        rows, columns = (slice(round(top + 0.5), round(bottom + 0.5)), slice(round(left + 0.5), round(right + 0.5)))
        covered[rows, columns] += 1
    np.testing.assert_array_equal(covered, ~allowed)
    assert len(corners) == 3  # two equal rows share one rectangle


def test_an_open_cell_without_a_number_is_not_drawn_as_one(weights):
    weights[1, 2] = np.nan
    figure = draw(weights)
    assert np.isnan(figure.data[0].z[1, 2])
    assert "not a finite number" in figure.data[1].hovertemplate
    assert np.isfinite(figure.data[1].z).sum() == 1


def test_rows_that_do_not_sum_to_1_are_named(weights):
    weights[2] *= 0.5
    assert "3 (0.50)" in draw(weights).layout.title.subtitle.text
    assert draw(weights, rows_sum_to_one=False).layout.title.subtitle.text is None


def test_the_current_row_is_framed(weights):
    (frame,) = draw(weights, marked_row=1).layout.shapes
    assert (frame.y0, frame.y1, frame.x0, frame.x1) == (0.5, 1.5, -0.5, 3.5)
    assert not draw(weights, marked_row=7).layout.shapes


def test_a_cell_is_framed_beside_its_row(weights):
    row, cell = draw(weights, marked_row=1, marked_cell=(2, 3)).layout.shapes
    assert (row.y0, row.y1) == (0.5, 1.5)
    assert (cell.y0, cell.y1, cell.x0, cell.x1) == (1.5, 2.5, 2.5, 3.5)
    assert not draw(weights, marked_cell=(3, 0)).layout.shapes
    assert not draw(weights, marked_cell=(-1, 0)).layout.shapes


def test_hover_has_significant_digits(weights):
    assert "%{z:.4~g}" in draw(weights).data[0].hovertemplate


def test_logarithmic_colours_keep_the_weights_for_hover(weights):
    weights[0] = [0.6, 0.3999, 1e-4, 1e-7]
    weights[1] = [1, 0, 0, 0]
    figure = draw(weights, log=True)
    drawn = figure.data[0]
    np.testing.assert_allclose(drawn.z, np.log10(np.maximum(weights, LOG_FLOOR)), rtol=1e-6)
    assert (drawn.zmin, drawn.zmax) == (-4, 0)
    assert [[cell[2] for cell in row] for row in drawn.customdata] == weights.tolist()
    assert "%{customdata[2]:.4~g}" in drawn.hovertemplate
    assert list(drawn.colorbar.tickvals) == [-4, -3, -2, -1, 0]
    assert list(drawn.colorbar.ticktext) == ["≤ 0.0001", "0.001", "0.01", "0.1", "1"]
    assert drawn.colorbar.title.text == "weight, logarithmic"


def test_logarithmic_colours_end_at_the_maps_own_top(weights):
    drawn = draw(weights * 0.05, log=True, limits=None, rows_sum_to_one=False).data[0]
    assert drawn.zmax == pytest.approx(np.log10(weights.max() * 0.05))
    assert float(drawn.colorbar.ticktext[-1]) == pytest.approx(weights.max() * 0.05, rel=0.05)
    nothing = draw(weights * 0, log=True, limits=None, rows_sum_to_one=False).data[0]
    assert nothing.zmax > nothing.zmin


def test_logarithmic_colours_leave_closed_cells_closed(weights):
    allowed = np.tril(np.ones((3, 4), dtype=bool))
    drawn, closed, _ = draw(np.where(allowed, weights, -1), allowed=allowed, log=True, rows_sum_to_one=False).data
    np.testing.assert_array_equal(np.isnan(drawn.z), ~allowed)
    np.testing.assert_array_equal(closed.z[~allowed], 0)


def test_a_logarithm_of_a_negative_value_is_refused(weights):
    weights[1, 1] = -0.25
    with pytest.raises(ValueError, match=r"-0\.25: a logarithmic scale needs 0 or more"):
        draw(weights, log=True)


def test_own_limits_are_those_of_the_open_cells(weights):
    allowed = np.ones((3, 4), dtype=bool)
    allowed[0, 0] = False
    weights[0, 0] = -np.inf
    figure = draw(weights, allowed=allowed, limits=None, rows_sum_to_one=False)
    assert figure.data[0].zmin == pytest.approx(weights[allowed].min())
    assert figure.data[0].zmax == pytest.approx(weights[allowed].max())


def test_a_zoom_outlives_another_head_but_not_another_sentence(weights):
    one, two = draw(weights), draw(weights[::-1])
    assert one.layout.xaxis.uirevision == two.layout.xaxis.uirevision
    other = charts.heatmap(weights, queries=QUERIES, keys=["a", "b", "c", "d"], allowed=None, title="A map")
    assert other.layout.xaxis.uirevision != one.layout.xaxis.uirevision


def test_an_empty_map_has_nothing_to_draw():
    assert not charts.heatmap(np.zeros((0, 0)), queries=[], keys=[], allowed=None, title="A map").data


@pytest.mark.parametrize("options", [{"queries": QUERIES, "keys": KEYS[:2]}, {"queries": QUERIES[:1], "keys": KEYS}])
def test_sizes_that_do_not_fit_are_refused(weights, options):
    with pytest.raises(ValueError, match="one label for each"):
        charts.heatmap(weights, allowed=None, title="A map", **options)


@pytest.mark.parametrize("chart", [charts.heatmap_spec, charts.grid_spec, charts.attention_bar_spec])
def test_a_mask_is_never_forgotten(chart):
    assert signature(chart).parameters["allowed"].default is Parameter.empty


def test_each_row_may_have_its_own_reason(weights):
    allowed = np.tril(np.ones((3, 4), dtype=bool))
    allowed[2] = True
    figure = draw(weights, allowed=allowed, mask_reason=["later", "window", "none"])
    closed = [trace for trace in figure.data[1:] if trace.type == "heatmap"]
    assert len(closed) == 2  # no cell of the third row is closed
    for row, (trace, why) in enumerate(zip(closed, ("later", "window"), strict=True)):
        assert f"<i>{why}</i>" in trace.hovertemplate
        np.testing.assert_array_equal(np.isfinite(trace.z), ~allowed & (np.arange(3) == row)[:, None])


def test_a_mask_of_another_size_is_refused(weights):
    with pytest.raises(ValueError, match="same size"):
        draw(weights, allowed=np.ones((4, 4), dtype=bool))


def test_the_input_is_left_alone(weights):
    before = weights.copy()
    draw(weights, allowed=np.tril(np.ones((3, 4), dtype=bool)))
    np.testing.assert_array_equal(weights, before)


def test_a_large_map_has_all_its_cells_in_three_digits_and_says_so():
    values = np.random.default_rng(0).dirichlet(np.ones(300), size=300)
    figure = charts.heatmap(values, queries=["q"] * 300, keys=["k"] * 300, allowed=None, title="t")
    np.testing.assert_allclose(figure.data[0].z, values, rtol=6e-4, atol=1e-7)
    assert figure.layout.title.subtitle.text == "Numbers are rounded to three significant digits"
    assert ":.3~g" in figure.data[0].hovertemplate
    assert figure.data[0].name == "weight (3 digits)"  # in a downloaded table too


def test_a_large_map_that_loses_nothing_says_nothing():
    spec = charts.heatmap_spec(np.eye(300), queries=["q"] * 300, keys=["k"] * 300, allowed=None, title="t")
    np.testing.assert_array_equal(spec["data"][0]["z"], np.eye(300))
    assert "subtitle" not in spec["layout"]["title"]
    assert spec["data"][0]["name"] == "weight"


def test_a_large_map_that_half_precision_cannot_hold_stays_as_it_is():
    values = np.full((300, 300), 1e6, dtype=np.float32)
    spec = charts.heatmap_spec(
        values, queries=["q"] * 300, keys=["k"] * 300, allowed=None, title="t", limits=None, rows_sum_to_one=False
    )
    np.testing.assert_array_equal(spec["data"][0]["z"], values)
    assert "subtitle" not in spec["layout"]["title"]
