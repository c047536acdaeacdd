"""A map of weights shows each number where it belongs, and a closed cell as closed, with the reason."""

from inspect import Parameter, signature

import hypothesis.extra.numpy as arrays
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer import charts
from glassformer.charts.grid import follow_in_tiles
from glassformer.charts.heatmap import HALF_DIGITS, LOG_FLOOR, THREE_BYTE_DIGITS, follow_steps, map_columns, shortened
from glassformer.charts.theme import literal
from tests.pages.reading import three_byte_numbers

QUERIES = ["<s>", "▁a", "▁a"]
KEYS = ["▁x", "▁x", "</s>", "▁y"]


@pytest.fixture
def weights():
    values = np.random.default_rng(0).random((3, 4)).astype(np.float32)
    return values / values.sum(axis=1, keepdims=True)


def draw(weights, allowed=None, **options):
    return charts.heatmap(weights, queries=QUERIES, keys=KEYS, allowed=allowed, title="A map", **options)


def test_each_number_is_at_its_place_with_row_0_on_top_and_both_pieces_on_hover(weights):
    drawn = (figure := draw(weights)).data[0]
    np.testing.assert_array_equal(drawn.z, weights)
    assert (drawn.zmin, drawn.zmax) == (0, 1)
    assert tuple(figure.layout.yaxis.range) == (2.5, -0.5)
    assert tuple(figure.layout.xaxis.range) == (-0.5, 3.5)
    assert list(figure.layout.xaxis.tickvals) == [0, 1, 2, 3]  # equal pieces stay apart
    assert [text[0] for text in drawn.customdata[0][2]] == ["1", "3"]


@pytest.mark.parametrize("log", [False, True])
def test_masked_cells_hold_no_number_are_hatched_and_say_why(weights, log):
    allowed = np.array([[1, 0, 0, 1], [1, 0, 0, 1], [0, 1, 1, 0]], dtype=bool)
    given_ = np.where(allowed, weights, -1)
    before = given_.copy()
    figure = draw(given_, allowed=allowed, mask_reason="comes <later>", rows_sum_to_one=False, log=log)
    np.testing.assert_array_equal(given_, before)
    drawn, closed, outline = figure.data
    np.testing.assert_array_equal(np.isnan(drawn.z), ~allowed)
    np.testing.assert_array_equal(np.isfinite(closed.z), ~allowed)
    own = draw(given_, allowed=allowed, limits=None, rows_sum_to_one=False).data[0]
    assert (own.zmin, own.zmax) == pytest.approx((weights[allowed].min(), weights[allowed].max()))
    assert literal("comes <later>") in closed.hovertemplate
    assert "%{z" not in closed.hovertemplate
    corners = np.stack([outline.x, outline.y], axis=1).reshape(-1, 6, 2)
    covered = np.zeros((3, 4), dtype=int)
    for left, top, right, bottom in np.rint(corners[:, [0, 2]].reshape(-1, 4) + 0.5).astype(int):
        covered[top:bottom, left:right] += 1
    np.testing.assert_array_equal(covered, ~allowed)
    assert len(corners) == 3  # two equal rows share one rectangle


def test_each_row_may_have_its_own_reason_and_an_open_cell_without_a_number_is_not_drawn_as_one(weights):
    allowed = np.tri(3, 4, dtype=bool)
    allowed[2] = True
    reasons = ["later", "window", "none"]
    figure = draw(weights, allowed=allowed, mask_reason=reasons)
    closed = [trace for trace in figure.data[1:] if trace.type == "heatmap"]
    for row, (trace, why) in enumerate(zip(closed, reasons[:2], strict=True)):
        assert f"<i>{why}</i>" in trace.hovertemplate
        np.testing.assert_array_equal(np.isfinite(trace.z), ~allowed & (np.arange(3) == row)[:, None])
    table = map_columns(weights, queries=QUERIES, keys=KEYS, allowed=allowed, mask_reason=reasons)
    assert [str(note) for note in table["note"]] == ["", *["later"] * 3, "", "", *["window"] * 2, *[""] * 4]
    weights[1, 2] = np.nan
    drawn, missing = draw(weights).data
    assert np.argwhere(np.isnan(drawn.z)).tolist() == np.argwhere(np.isfinite(missing.z)).tolist() == [[1, 2]]
    assert "not a finite number" in missing.hovertemplate
    weights[2] *= 0.5  # rows that do not sum to 1 are named
    assert "3 (0.50)" in draw(weights).layout.title.subtitle.text


def test_the_current_row_and_a_cell_are_framed_and_a_zoom_is_of_one_sentence(weights):
    row, cell = draw(weights, marked_row=1, marked_cell=(2, 3)).layout.shapes
    assert (row.y0, row.y1, row.x0, row.x1) == (0.5, 1.5, -0.5, 3.5)
    assert (cell.y0, cell.y1, cell.x0, cell.x1) == (1.5, 2.5, 2.5, 3.5)
    assert not draw(weights, marked_row=7, marked_cell=(-1, 0)).layout.shapes
    one, two = draw(weights), draw(weights[::-1])  # a zoom outlives another head but not another sentence
    assert one.layout.xaxis.uirevision == two.layout.xaxis.uirevision
    other = charts.heatmap(weights, queries=QUERIES, keys=list("abcd"), allowed=None, title="A map")
    assert other.layout.xaxis.uirevision != one.layout.xaxis.uirevision


