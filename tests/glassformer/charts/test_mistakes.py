"""Two runs beside each other: the numbers that are drawn are those that were given."""

import numpy as np
import pytest

from glassformer import charts

BARS = {"title": "t", "value_name": "v", "token_axis": "a"}
LINES = {"title": "t", "value_name": "v", "depth_axis": "a"}


def test_two_bars_a_token():
    figure = charts.two_bars(["a", "<b>"], [("right", np.array([1.0, 2])), ("wrong", np.array([3.0, 4]))], **BARS)
    assert [one.name for one in figure.data] == ["right", "wrong"]
    assert [list(one.y) for one in figure.data] == [[1, 2], [3, 4]]
    assert {one.type for one in figure.data} == {"bar"}
    assert "&#60;b&#62;" in figure.data[0].hovertext[1]
    assert figure.layout.barmode == "group"


def test_a_side_without_numbers_is_left_out():
    figure = charts.two_bars(["a"], [("right", np.array([1.0])), ("wrong", None)], **BARS)
    assert [one.name for one in figure.data] == ["right"]


def test_many_tokens_are_marks():
    figure = charts.two_bars(["a"] * 60, [("right", np.ones(60)), ("wrong", np.zeros(60))], **BARS)
    assert {one.type for one in figure.data} == {"scatter"}


def test_two_lines():
    both = [("right", np.array([1.0, 2, 3])), ("wrong", np.array([3.0, 2, 1]))]
    figure = charts.two_lines(["embedding", "1", "end"], both, limits=(0, 4), **LINES)
    assert [list(one.y) for one in figure.data] == [[1, 2, 3], [3, 2, 1]]
    assert list(figure.layout.xaxis.ticktext) == ["embedding", "1", "end"]
    assert list(figure.layout.yaxis.range) == [0, 4]


def test_lists_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="2 tokens"):
        charts.two_bars_spec(["a", "b"], [("right", np.ones(3))], **BARS)
    with pytest.raises(ValueError, match="2 depths"):
        charts.two_lines_spec(["a", "b"], [("right", np.ones(3))], **LINES)
