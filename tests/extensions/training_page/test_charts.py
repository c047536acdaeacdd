"""Curves of a training are drawn by epoch or step, with gaps, the kept epoch and snapshots; no text is markup."""

import numpy as np
import pytest

from glassformer import charts
from glassformer.charts.marks import Scale
from glassformer.charts.theme import DARK_COLORS, literal
from glassformer.extensions.training_page.charts import Snapshots

EPOCHS = [1, 2, 3]


def scores(epochs=EPOCHS, **more):
    lines = {name: more.pop(name, None) for name in ("BLEU", "chrF", "Exact (%)")}
    return charts.by_epoch(epochs, lines, ("By epoch", "By step"), Scale("Score"), number="%{y:.2f}", **more)


def test_each_line_that_is_there_is_drawn_and_gaps_stay_gaps():
    figure = charts.losses(EPOCHS, training=[5.0, 4.0, 3.5], dev=[4.0, float("nan"), float("inf")])
    by_name = {trace.name: trace for trace in figure.data}
    np.testing.assert_array_equal(by_name["Training loss"].y, [5.0, 4.0, 3.5])
    np.testing.assert_array_equal(by_name["Dev loss"].y, [4.0, np.nan, np.nan])
    assert by_name["Dev loss"].connectgaps is False
    assert list(by_name["Dev loss"].x) == EPOCHS
    assert [trace.name for trace in scores(chrF=[1.0, 2.0, 3.0]).data] == ["chrF"]
    assert not charts.losses([], training=[], dev=[]).data


@pytest.mark.parametrize("below", [False, True])
def test_the_kept_epoch_is_marked_and_its_name_stays_inside(below):
    def draw(kept):
        return scores(BLEU=[1.0, 2.0, 3.0], name_below=below, kept=kept, kept_name="best <b>")

    for kept, side in ((1, "left"), (3, "right")):
        layout = draw(kept).layout
        assert (layout.shapes[0].x0, layout.shapes[0].x1) == (kept, kept)
        assert layout.annotations[0].text == literal(f"best <b>: epoch {kept}")
        assert (layout.annotations[0].xanchor, layout.annotations[0].y) == (side, 0 if below else 1)
    for kept in (None, 7):
        assert not draw(kept).layout.shapes
        assert not draw(kept).layout.annotations


def test_hover_says_what_was_given_letter_by_letter():
    figure = charts.losses(EPOCHS, dev=[1.0, 2.0, 3.0], labels=["<b>", "step 20", "step 30"])
    assert list(figure.data[0].hovertext) == [literal("<b>"), "step 20", "step 30"]
    assert list(charts.losses(EPOCHS, dev=[1.0, 2.0, 3.0]).data[0].hovertext)[2] == "Epoch 3"
    for values, labels in (([1.0], None), ([1.0, 2.0, 3.0], ["a"])):
        with pytest.raises(ValueError, match="give one for each"):
            charts.losses(EPOCHS, dev=values, labels=labels)


def test_lines_differ_without_colour_and_have_dark_twins_and_many_epochs_are_lines_alone():
    traces = scores(**{"BLEU": [1.0] * 3, "chrF": [2.0] * 3, "Exact (%)": [0.5] * 3}).data
    assert len({trace.line.dash for trace in traces}) == len({trace.marker.symbol for trace in traces}) == 3
    assert {trace.line.color for trace in traces} <= DARK_COLORS.keys()
    one = charts.losses([4], dev=[1.0])
    low, high = one.layout.xaxis.range
    assert low < 4 < high
    assert one.data[0].mode == "lines+markers"
    assert charts.losses(list(range(1, 5001)), dev=[1.0] * 5000).data[0].mode == "lines"


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
    assert [len(trace.x) for trace in charts.losses([], steps=[], snapshots=SNAPSHOTS).data] == [3]
    spec = charts.losses_spec(EPOCHS, dev=[3.0, float("nan"), 1.0], steps=[99, 200, 300], snapshots=SNAPSHOTS)
    table = spec["layout"]["meta"]["table"]
    assert table["columns"] == ["Series", "Epoch", "Step", "Loss (nats per token)"]
    assert table["rows"][:2] == [["Dev loss", 1, 99.0, 3.0], ["Dev loss", 2, 200.0, None]]
    assert [row[1:] for row in table["rows"][3:]] == [[None, 0, 4.0], [None, 9, 3.0], [None, 300, 1.0]]


def test_by_step_the_axis_goes_by_the_logarithm_and_has_room_for_step_0():
    figure = scores(BLEU=[1.0, 2.0, 3.0], steps=[99, float("nan"), 300], snapshots=SNAPSHOTS, kept=1)
    np.testing.assert_allclose(figure.data[0].x, [2, np.nan, np.log10(301)])
    np.testing.assert_allclose(figure.data[-1].x, [0, 1, np.log10(301)])
    ticks = dict(zip(figure.layout.xaxis.ticktext, figure.layout.xaxis.tickvals, strict=True))
    assert ticks["0"] == 0
    assert ticks["100"] == pytest.approx(np.log10(101))
    assert figure.layout.xaxis.range[0] < 0
    assert figure.layout.shapes[0].x0 == 2
    assert not charts.losses(EPOCHS, dev=[3.0, 2.0, 1.0], steps=[99, float("nan"), 300], kept=2).layout.shapes