def test_logarithmic_colours_keep_the_weights_for_hover(weights):
    weights[0] = [0.6, 0.3999, 1e-4, 1e-7]
    drawn = draw(weights, log=True).data[0]
    np.testing.assert_allclose(drawn.z, np.log10(np.maximum(weights, LOG_FLOOR)), rtol=1e-6)
    assert (drawn.zmin, drawn.zmax) == (-4, 0)
    assert [[cell[2] for cell in row] for row in drawn.customdata] == weights.tolist()
    assert drawn.colorbar.ticktext[0] == "≤ 0.0001"
    nothing = draw(weights * 0, log=True, limits=None, rows_sum_to_one=False).data[0]
    assert nothing.zmax > nothing.zmin
    weights[1, 1] = -0.25
    with pytest.raises(ValueError, match=r"-0\.25: a logarithmic scale needs 0 or more"):
        draw(weights, log=True)


def test_sizes_that_do_not_fit_are_refused_and_a_mask_is_never_forgotten(weights):
    with pytest.raises(ValueError, match="one label for each"):
        charts.heatmap(weights, allowed=None, title="A map", queries=QUERIES, keys=KEYS[:2])
    with pytest.raises(ValueError, match="same size"):
        draw(weights, allowed=np.ones((4, 4), dtype=bool))
    for chart in (charts.heatmap_spec, charts.grid_spec):
        assert signature(chart).parameters["allowed"].default is Parameter.empty
    assert not charts.heatmap(np.zeros((0, 0)), queries=[], keys=[], allowed=None, title="A map").data


@given(arrays.arrays(np.float32, (8,), elements=st.floats(width=32, allow_subnormal=False)))
def test_five_digits_stay_and_the_lowest_byte_goes(odd):
    values = np.tile(odd, (65, 8))
    sent, _ = shortened(values)
    finite = np.isfinite(values)
    np.testing.assert_allclose(sent[finite], values[finite], rtol=2**-16)
    np.testing.assert_array_equal(sent[~finite], values[~finite])
    largest = np.abs(values) > 3e38  # those might round up to infinity, and may stay whole
    assert not (sent[finite & ~largest].view(np.uint32) & 0xFF).any()


@pytest.mark.parametrize(
    ("side", "left"), [(64, None), (65, THREE_BYTE_DIGITS), (256, THREE_BYTE_DIGITS), (257, HALF_DIGITS)]
)
def test_a_large_map_says_how_many_digits_are_left(side, left):
    values = np.random.default_rng(1).dirichlet(np.ones(side), size=side).astype(np.float32)
    sent, digits = shortened(values)
    assert digits == left
    np.testing.assert_allclose(sent, values, rtol=0 if left is None else 0.5 * 10.0 ** (1 - left), atol=1e-7)
    assert shortened(np.eye(side, dtype=np.float32))[1] is None  # which loses nothing
    if left == THREE_BYTE_DIGITS:
        raw = sent.view(np.uint8).reshape(-1, 4)[:, 1:].tobytes()
        np.testing.assert_array_equal(three_byte_numbers(raw), sent.ravel())


def test_a_map_in_three_digits_says_so_and_what_half_precision_cannot_hold_stays_as_it_is():
    sides = {"queries": ["q"] * 300, "keys": ["k"] * 300, "allowed": None, "title": "t"}
    figure = charts.heatmap(np.random.default_rng(0).dirichlet(np.ones(300), size=300), **sides)
    assert figure.layout.title.subtitle.text == "Numbers are rounded to three significant digits"
    assert ":.3~g" in figure.data[0].hovertemplate
    assert figure.data[0].name == "weight (3 digits)"  # in a downloaded table too
    whole = charts.heatmap(np.full((300, 300), 1e6, np.float32), **sides, limits=None, rows_sum_to_one=False)
    assert (whole.data[0].z == 1e6).all()
    assert not whole.layout.title.subtitle.text


def followed(rows, n_rows):
    sides = {"queries": list(map(str, range(n_rows))), "keys": "abcde", "allowed": None, "title": ""}
    spec = charts.heatmap_spec(np.ones((n_rows, 5)), **sides)
    follow_steps(spec, rows, n_rows=n_rows, n_columns=5)
    return spec["layout"]["meta"]["follow"]


def test_a_row_is_framed_over_its_whole_width_thin_ones_thinly_and_thinner_ones_are_pointed_at():
    found = followed([0, 0, None, 2], 3)
    assert (found["rows"], found["starts"]) == ([0, 0, None, 2], [0])
    assert (found["marks"][0]["x0"], found["marks"][0]["x1"]) == (-0.5, 4.5)
    for n_rows, width in ((64, 2), (65, 1), (128, 1)):
        assert [mark["line"]["width"] for mark in followed(range(n_rows), n_rows)["marks"]] == [width]
    pointers = followed(range(129), 129)["marks"]
    assert [(mark["type"], mark["xanchor"]) for mark in pointers] == [("path", 0), ("path", 1)]
    with pytest.raises(ValueError, match="Row 3 of a map with 3"):
        followed([0, 3], 3)


@pytest.mark.parametrize(
    ("most", "rows", "starts", "end"), [(10_000, [0, 1, 2, 3, 4], [0, 5], 17.5), (60, [0, 0, 1, 1, 2], [0, 3], 8.5)]
)
def test_every_tile_has_its_mark_and_a_block_stands_for_all_its_queries(most, rows, starts, end):
    sides = {"queries": "abcde", "keys": "abcdef", "allowed": None, "title": ""}
    spec = charts.grid_spec(np.ones((2, 3, 5, 6)), **sides, most_cells=most)
    follow_in_tiles(spec, range(5))
    found = spec["layout"]["meta"]["follow"]
    assert (found["rows"], found["starts"], [mark["x1"] for mark in found["marks"]]) == (rows, starts, [end])
