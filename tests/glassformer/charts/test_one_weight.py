"""Charts of one weight, of tiles and of masks show each number, who may attend to whom, and why others may not."""

import numpy as np
import pytest

from glassformer import charts
from glassformer.charts.grammar import upright
from glassformer.charts.marks import Axis
from glassformer.charts.one_weight import BlockRow
from glassformer.charts.theme import figure_in
from glassformer.masks.mask_pictures import movement

KEYS = ["▁a", "b", "▁a"]
ROW = {"key_axis": "Key", "side": "source", "title": "t", "allowed": np.ones(5, bool)}


def key_row(values=(1.5, -2.0, 0.25), **options):
    given = {"title": "Scores", "value_name": "score", "chosen": 1}
    return charts.key_row_spec(np.array(values), KEYS, **given | options)


def test_q_and_k_share_a_scale_and_the_bars_are_their_products():
    q, k = np.array([1.0, -2.0, 0.5]), np.array([3.0, 4.0, -8.0])
    figure = charts.query_times_key(q, k, title="q and k", query="a", key="b")
    strips, bars = figure.data
    assert np.array_equal(strips.z, [q, k])
    assert (strips.zmin, strips.zmax) == (-8, 8)
    assert bars.y.tolist() == [3, -8, -4]
    assert bars.x.tolist() == [0, 1, 2]  # dimensions are counted from 0, as on every page
    assert bars.marker.color[0] != bars.marker.color[1] == bars.marker.color[2]
    assert strips.customdata[0, 1].tolist() == ["q of a", "dimension 1"]
    assert figure.layout.meta["table"]["rows"] == [[0, 1, 3, 3], [1, -2, 4, -8], [2, 0.5, -8, -4]]
    with pytest.raises(ValueError, match="one length"):
        charts.query_times_key(q, k[:2], title="", query="", key="")


def test_a_row_over_the_keys_shows_each_number_and_frames_the_chosen_key():
    spec = key_row(before=("q · k", np.array([3.0, -4.0, 0.5])))
    pale, dark, whole = spec["data"]
    assert (pale["y"].tolist(), dark["y"].tolist()) == ([3, -4, 0.5], [1.5, -2, 0.25])
    assert pale["width"] > dark["width"]
    assert whole["customdata"] == [0, 1, 2]
    assert whole["base"] == spec["layout"]["yaxis"]["range"][0] < -4
    assert whole["hovertext"][1] == "2: <b>b</b><br>q · k <b>−4</b><br>score <b>−2</b>"
    frame = spec["layout"]["shapes"][0]
    assert frame["x0"] < 1 < frame["x1"]
    assert spec["layout"]["meta"]["ticks"]["xaxis"]["labels"] == ["▁a", "<b>b</b>", "▁a"]
    rows = spec["layout"]["meta"]["table"]["rows"]
    assert rows == [[1, "▁a", 3, 1.5, ""], [2, "b", -4, -2, ""], [3, "▁a", 0.5, 0.25, ""]]


def test_closed_keys_are_hatched_and_say_why_and_their_number_is_nowhere():
    spec = key_row((0.25, 77.0, 0.75), closed=["", "−∞, padding", ""], limits=(0, 1))
    bars, hatched, whole = spec["data"]
    assert np.isnan(bars["y"][1])
    assert (hatched["x"].tolist(), hatched["marker"]["pattern"]["shape"]) == ([1], "/")
    assert whole["hovertext"][1] == "2: <b>b</b><br><i>−∞, padding</i>"
    assert spec["layout"]["meta"]["table"]["rows"][1] == [2, "b", None, "−∞, padding"]
    assert "77" not in str(whole["hovertext"])
    assert spec["layout"]["yaxis"]["range"] == [0, 1]
    with pytest.raises(ValueError, match="for 3 keys"):
        key_row((1.0, 2.0))


