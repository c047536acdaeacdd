"""Charts of many lines hold their numbers, and a click on a point says which line it is."""

import numpy as np
import pytest

from glassformer import charts
from glassformer.charts.theme import literal

X, Y = np.array([-1.0, -0.5, -2.0]), np.array([30.0, 100.0, 5.0])


def points(**changes):
    given = {"numbers": [3, 5, 9], "cut": [False, False, True], "chosen": 9}
    given |= {"x_name": "How <sure>", "y_name": "chrF", "title": "chrF against $x$"}
    return charts.line_points(X, Y, ["<b>ba", "lo", "mi" * 60], **(given | changes))


def test_a_point_is_a_line():
    figure = points()
    ended, cut, ring = figure.data
    assert (list(ended.x), list(ended.y)) == ([-1.0, -0.5], [30.0, 100.0])
    assert (list(ended.customdata), list(cut.customdata)) == ([3, 5], [9])
    assert (list(ring.x), list(ring.y)) == ([-2.0], [5.0])
    assert literal("<b>ba") in ended.hovertext[0]
    assert len(cut.hovertext[0]) < 100
    assert figure.layout.showlegend
    assert figure.layout.title.text == literal("chrF against $x$")
    assert figure.layout.xaxis.title.text == literal("How <sure>")


def test_without_cuts_there_is_nothing_to_name_and_lists_have_to_fit():
    figure = points(cut=[False] * 3, chosen=None)
    assert len(figure.data) == 1
    assert not figure.layout.showlegend
    with pytest.raises(ValueError, match="give a second one"):
        points(numbers=[1, 2])
