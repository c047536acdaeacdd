"""Two runs beside each other: the numbers that are drawn are those that were given."""

import numpy as np
import pytest

from glassformer.charts.marks import Axis, Scale
from glassformer.charts.theme import figure_in, literal
from glassformer.extensions.effects.wrong.mistake_figures import two_bars
from transformer.i18n import say


def drawn(pieces, right, wrong, **look):
    values = [(say("right"), np.array(right)), (say("wrong"), None if wrong is None else np.array(wrong))]
    return figure_in(two_bars(say("t"), Axis(say("a"), pieces), Scale(say("v"), look), values).spec, "en")


def test_two_bars_a_token_and_of_many_marks():
    figure = drawn(["a", "<b>"], [1.0, 2], [3.0, 4], range=[0, 4])
    assert [one.name for one in figure.data] == ["right", "wrong"]
    assert [list(one.y) for one in figure.data] == [[1, 2], [3, 4]]
    assert {one.type for one in figure.data} == {"bar"}
    assert literal("<b>") in figure.data[0].hovertext[1]
    assert (list(figure.layout.yaxis.range), figure.layout.yaxis.rangemode) == ([0, 4], "tozero")
    assert {one.type for one in drawn(["a"] * 60, np.ones(60), np.zeros(60)).data} == {"scatter"}


def test_a_side_without_numbers_is_left_out_and_lists_have_to_fit():
    assert [one.name for one in drawn(["a"], [1.0], None).data] == ["right"]
    with pytest.raises(ValueError, match="2 places"):
        drawn(["a", "b"], np.ones(3), None)