def test_the_tile_that_is_read_is_framed_later_ones_are_covered_and_no_open_key_is_no_largest_score():
    figure = charts.tile_scores(np.arange(5.0), list("abcde"), [(2, 1.0), (4, 3.0)], size=2, **ROW)
    edges = [(shape.type, shape.x0, shape.x1) for shape in figure.layout.shapes]
    assert edges.count(("line", 1.5, 1.5)) == edges.count(("line", 3.5, 3.5)) == 1
    assert [edge for edge in edges if edge[0] == "rect"] == [("rect", 3.5, 4.5), ("rect", 1.5, 3.5)]
    line = next(trace for trace in figure.data if trace.name == "m")
    assert (list(line.x), list(line.y)) == ([-0.5, 1.5, 1.5, 3.5], [1, 1, 3, 3])
    scores, peaks = np.array([-np.inf, -np.inf, 2.0]), [(1, -np.inf), (2, -np.inf), (3, 2.0)]
    figure = charts.tile_scores(scores, list("abc"), peaks, size=1, **ROW | {"allowed": scores > -1})
    assert list(next(trace for trace in figure.data if trace.name == "m").y) == [None] * 4 + [2, 2]


def test_blocks_hold_pieces_and_the_newest_stands_out():
    rows = [BlockRow("one", 0, ["a", "<b>"]), BlockRow("two", 2, ["c"], newest=0)]
    figure = charts.cache_blocks(rows, 2, title="t")
    assert figure.data[0].z.tolist() == [[1, 1], [2, 0]]
    assert [note.text for note in figure.layout.annotations] == ["a", "&#60;b&#62;", "c"]
    assert "token 3" in figure.data[0].hovertext[1][0]
    assert "empty" in figure.data[0].hovertext[1][1]
    assert not charts.cache_blocks([BlockRow("one", 0, ["a"])], 64, title="t").layout.annotations


MASK = np.array([[True, False, False], [True, True, False], [True, True, False]])
FUTURE = np.triu(np.ones((3, 3), bool), 1) & ~np.array([False, False, True])
PADDING = ~MASK & ~FUTURE


def draw_map(mask=MASK, **changes):
    given = {"reasons": {"future": FUTURE, "padding": PADDING}, "title": "A mask", "axes": ("Query", "Key")}
    given |= {"queries": ["q"] * len(mask), "keys": ["<s>", *["k"] * (len(mask) - 1)], "cell": (0, 2)}
    return charts.mask_map(mask, **(given | {"colour": "target", "convention": "bool"} | changes))


def cells_of(trace):
    return np.isfinite(np.array(trace.z, dtype=float))


@pytest.mark.parametrize(
    ("convention", "words", "opened_says", "closed_says"),
    [("bool", ("T", "F"), "True</b>: may attend", "False</b>: <i>"), ("additive", ("0", "−∞"), "0", "−∞ is added")],
)
def test_cells_are_drawn_where_they_are_written_in_their_convention_and_say_why(
    convention, words, opened_says, closed_says
):
    figure = draw_map(convention=convention, cell=(1, 2))
    opened, future, padding = (trace for trace in figure.data if trace.type == "heatmap")
    np.testing.assert_array_equal(cells_of(opened), MASK)
    np.testing.assert_array_equal(cells_of(future), FUTURE)
    np.testing.assert_array_equal(cells_of(padding), PADDING)
    assert opened_says in opened.hovertemplate
    for closed, why in ((future, "future"), (padding, "padding")):
        assert (closed_says in closed.hovertemplate, why in closed.hovertemplate) == (True, True)
    (written,) = [trace.text for trace in figure.data if trace.text is not None]
    assert [list(row) for row in written] == [[words[0] if may else words[1] for may in row] for row in MASK]
    frame = figure.layout.shapes[0]
    assert (frame.x0, frame.x1, frame.y0, frame.y1) == (1.5, 2.5, 0.5, 1.5)


