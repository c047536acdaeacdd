"""The charts of costs hold the numbers they were given."""

import numpy as np
import pytest

from glassformer import charts
from glassformer.charts.costs import LINEAR_LINE, MAPS_LINE
from glassformer.charts.theme import literal


def curves(**changes):
    values = {
        "lines": {"<b>FFN</b>": [10, 20, 40], "nothing": [0, 0, 0]},
        "quadratic": [1, 4, 16],
        "linear": [10, 20, 40],
        "crossing": 10.0,
        "max_len": 2,
        "chosen": 2,
        "title": "t",
    }
    return charts.cost_curves([1, 2, 4], **(values | changes))


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


def test_curves_are_the_counts_and_empty_ones_are_left_out():
    figure = curves()
    assert [trace.name for trace in figure.data] == [literal("<b>FFN</b>"), LINEAR_LINE, MAPS_LINE]
    for trace, counts in zip(figure.data, ([10, 20, 40], [10, 20, 40], [1, 4, 16]), strict=True):
        np.testing.assert_array_equal(trace.x, [1, 2, 4])
        np.testing.assert_array_equal(trace.y, counts)
    assert (figure.layout.xaxis.type, figure.layout.yaxis.type) == ("log", "log")
    with pytest.raises(ValueError, match="2 counts for 3"):
        curves(linear=[1, 2])


def test_marks_stand_at_their_lengths():
    figure = curves(crossing=3.0)
    shade, chosen, crossing = figure.layout.shapes
    assert (shade.x0, shade.x1) == (2, 4)
    assert (chosen.x0, crossing.x0) == (2, 3)
    shown = {note.text: note.x for note in figure.layout.annotations}
    assert shown["n = 2"] == pytest.approx(np.log10(2))
    assert shown["n² overtakes"] == pytest.approx(np.log10(3))
    assert [shape.x0 for shape in curves(max_len=4).layout.shapes] == [2]  # no shade, and no crossing in view
