import numpy as np
import pytest

from glassformer import charts
from glassformer.charts.marks import Scale
from glassformer.charts.theme import DARK_COLORS, literal
from glassformer.extensions.training_page.charts.training import Snapshots

EPOCHS = [1, 2, 3]


def scores(epochs=EPOCHS, **more):
    lines = {name: more.pop(name, None) for name in ("BLEU", "chrF", "Exact (%)")}
    return charts.by_epoch(epochs, lines, ("By epoch", "By step"), Scale("Score"), number="%{y:.2f}", **more)


def rates(values, epochs=EPOCHS, **more):
    scale = Scale("Learning rate", {"rangemode": "tozero"})
    return charts.by_epoch(epochs, {"Rate": values}, ("By epoch", "By step"), scale, number="%{y:.2e}", **more)


def test_both_losses_are_drawn_with_their_unit():
    figure = charts.losses(EPOCHS, training=[5.0, 4.0, 3.5], dev=[4.0, 3.0, 3.1])
    by_name = {trace.name: trace for trace in figure.data}
    np.testing.assert_array_equal(by_name["Training loss"].y, [5.0, 4.0, 3.5])
    np.testing.assert_array_equal(by_name["Dev loss"].y, [4.0, 3.0, 3.1])
    assert list(by_name["Dev loss"].x) == EPOCHS
    assert "nats" in figure.layout.yaxis.title.text
    assert figure.layout.xaxis.title.text == "Epoch"
    assert figure.layout.showlegend


def test_scores_have_a_line_each():
    figure = scores(**{"BLEU": [1.0, 2.0, 3.0], "chrF": [20.0, 30.0, 40.0], "Exact (%)": [0.0, 12.5, 50.0]})
    assert [trace.name for trace in figure.data] == ["BLEU", "chrF", literal("Exact (%)")]
    np.testing.assert_array_equal(figure.data[2].y, [0.0, 12.5, 50.0])


def test_a_line_that_is_not_there_is_not_drawn():
    assert [trace.name for trace in charts.losses(EPOCHS, dev=[1.0, 2.0, 3.0]).data] == ["Dev loss"]
    assert [trace.name for trace in scores(chrF=[1.0, 2.0, 3.0]).data] == ["chrF"]


def test_learning_rates_start_at_0_and_need_no_legend():
    figure = rates([1e-4, 1e-3, 5e-4])
    np.testing.assert_array_equal(figure.data[0].y, [1e-4, 1e-3, 5e-4])
    assert figure.layout.yaxis.rangemode == "tozero"
    assert not figure.layout.showlegend


@pytest.mark.parametrize(
    "draw",
    [
        lambda **kept: charts.losses(EPOCHS, training=[3.0, 2.0, 1.0], **kept),
        lambda **kept: scores(BLEU=[1.0, 2.0, 3.0], name_below=True, **kept),
        lambda **kept: rates([1.0, 2.0, 3.0], **kept),
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
    assert charts.losses(EPOCHS, dev=[1.0, 2.0, 3.0], kept=1).layout.annotations[0].y == 1
    assert scores(BLEU=[1.0, 2.0, 3.0], name_below=True, kept=1).layout.annotations[0].y == 0


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
    traces = scores(**{"BLEU": [1.0] * 3, "chrF": [2.0] * 3, "Exact (%)": [0.5] * 3}).data
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
    assert not rates([], []).data


@pytest.mark.parametrize(("values", "labels"), [([1.0], None), ([1.0, 2.0, 3.0], ["a"])])
def test_one_value_and_one_label_for_each_epoch(values, labels):
    with pytest.raises(ValueError, match="give one for each"):
        charts.losses(EPOCHS, dev=values, labels=labels)


SNAPSHOTS = Snapshots(
    name="Dev loss",
    steps=[0, 9, 99, 300],
    epochs=[0.0, 0.09, 0.99, float("nan")],
    values=[4.0, 3.0, float("nan"), 1.0],
    labels=["<start>", "nine", "ninety-nine", "the last"],
    chosen=9,
)


def test_snapshots_are_marks_between_the_epochs_that_a_click_tells_by_their_step():
    figure = charts.losses(EPOCHS, dev=[3.0, 2.0, 1.0], snapshots=SNAPSHOTS)
    marks = figure.data[-1]
    assert (list(marks.x), list(marks.y)) == ([0.0, 0.09], [4.0, 3.0])  # one has no number, one no place
    assert list(marks.customdata) == [0, 9]
    assert list(marks.hovertext) == [literal("<start>"), "nine"]
    assert marks.marker.size[1] > marks.marker.size[0]
    assert figure.layout.xaxis.range[0] < 0 < 3 < figure.layout.xaxis.range[1]


@pytest.mark.parametrize(
    "draw",
    [
        lambda **more: charts.losses(EPOCHS, training=[3.0, 2.0, 1.0], **more),
        lambda **more: scores(BLEU=[1.0, 2.0, 3.0], name_below=True, **more),
        lambda **more: rates([1.0, 2.0, 3.0], **more),
    ],
)
def test_by_step_the_axis_goes_by_the_logarithm_and_has_room_for_step_0(draw):
    figure = draw(steps=[99, 200, 300], snapshots=SNAPSHOTS, kept=1)
    np.testing.assert_allclose(figure.data[0].x, np.log10([100, 201, 301]))
    np.testing.assert_allclose(figure.data[-1].x, [0, 1, np.log10(301)])
    ticks = dict(zip(figure.layout.xaxis.ticktext, figure.layout.xaxis.tickvals, strict=True))
    assert ticks["0"] == 0
    assert ticks["100"] == pytest.approx(np.log10(101))
    assert figure.layout.xaxis.range[0] < 0
    assert figure.layout.shapes[0].x0 == 2
    assert "epoch" not in figure.layout.title.text


def test_a_saved_table_has_epochs_steps_and_snapshots():
    spec = charts.losses_spec(EPOCHS, dev=[3.0, float("nan"), 1.0], steps=[99, 200, 300], snapshots=SNAPSHOTS)
    table = spec["layout"]["meta"]["table"]
    assert table["columns"] == ["Series", "Epoch", "Step", "Loss (nats per piece)"]
    assert table["rows"][:2] == [["Dev loss", 1, 99.0, 3.0], ["Dev loss", 2, 200.0, None]]
    assert [row[1:] for row in table["rows"][3:]] == [[None, 0, 4.0], [None, 9, 3.0], [None, 300, 1.0]]


def test_snapshots_alone_are_drawn_without_epochs():
    figure = charts.losses([], steps=[], snapshots=SNAPSHOTS)
    assert [len(trace.x) for trace in figure.data] == [3]


def test_a_step_that_is_not_known_has_no_place():
    figure = charts.losses(EPOCHS, dev=[3.0, 2.0, 1.0], steps=[99, float("nan"), 300], kept=2)
    assert np.isnan(figure.data[0].x[1])
    assert not figure.layout.shapes
