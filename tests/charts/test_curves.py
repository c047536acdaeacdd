import numpy as np
import pytest

import charts
from charts.theme import literal

LABELS = ["reads <s> → predicts ▁a", "reads ▁a → predicts </s>"]


def test_the_curve_is_the_values_and_the_unit_is_stated():
    figure = charts.entropy([1.5, 0.0], LABELS, step=0)
    np.testing.assert_array_equal(figure.data[0].y, [1.5, 0.0])
    assert list(figure.data[0].x) == [1, 2]
    assert list(figure.data[0].customdata) == [0, 1]
    assert "bits" in figure.layout.yaxis.title.text
    assert "nats" in charts.entropy([1.5, 0.0], LABELS, step=0, unit="nats").layout.yaxis.title.text


def test_the_current_step_is_marked():
    figure = charts.entropy([1.5, 0.0], LABELS, step=1)
    assert list(figure.data[0].marker.size) == [7, 13]
    assert figure.layout.shapes[0].x0 == 2
    assert not charts.entropy([1.5, 0.0], LABELS, step=None).layout.shapes


def test_labels_are_shown_letter_by_letter():
    assert list(charts.entropy([1.5, 0.0], LABELS, step=0).data[0].hovertext) == [literal(label) for label in LABELS]


def test_the_axis_starts_at_0_and_holds_every_value():
    low, high = charts.entropy([1.5, 9.0], LABELS, step=0).layout.yaxis.range
    assert low == 0
    assert high > 9


def test_a_label_for_each_value():
    with pytest.raises(ValueError, match="one label"):
        charts.entropy([1.0], LABELS, step=0)


def test_no_steps_is_an_empty_figure():
    assert not charts.entropy([], [], step=None).data
