"""The bars of pieces that were hidden in turn hold their losses, and say what would have been written."""

import numpy as np
import pytest

from glassformer import charts

MADE = {"places": [1, 2], "ranks": [1, 40], "best": ["a", "<x>"], "best_probabilities": [0.9, 0.5], "title": "t"}


def test_a_bar_a_piece():
    figure = charts.hidden_pieces(["a", "b"], [0.1, 4.0], chosen=2, **MADE)
    bars = figure.data[0]
    assert (list(bars.y), list(bars.customdata)) == ([pytest.approx(0.1), 4], [1, 2])
    assert "likeliest: &#60;x&#62; (0.50)" in bars.hovertext[1]
    assert "rank 40" in bars.hovertext[1]
    assert bars.marker.color[0] != bars.marker.color[1]  # the first would have been written
    assert list(bars.marker.line.width) == [1, 3]
    assert figure.layout.shapes[0].y0 == pytest.approx(2.05)  # the mean
    table = figure.layout.meta["table"]
    assert table["rows"][1] == [3, "b", 4.0, pytest.approx(np.exp(-4)), 40, "<x>", 0.5]
    assert len(table["columns"]) == 7


def test_lists_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="2 pieces need"):
        charts.hidden_pieces_spec(["a", "b"], [0.1], chosen=None, **MADE)
    empty = {**MADE, "places": [], "ranks": [], "best": [], "best_probabilities": []}
    assert charts.hidden_pieces_spec([], [], chosen=None, **empty)["data"] == []
