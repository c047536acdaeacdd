"""Two outputs beside each other: each piece with its probabilities in both runs, and where they differ."""

from glassformer.charts import aligned_outputs
from glassformer.charts.aligned import Row

ROWS = [
    Row(left="a", right="a", same=True, left_step=0, right_step=0, p_left=0.5, p_right=0.6, p_crossed=0.6,
        p_crossed_back=0.5, divergence=0.25),
    Row(left="b", right="c", same=False, left_step=1, right_step=1, p_left=0.9, p_right=0.8, p_crossed=0.1,
        p_crossed_back=0.2, divergence=2.5),
    Row(left=None, right="d", same=False, right_step=2, p_right=0.7, p_crossed_back=0.1),
]  # fmt: skip


def test_each_mark_is_its_number_and_differences_are_marked_without_colour():
    figure = aligned_outputs(ROWS, title="two", first=1)
    found = {trace.name: trace for trace in figure.data}
    assert list(found["left-hand piece in the left-hand run"].x) == [0.5, 0.9]  # what is not there has none
    assert list(found["right-hand piece in the right-hand run"].x) == [0.6, 0.8, 0.7]
    assert list(found["left-hand piece in the right-hand run"].x) == [0.6, 0.1]
    bars = found["KL(left ‖ right) in nats"]
    assert (list(bars.x), list(bars.y), bars.xaxis) == ([0.25, 2.5], [0, 1], "x2")
    assert list(figure.layout.yaxis.ticktext) == ["a", "≠ b", "≠ –"]
    assert list(figure.layout.yaxis2.ticktext) == ["a", "≠ c", "≠ d"]
    assert [shape.y0 for shape in figure.layout.shapes] == [0.5]
    table = figure.layout.meta["table"]
    assert len(table["columns"]) == 11
    assert table["rows"][1] == [2, 2, "b", 2, "c", 0, 0.9, 0.1, 0.8, 0.2, 2.5]
    assert table["rows"][2] == [3, None, None, 3, "d", 0, None, None, 0.7, 0.1, None]


def test_without_another_vocabulary_there_are_no_divergences():
    rows = [Row(left="a", right="b", same=False, left_step=0, right_step=0, p_left=0.5, p_right=0.6)]
    figure = aligned_outputs(rows, title="two", first=0)
    names = {trace.name for trace in figure.data}
    assert names == {"left-hand piece in the left-hand run", "right-hand piece in the right-hand run"}
    assert "xaxis2" not in figure.layout.to_plotly_json()
