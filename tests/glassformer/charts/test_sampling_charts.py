"""The charts of sampling: before the draw, and of many draws."""

from glassformer import charts
from glassformer.charts.candidates import Shares
from glassformer.charts.draws import Drawn
from glassformer.charts.theme import TARGET_COLOR

ROWS = [
    Shares("<b>a</b>", 0.7, 0.5, 0.6, id=4, drawn=True),
    Shares("b", 0.2, 0.3, 0.4, id=9),
    Shares("%{x}", 0.06, 0.12, 0.0, id=2, note="cut off by top-k"),
]
OTHERS = Shares("7 others", 0.04, 0.08, 0.0)
DRAWN = [Drawn("<i>one</i>", 8, 0.8, 0.75, 0.6, 0.5, 0.94, 3), Drawn("two", 2, 0.2, 0.1, 0.05, 0.06, 0.5, 7)]


def named(figure, name):
    return next(trace for trace in figure.data if trace.name == name)


def test_each_piece_has_three_marks_of_three_shapes():
    figure = charts.reshaped(ROWS, others=(7, OTHERS), border=2, title="T")
    bars, diamonds, ticks = (named(figure, name) for name in ("sampling probability", "tempered", "model's own"))
    assert list(bars.x) == [0.6, 0.4, 0.0, 0.0]
    assert list(diamonds.x) == [0.5, 0.3, 0.12, 0.08]
    assert list(ticks.x) == [0.7, 0.2, 0.06, 0.04]
    assert diamonds.marker.symbol != ticks.marker.symbol
    assert list(figure.layout.xaxis.range) == [0, 1]


def test_a_line_stands_where_the_cut_is_and_the_edge_says_what_is_cut():
    figure = charts.reshaped(ROWS, others=(7, OTHERS), border=2, title="T")
    assert figure.layout.shapes[0].y0 == 1.5
    assert [note.text for note in figure.layout.annotations] == ["0.60", "0.40", "cut off", "0.00"]
    assert not charts.reshaped(ROWS[:2], others=None, border=None, title="T").layout.shapes


def test_every_row_can_be_pointed_at_and_pieces_are_no_markup():
    figure = charts.reshaped(ROWS, others=(7, OTHERS), border=None, title="T")
    whole = figure.data[-1]
    assert list(whole.customdata) == [4, 9, 2, -1]
    assert all(x == 1 for x in whole.x)
    assert "0.12000" in whole.hovertext[2]
    assert "cut off by top-k" in whole.hovertext[2]
    assert "<b>a</b>" not in str(figure.layout.yaxis.ticktext) + str(whole.hovertext)


def test_an_output_has_its_share_its_interval_and_its_probabilities():
    figure = charts.draws(DRAWN, title="T", chosen=1)
    bars = named(figure, "share")
    assert list(bars.x) == [0.8, 0.2]
    assert [round(a, 9) for a in bars.error_x.array] == [0.14, 0.3]
    assert [round(a, 9) for a in bars.error_x.arrayminus] == [0.3, 0.14]
    assert list(named(figure, "probability").x) == [0.75, 0.1]
    assert list(named(figure, "model's own").x) == [0.6, 0.05]
    assert list(bars.marker.color)[1] == TARGET_COLOR
    whole = figure.data[-1]
    assert list(whole.customdata) == [3, 7]
    assert "95 % interval from 0.500 to 0.940" in whole.hovertext[0]
    assert "drawn 8 times" in whole.hovertext[0]
    assert "<i>one" not in str(whole.hovertext) + str(figure.layout.yaxis.ticktext)
