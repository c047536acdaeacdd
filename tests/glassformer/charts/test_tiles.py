"""The charts of tiles and blocks show what is read by when, and what a cache of keys and values holds."""

import numpy as np

from glassformer.charts import cache_blocks, tile_scores
from glassformer.charts.costs import BlockRow

ROW = {"key_axis": "Key", "side": "source", "title": "t", "allowed": np.ones(5, bool)}


def test_the_tile_that_is_read_is_framed_and_later_ones_are_covered():
    figure = tile_scores(np.arange(5.0), list("abcde"), [(2, 1.0), (4, 3.0)], size=2, **ROW)
    rectangles = [(shape.x0, shape.x1) for shape in figure.layout.shapes if shape.type == "rect"]
    assert rectangles == [(3.5, 4.5), (1.5, 3.5)]
    assert [shape.x0 for shape in figure.layout.shapes if shape.type == "line"] == [1.5, 3.5]
    line = next(trace for trace in figure.data if trace.name == "m")
    assert (list(line.x), list(line.y)) == ([-0.5, 1.5, 1.5, 3.5], [1, 1, 3, 3])
    assert "<b>" not in "".join(figure.layout.xaxis.ticktext)


def test_before_the_first_open_key_there_is_no_largest_score():
    scores = np.array([-np.inf, -np.inf, 2.0])
    peaks = [(1, -np.inf), (2, -np.inf), (3, 2.0)]
    figure = tile_scores(scores, list("abc"), peaks, size=1, **ROW | {"allowed": scores > -1})
    line = next(trace for trace in figure.data if trace.name == "m")
    assert list(line.y) == [None] * 4 + [2, 2]


def test_blocks_hold_pieces_and_the_newest_stands_out():
    rows = [BlockRow("one", 0, ["a", "<b>"]), BlockRow("two", 2, ["c"], newest=0)]
    figure = cache_blocks(rows, 2, title="t")
    assert figure.data[0].z.tolist() == [[1, 1], [2, 0]]
    assert [note.text for note in figure.layout.annotations] == ["a", "&#60;b&#62;", "c"]
    assert "token 3" in figure.data[0].hovertext[1][0]
    assert "empty" in figure.data[0].hovertext[1][1]
    assert not cache_blocks([BlockRow("one", 0, ["a"])], 64, title="t").layout.annotations
