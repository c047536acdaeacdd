import numpy as np
import plotly.graph_objects as go
import pytest

from glassformer import charts
from glassformer.charts.theme import MARK_COLOR, SCALES, literal

ROWS = ["<s> → ▁a", "▁a → ▁a", "▁a → </s>"]


@pytest.fixture
def means():
    return np.random.default_rng(1).random((3, 4))


def draw(means, **options):
    return charts.head_measure(means, title="All heads: entropy (bits)", value_name="bits", **options)


def draw_rows(values, **options):
    return charts.row_measure(values, ROWS, title="Layer 1, head 2: entropy", value_name="Bits", **options)


def test_every_head_has_its_cell_and_its_number(means):
    figure = draw(means)
    assert isinstance(figure, go.Figure)
    np.testing.assert_allclose(figure.data[0].z, means, rtol=1e-6)
    written = {(note.y, note.x): note.text for note in figure.layout.annotations}
    assert written == {place: f"{value:.2f}" for place, value in np.ndenumerate(means)}


def test_layer_1_is_on_top_and_hover_counts_from_1(means):
    figure = draw(means)
    assert tuple(figure.layout.yaxis.range) == (2.5, -0.5)
    assert figure.data[0].customdata[2][3].tolist() == ["<b>3</b>", "<b>4</b>"]
    assert figure.data[0].hovertemplate.startswith("Layer %{customdata[0]}<br>Head %{customdata[1]}<br>bits")


def test_the_chosen_head_is_framed_if_it_exists(means):
    (frame,) = draw(means, chosen=(1, 2)).layout.shapes
    assert (frame.y0, frame.y1, frame.x0, frame.x1) == (0.5, 1.5, 1.5, 2.5)
    for nowhere in (None, (3, 0), (0, 4)):
        assert not draw(means, chosen=nowhere).layout.shapes


def test_the_scale_goes_from_the_smallest_to_the_largest_unless_told(means):
    own, told = draw(means), draw(means, limits=(0, 1))
    assert (own.data[0].zmin, own.data[0].zmax) == pytest.approx((means.min(), means.max()))
    assert (told.data[0].zmin, told.data[0].zmax) == (0, 1)


def test_numbers_are_pale_on_strong_cells_alone():
    figure = draw(np.array([[0.0, 0.5, 1.0]]))
    pale = SCALES["neutral"][0][1]
    assert [note.font.color for note in figure.layout.annotations] == [MARK_COLOR, MARK_COLOR, pale]


def test_a_head_without_a_number_has_none_written(means):
    means[1, 1] = np.nan
    figure = draw(means)
    assert np.isnan(figure.data[0].z[1, 1])
    assert (1, 1) not in {(note.y, note.x) for note in figure.layout.annotations}
    assert "not a finite number" in figure.data[1].hovertemplate


def test_many_heads_have_no_room_for_numbers():
    assert not draw(np.ones((2, 17))).layout.annotations
    assert len(draw(np.ones((2, 12))).layout.annotations) == 24


def test_each_row_has_its_bar_and_the_line_is_their_mean():
    figure = draw_rows(np.array([0.5, 2.0, 0.2]))
    np.testing.assert_array_equal(figure.data[0].y, [0.5, 2.0, 0.2])
    assert list(figure.data[0].hovertext) == [f"{n}: <b>{literal(row)}</b>" for n, row in enumerate(ROWS, start=1)]
    (line,) = figure.layout.shapes
    assert (line.y0, line.y1) == pytest.approx((0.9, 0.9))


def test_rows_that_do_not_count_have_no_bar():
    figure = draw_rows(np.array([np.nan, 1.0, 0.5]), marked_row=2)
    assert list(figure.data[0].x) == [1, 2]
    assert list(figure.data[0].customdata) == [1, 2]
    assert list(figure.data[0].marker.line.width) == [0, 2]
    assert figure.layout.shapes[0].y0 == pytest.approx(0.75)
    assert tuple(figure.layout.xaxis.range) == (-0.5, 2.5)
    assert not draw_rows(np.full(3, np.nan)).data


def test_a_measure_with_a_most_is_drawn_up_to_it():
    assert tuple(draw_rows(np.array([0.1, 0.2, 0.1]), top=1.0).layout.yaxis.range) == (0, 1)
    assert draw_rows(np.array([0.1, 0.2, 0.1])).layout.yaxis.rangemode == "tozero"


def test_sizes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="values for 3 rows"):
        draw_rows(np.ones(2))
