"""The charts of costs hold the numbers they were given."""

import numpy as np
import pytest

from glassformer import charts
from glassformer.charts.theme import literal
from glassformer.inside.model.model_pictures import marks_of_lengths


def test_shares_are_of_each_sum():
    figure = charts.cost_shares(["a", "<b>"], [30, 10], [0, 7], title="Shares")
    parameters, done = figure.data
    assert list(parameters.x) == [75, 25]
    assert list(done.x) == [0, 100]
    assert done.hovertext[1].startswith(literal("<b>"))
    assert "<b>7</b>" in done.hovertext[1]
    assert figure.layout.yaxis.range[0] > figure.layout.yaxis.range[1]  # the first on top
    assert figure.layout.meta["table"]["rows"] == [["a", 30, 75, 0, 0], ["<b>", 10, 25, 7, 100]]
    with pytest.raises(ValueError, match="one of each"):
        charts.cost_shares(["a"], [1, 2], [1], title="t")


def test_nothing_at_all_is_no_share():
    assert list(charts.cost_shares(["a"], [0], [0], title="t").data[0].x) == [0]


def test_marks_stand_at_their_lengths():
    (shade, chosen, crossing), notes = marks_of_lengths(3.0, 2, 2, 4)
    assert (shade["x0"], shade["x1"]) == (2, 4)
    assert (chosen["x0"], crossing["x0"]) == (2, 3)
    shown = {str(note["text"]): note["x"] for note in notes}
    assert shown["n = 2"] == pytest.approx(np.log10(2))
    assert shown["n² overtakes"] == pytest.approx(np.log10(3))
    assert [shape["x0"] for shape in marks_of_lengths(10.0, 4, 2, 4)[0]] == [2]  # no shade, no crossing in view
