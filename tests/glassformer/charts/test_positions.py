"""The charts of the Positions page and of costs hold the numbers they were given."""

import numpy as np
import pytest

from glassformer import charts
from glassformer.charts.theme import literal


def test_a_rotation_is_rings_crosses_and_an_angle():
    wanted, found = np.random.default_rng(0).normal(size=(2, 4, 2)).astype(np.float32)
    figure = charts.shift_points(wanted, found, pair=3, shift=2, title="Shift", angle=np.pi / 2 + 2 * np.pi)
    arc, rings, crosses = figure.data
    np.testing.assert_array_equal(np.stack([rings.x, rings.y], axis=1), wanted)
    np.testing.assert_array_equal(np.stack([crosses.x, crosses.y], axis=1), found)
    assert (arc.x[1], arc.y[1]) == (0, 0.5)  # from the top
    assert (arc.x[-2], arc.y[-2]) == pytest.approx((0.5, 0), abs=1e-6)  # clockwise, whole turns left out
    assert "450°" in arc.hovertemplate
    assert figure.layout.xaxis.title.text == "Dimension 6 (sine)"
    assert figure.layout.yaxis.scaleanchor == "x"  # or a circle would be none


def test_a_pair_goes_around_its_circle():
    points = charts.turning_circle(np.pi / 2, 6, title="t").data[0]
    np.testing.assert_allclose([points.x, points.y], [[1, 0, -1, 0, 1, 0], [0, 1, 0, -1, 0, 1]], atol=1e-6)
    assert list(points.text) == ["0", "1", "2", "3", "", ""]  # later ones would cover them
    assert list(points.textposition[:4]) == ["middle right", "top center", "middle left", "bottom center"]
    assert list(points.customdata) == [0, 90, 180, 270, 360, 450]


def test_shares_of_costs_are_of_each_sum():
    figure = charts.cost_shares(["a", "<b>"], [30, 10], [0, 7], title="Shares")
    parameters, done = figure.data
    assert (list(parameters.x), list(done.x)) == ([75, 25], [0, 100])
    assert done.hovertext[1].startswith(literal("<b>"))
    assert figure.layout.yaxis.range[0] > figure.layout.yaxis.range[1]  # the first on top
    assert figure.layout.meta["table"]["rows"] == [["a", 30, 75, 0, 0], ["<b>", 10, 25, 7, 100]]
    assert list(charts.cost_shares(["a"], [0], [0], title="t").data[0].x) == [0]
    with pytest.raises(ValueError, match="one of each"):
        charts.cost_shares(["a"], [1, 2], [1], title="t")
