import numpy as np
import pytest

from glassformer.charts.theme import figure_in, literal
from glassformer.step.step_pictures import MEASURES, unsure_curve

LABELS = ["reads <s> → predicts ▁a", "reads ▁a → predicts </s>"]


def curve(values, labels, step, measure="entropy"):
    return figure_in(unsure_curve(np.array(values), labels, step, MEASURES[measure])["spec"], "en")


def test_the_curve_is_the_values_and_the_unit_is_stated():
    figure = curve([1.5, 0.0], LABELS, step=0)
    np.testing.assert_array_equal(figure.data[0].y, [1.5, 0.0])
    assert list(figure.data[0].x) == [1, 2]
    assert list(figure.data[0].customdata) == [0, 1]
    assert "bits" in figure.layout.yaxis.title.text


def test_the_current_step_is_marked():
    figure = curve([1.5, 0.0], LABELS, step=1)
    assert list(figure.data[0].marker.size) == [7, 13]
    assert figure.layout.shapes[0].x0 == 2
    assert not curve([1.5, 0.0], LABELS, step=None).layout.shapes


def test_a_share_has_no_unit():
    figure = curve([0.5, 0.0], LABELS, step=0, measure="rest")
    assert figure.layout.yaxis.title.text == MEASURES["rest"].axis
    assert "bits" not in figure.data[0].hovertemplate


@pytest.mark.parametrize("count", [2, 20, 128])
def test_no_mark_is_cut_or_runs_into_the_next(count):
    figure = curve(np.ones(count), ["x"] * count, step=0)
    plot = 300  # pixels, about, beside the candidates
    first, last = figure.layout.xaxis.range
    a_step = plot / (last - first)
    sizes = figure.data[0].marker.size
    assert (1 - first) * a_step >= sizes[0] / 2
    assert (last - count) * a_step >= sizes[-1] / 2
    assert max(sizes[1:]) <= max(7 if count == 2 else 0, a_step)


def test_labels_are_shown_letter_by_letter():
    assert list(curve([1.5, 0.0], LABELS, step=0).data[0].hovertext) == [literal(label) for label in LABELS]


def test_the_axis_starts_at_0_and_holds_every_value():
    low, high = curve([1.5, 9.0], LABELS, step=0).layout.yaxis.range
    assert low == 0
    assert high > 9


def test_no_steps_is_an_empty_figure():
    assert not curve([], [], step=None).data
