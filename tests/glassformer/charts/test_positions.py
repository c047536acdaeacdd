"""The charts of the Positions page hold the numbers they were given, and say what they show."""

import numpy as np
import pytest

from glassformer import charts
from glassformer.positions.table.table_pictures import decades

RANDOM = np.random.default_rng(0)


def colours(value):
    """Every colour named in a figure's plain data."""
    if isinstance(value, str) and value.startswith("#"):
        return {value}
    if isinstance(value, dict):
        return set().union(*map(colours, value.values()), set())
    return set().union(*map(colours, value), set()) if isinstance(value, list | tuple) else set()


def test_a_rotation_is_rings_crosses_and_an_angle():
    wanted, found = RANDOM.normal(size=(2, 4, 2)).astype(np.float32)
    figure = charts.shift_points(wanted, found, pair=3, shift=2, title="Shift", angle=np.pi / 2 + 2 * np.pi)
    arc, rings, crosses = figure.data
    np.testing.assert_array_equal(np.stack([rings.x, rings.y], axis=1), wanted)
    np.testing.assert_array_equal(np.stack([crosses.x, crosses.y], axis=1), found)
    assert list(crosses.hovertext) == ["p = 0", "p = 1", "p = 2", "p = 3"]
    assert (arc.x[1], arc.y[1]) == (0, 0.5)  # from the top
    assert (arc.x[-2], arc.y[-2]) == pytest.approx((0.5, 0), abs=1e-6)  # clockwise, whole turns left out
    assert "450°" in arc.hovertemplate
    assert figure.layout.xaxis.title.text == "Dimension 6 (sine)"
    assert figure.layout.yaxis.scaleanchor == "x"  # or a circle would be none


def test_fitted_and_held_out_positions_are_told_apart():
    points = RANDOM.normal(size=(5, 2))
    held_out = np.array([False, True, False, True, False])
    figure = charts.shift_points(points, points, pair=0, shift=1, title="Shift", held_out=held_out, unpaired=True)
    assert [list(trace.hovertext) for trace in figure.data[1:]] == [["p = 0", "p = 2", "p = 4"], ["p = 1", "p = 3"]]
    assert figure.layout.xaxis.title.text == "Dimension 0"
    with pytest.raises(ValueError, match="do not fit"):
        charts.shift_points(points, points[:4], pair=0, shift=1, title="t")


def test_errors_have_an_axis_that_holds_all_but_an_exact_0():
    axis = decades([[1e-7, 0.0, 3e-8], [1.0, 2.0, 3.0]])
    low, high = axis["range"]
    assert low < np.log10(3e-8)
    assert high > np.log10(3)
    assert decades([[0.0]])["type"] == "log"
