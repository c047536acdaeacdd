import numpy as np
import pytest

import charts
from charts.theme import DARK_COLORS, literal

EPOCHS = [1, 2, 3]


def test_both_losses_are_drawn_with_their_unit():
    figure = charts.losses(EPOCHS, training=[5.0, 4.0, 3.5], dev=[4.0, 3.0, 3.1])
    by_name = {trace.name: trace for trace in figure.data}
    np.testing.assert_array_equal(by_name["Training loss"].y, [5.0, 4.0, 3.5])
    np.testing.assert_array_equal(by_name["Dev loss"].y, [4.0, 3.0, 3.1])
    assert list(by_name["Dev loss"].x) == EPOCHS
    assert "nats" in figure.layout.yaxis.title.text
    assert figure.layout.xaxis.title.text == "Epoch"
    assert figure.layout.showlegend


def test_scores_are_drawn_of_100_and_exact_in_per_cent():
    figure = charts.dev_scores(EPOCHS, bleu=[1.0, 2.0, 3.0], chrf=[20.0, 30.0, 40.0], exact=[0.0, 0.125, 0.5])
    assert [trace.name for trace in figure.data] == ["BLEU", "chrF", literal("Exact (%)")]
    np.testing.assert_array_equal(figure.data[2].y, [0.0, 12.5, 50.0])
    assert "0 to 100" in figure.layout.yaxis.title.text


def test_a_line_that_is_not_there_is_not_drawn():
    assert [trace.name for trace in charts.losses(EPOCHS, dev=[1.0, 2.0, 3.0]).data] == ["Dev loss"]
    assert [trace.name for trace in charts.dev_scores(EPOCHS, chrf=[1.0, 2.0, 3.0]).data] == ["chrF"]


def test_learning_rates_start_at_0_and_need_no_legend():
    figure = charts.learning_rates(EPOCHS, [1e-4, 1e-3, 5e-4])
    np.testing.assert_array_equal(figure.data[0].y, [1e-4, 1e-3, 5e-4])
    assert figure.layout.yaxis.rangemode == "tozero"
    assert not figure.layout.showlegend


@pytest.mark.parametrize(
    "draw",
    [
        lambda **kept: charts.losses(EPOCHS, training=[3.0, 2.0, 1.0], **kept),
        lambda **kept: charts.dev_scores(EPOCHS, bleu=[1.0, 2.0, 3.0], **kept),
        lambda **kept: charts.learning_rates(EPOCHS, [1.0, 2.0, 3.0], **kept),
    ],
)
def test_the_kept_epoch_is_marked(draw):
    marked = draw(kept=2, kept_name="best <b>")
    assert (marked.layout.shapes[0].x0, marked.layout.shapes[0].x1) == (2, 2)
    assert marked.layout.annotations[0].text == literal("best <b>: epoch 2")
    for kept in (None, 7):
        assert not draw(kept=kept).layout.shapes
        assert not draw(kept=kept).layout.annotations


def test_the_name_of_the_mark_stays_inside():
    assert charts.losses(EPOCHS, dev=[1.0, 2.0, 3.0], kept=3).layout.annotations[0].xanchor == "right"
    assert charts.losses(EPOCHS, dev=[1.0, 2.0, 3.0], kept=1).layout.annotations[0].xanchor == "left"


def test_gaps_stay_gaps():
    trace = charts.losses(EPOCHS, dev=[1.0, float("nan"), float("inf")]).data[0]
    np.testing.assert_array_equal(trace.y, [1.0, np.nan, np.nan])
    assert trace.connectgaps is False


def test_hover_says_what_was_given_letter_by_letter():
    figure = charts.losses(EPOCHS, dev=[1.0, 2.0, 3.0], labels=["<b>", "step 20", "step 30"])
    assert list(figure.data[0].hovertext) == [literal("<b>"), "step 20", "step 30"]
    assert list(charts.losses(EPOCHS, dev=[1.0, 2.0, 3.0]).data[0].hovertext)[2] == "Epoch 3"
    assert "%{hovertext}" in figure.data[0].hovertemplate


def test_lines_differ_without_colour_and_have_dark_twins():
    traces = charts.dev_scores(EPOCHS, bleu=[1.0] * 3, chrf=[2.0] * 3, exact=[0.5] * 3).data
    assert len({trace.line.dash for trace in traces}) == len({trace.marker.symbol for trace in traces}) == 3
    assert {trace.line.color for trace in traces} <= DARK_COLORS.keys()


def test_one_epoch_is_a_point_and_many_are_lines_alone():
    one = charts.losses([4], dev=[1.0])
    assert one.data[0].mode == "lines+markers"
    low, high = one.layout.xaxis.range
    assert low < 4 < high
    many = charts.losses(list(range(1, 5001)), dev=[1.0] * 5000)
    assert many.data[0].mode == "lines"


def test_no_epochs_are_an_empty_figure():
    assert not charts.losses([], training=[], dev=[]).data
    assert not charts.learning_rates([], []).data


@pytest.mark.parametrize(("values", "labels"), [([1.0], None), ([1.0, 2.0, 3.0], ["a"])])
def test_one_value_and_one_label_for_each_epoch(values, labels):
    with pytest.raises(ValueError, match="give one for each epoch"):
        charts.losses(EPOCHS, dev=values, labels=labels)
