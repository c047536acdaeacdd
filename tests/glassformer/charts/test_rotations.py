"""Charts of positions that act inside attention hold the numbers they were given, and say what they show."""

import numpy as np

from glassformer import charts


def test_a_pair_goes_around_its_circle():
    points = charts.turning_circle(np.pi / 2, 6, title="t").data[0]
    np.testing.assert_allclose(points.x, [1, 0, -1, 0, 1, 0], atol=1e-6)
    np.testing.assert_allclose(points.y, [0, 1, 0, -1, 0, 1], atol=1e-6)
    assert list(points.text) == ["0", "1", "2", "3", "", ""]  # later ones would cover them
    assert list(points.textposition[:4]) == ["middle right", "top center", "middle left", "bottom center"]
    assert list(points.customdata) == [0, 90, 180, 270, 360, 450]
