"""The charts of one weight, of tiles and of a cache show each number, and closed keys as closed."""

import numpy as np
import pytest

from glassformer import charts
from glassformer.charts.costs import BlockRow
from glassformer.charts.theme import literal

MARKUP = "<b>$x$</b>"
KEYS = ["▁a", MARKUP, "▁a"]
ROW = {"key_axis": "Key", "side": "source", "title": "t", "allowed": np.ones(5, bool)}


def key_row(values=(1.5, -2.0, 0.25), **options):
    given = {"title": "Scores", "value_name": "score", "chosen": 1}
    return charts.key_row_spec(np.array(values), KEYS, **given | options)


def test_q_and_k_share_a_scale_and_the_bars_are_their_products():
    q, k = np.array([1.0, -2.0, 0.5]), np.array([3.0, 4.0, -8.0])
    figure = charts.query_times_key(q, k, title="q and k", query=MARKUP, key="b")
    strips, bars = figure.data
    assert np.array_equal(strips.z, [q, k])
    assert (strips.zmin, strips.zmax) == (-8, 8)
    assert bars.y.tolist() == [3, -8, -4]
    assert bars.x.tolist() == [0, 1, 2]  # dimensions are counted from 0, as on every page
    assert bars.marker.color[0] != bars.marker.color[1] == bars.marker.color[2]
    assert strips.customdata[0, 1].tolist() == [f"q of {literal(MARKUP)}", "dimension 1"]
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
    assert whole["hovertext"][1] == f"2: <b>{literal(MARKUP)}</b><br>q · k <b>−4</b><br>score <b>−2</b>"
    frame = spec["layout"]["shapes"][0]
    assert frame["x0"] < 1 < frame["x1"]
    assert spec["layout"]["meta"]["ticks"]["xaxis"]["labels"] == ["▁a", f"<b>{literal(MARKUP)}</b>", "▁a"]
    rows = spec["layout"]["meta"]["table"]["rows"]
    assert rows == [[1, "▁a", 3, 1.5, ""], [2, MARKUP, -4, -2, ""], [3, "▁a", 0.5, 0.25, ""]]


def test_closed_keys_are_hatched_and_say_why_and_their_number_is_nowhere():
    spec = key_row((0.25, 77.0, 0.75), closed=["", "−∞, padding", ""], limits=(0, 1))
    bars, hatched, whole = spec["data"]
    assert np.isnan(bars["y"][1])
    assert (hatched["x"].tolist(), hatched["marker"]["pattern"]["shape"]) == ([1], "/")
    assert whole["hovertext"][1] == f"2: <b>{literal(MARKUP)}</b><br><i>−∞, padding</i>"
    assert spec["layout"]["meta"]["table"]["rows"][1] == [2, MARKUP, None, "−∞, padding"]
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
