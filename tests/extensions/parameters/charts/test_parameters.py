import math

import numpy as np
import pytest

from glassformer import charts
from glassformer.charts.theme import NEUTRAL_COLOR

EDGES = np.array([-2.0, -1.0, 0.0, 1.0])


def spread(counts=(1, 0, 40), edges=EDGES, **options):
    return charts.number_spread(edges, np.array(counts), title="w", value_name="Value", **options)


def test_each_interval_has_its_bar_and_says_where_it_lies():
    figure = spread()
    (bars,) = figure.data
    assert list(bars.x) == [-1.5, -0.5, 0.5]
    assert list(bars.width) == [1, 1, 1]
    assert list(bars.y) == [1, 0, 40]
    assert bars.hovertext[0] == "from −2 to −1"
    assert figure.layout.xaxis.title.text == "Value"
    assert figure.layout.meta["table"]["rows"] == [[-2.0, -1.0, 1], [-1.0, 0.0, 0], [0.0, 1.0, 40]]


def test_a_line_marks_0_where_numbers_lie_on_both_sides():
    assert spread().layout.shapes[0].x0 == 0
    assert not spread(edges=EDGES + 5).layout.shapes


def test_few_numbers_are_seen_on_a_logarithmic_axis():
    figure = spread(log_counts=True)
    assert figure.layout.yaxis.type == "log"
    low, high = figure.layout.yaxis.range
    assert low < 0 < math.log10(40) < high
    assert "log" in figure.layout.yaxis.title.text


def test_no_number_is_an_empty_chart():
    assert not spread(counts=(), edges=np.zeros(1)).data


def test_edges_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="4 edges for 2 counts"):
        spread(counts=(1, 2))


def singular(values, rank=2.5):
    return charts.singular_values(np.array(values, dtype=np.float64), effective_rank=rank, title="w")


def test_singular_values_fall_on_a_logarithmic_axis_with_the_effective_rank_marked():
    figure = singular([10, 1, 0.01])
    (line,) = figure.data
    assert list(line.x) == [1, 2, 3]
    assert list(line.y) == [10, 1, 0.01]
    assert figure.layout.yaxis.type == "log"
    assert figure.layout.yaxis.range[0] < -2
    assert figure.layout.yaxis.range[1] > 1
    assert figure.layout.shapes[0].x0 == 2.5
    assert figure.layout.annotations[0].text == "effective rank 2.5"


@pytest.mark.parametrize("values", [[3, 2, 1], [9, 5, 2], [40, 3, 1], [5e3, 1], [1e12, 1], [1.02, 1.01, 1]])
def test_labels_of_singular_values_do_not_overlap(values):
    axis = singular(values).layout.yaxis
    low, high = axis.range
    if high - low >= 2:
        assert axis.dtick >= 1
        assert 2 <= (high - low) / axis.dtick <= 8
        return
    at = np.log10(axis.tickvals)
    assert len(at) >= 3
    assert np.diff(at).min() > (high - low) / 8
    assert all(low <= one <= high for one in at)
    assert len(set(axis.ticktext)) == len(at)


def test_singular_values_of_0_are_counted_instead():
    figure = singular([10, 1, 0, 0])
    assert list(figure.data[0].y) == [10, 1]
    assert figure.layout.title.subtitle.text == "2 singular values are 0"
    empty = singular([0, 0], rank=math.nan)
    assert not empty.data
    assert not empty.layout.shapes


def test_many_singular_values_have_no_marks():
    assert singular(np.linspace(9, 1, 100)).data[0].mode == "lines"
    assert singular(np.linspace(9, 1, 10)).data[0].mode == "lines+markers"


def test_rows_are_drawn_with_their_pieces_special_ones_pale():
    pieces, lengths = ["<pad>", "▁a", "<b>"], [0.0, 1.0, 2.5]
    figure = charts.row_lengths(pieces, [0, 7, 9], lengths, special=[True, False, False], title="Rows")
    (bars,) = figure.data
    assert list(bars.x) == lengths
    assert list(figure.layout.yaxis.ticktext) == ["&#60;pad&#62;", "▁a", "&#60;b&#62;"]
    assert bars.marker.color[0] != bars.marker.color[1] == NEUTRAL_COLOR
    assert "special" in bars.hovertext[0]
    assert "special" not in bars.hovertext[1]
    assert figure.layout.meta["table"]["rows"][2] == ["<b>", 9, 2.5]


def test_rows_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="2 pieces, 1 ids"):
        charts.row_lengths(["a", "b"], [1], [1.0], special=[False], title="Rows")