def test_cells_that_a_change_opened_have_a_ring_and_every_closed_cell_needs_one_reason():
    changed = np.zeros((3, 3), bool)
    plain = draw_map()
    assert len(draw_map(changed=changed).data) == len(plain.data)
    changed[0, 1] = changed[2, 0] = True
    (rings,) = draw_map(changed=changed).data[len(plain.data) :]
    assert set(zip(rings.x, rings.y, strict=True)) == {(1, 0), (0, 2)}
    for reasons in ({"future": FUTURE}, {"future": ~MASK, "padding": PADDING}, {"x": MASK}):
        with pytest.raises(ValueError, match="one reason"):
            draw_map(reasons=reasons)


SCORES = np.array([-1.5, 2.0, 0.25], dtype=np.float32)
ALLOWED = np.array([True, True, False])
WEIGHTS = np.array([0.03, 0.97, 0.0], dtype=np.float32)


def draw_row(allowed=ALLOWED, weights=WEIGHTS, **changes):
    given = {"keys": ["a", "b", "<pad>"], "title": "Row", "key_axis": "Key", "key": 1, "colour": "source"}
    return charts.masked_row(SCORES, allowed, weights, **(given | {"mask_reasons": ["", "", "padding"]} | changes))


def test_a_row_is_drawn_before_and_after_the_mask_and_a_closed_key_that_weighs_something_has_a_bar():
    figure = draw_row()
    before, after, weights, closed_scores, closed_after, closed_weights = figure.data
    for bars in (before, after):
        np.testing.assert_array_equal(bars.y, [-1.5, 2.0, np.nan])
    np.testing.assert_array_equal(weights.y, np.array([0.03, 0.97, np.nan], dtype=np.float32))
    np.testing.assert_array_equal(closed_scores.y, np.array([np.nan, np.nan, 0.25]))
    assert [trace.yaxis for trace in (before, after, weights)] == ["y", "y2", "y3"]
    for trace in (closed_after, closed_weights):
        assert (list(trace.x), trace.marker.pattern.shape, "padding" in trace.hovertext[0]) == ([2], "/", True)
    assert list(closed_after.text) == ["−∞"]
    rows = figure.layout.meta["table"]["rows"]
    assert rows[1:] == [[2, "b", 2.0, 2.0, pytest.approx(0.97), ""], [3, "<pad>", 0.25, None, None, "padding"]]
    assert len(draw_row(np.ones(3, bool), mask_reasons=["", "", ""]).data) == 3
    with pytest.raises(ValueError, match="2 keys"):
        draw_row(keys=["a", "b"])
    figure = draw_row(weights=(given := np.array([0.03, 0.9, 0.07], dtype=np.float32)), filled="−1")
    assert (list(figure.data[4].text), len(figure.data[5].x)) == (["−1"], 0)
    np.testing.assert_array_equal(figure.data[2].y, given)
    assert figure.layout.meta["table"]["rows"][2][3:5] == [None, pytest.approx(0.07)]


def test_a_movement_of_zero_has_its_own_place_below_all_others():
    kept, taken = np.array([0.0, 3e-7, 0.5]), np.array([0.2, 0.0, 4.0])
    rows, both = Axis("Row", ["a", "b", "c"]), {"with": kept, "without": taken}
    figure = figure_in(movement("Moved", rows, "max", both, 1e-5, [upright(2, below=False)]), "en")
    zero = figure.layout.yaxis.tickvals[0]
    for trace, values in zip(figure.data, (kept, taken), strict=True):
        np.testing.assert_allclose(trace.y, np.where(values == 0, zero, values))
        assert [text == "exactly 0" for text in trace.text] == [value == 0 for value in values]
    assert zero < 3e-7
    band, line = figure.layout.shapes
    assert (band.y1, line.x0, line.x1) == (1e-5, 2, 2)
    low, high = 10.0 ** np.array(figure.layout.yaxis.range)
    assert low < zero < 4.0 < high
    assert figure.layout.meta["table"]["rows"][0] == [1, "a", 0.0, 0.2]
    with pytest.raises(ValueError, match="3 places"):
        movement("Moved", rows, "max", {"with": np.zeros(2)}, 1e-5)
