"""Bars, maps and series of any numbers hold what they were given, name it on hover, and have it in their table."""

import numpy as np
import pytest

from glassformer import charts
from glassformer.charts.grammar import stroke, upright
from glassformer.charts.marks import LOGARITHMIC, Axis, Numbers, Places, Scale, Series, bars, heat, lines
from glassformer.charts.theme import MARK_COLOR, NEUTRAL_COLOR, SCALES, SIGNED_SCALE, figure_in, literal
from transformer.i18n import say

PIECES = ["▁a", "<b>", "▁a", "$x$"]
VALUES = np.array([0.5, -2.0, np.nan, 1.0], np.float32)
NUMBERS = Numbers(say("activation"), VALUES)
CELLS = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
LOOK = stroke(NEUTRAL_COLOR, 2, size=6)
BARS = {"marker": {"color": NEUTRAL_COLOR}}
SHIFTS = Places(say("Shift"), [1, 2, 5], say("shift {k}", k="%{x}"))
THREE = Axis(say("Token"), PIECES[:3])


def axis(side="source", **more):
    return Axis(say("Token"), PIECES, side, **more)


@pytest.mark.parametrize("more", [{}, {"ends": "{:+.2g}".format, "signed": True}, {"chosen": 8}])
def test_bars_have_their_numbers_a_table_and_escaped_names_and_the_chosen_one_stands_out(more):
    ends = {"ends": lambda i: more["ends"](VALUES[i])} if "ends" in more else {}
    made = bars(say("t"), axis(clicks=[9, 8, 7, 6]), NUMBERS, Numbers(say("id"), VALUES + 1), **more | ends)
    figure = figure_in(made["spec"], "en")
    (drawn,) = figure.data
    np.testing.assert_array_equal(drawn.x if "ends" in more else drawn.y, VALUES)  # NaN is not drawn as 0
    assert list(drawn.customdata) == [9, 8, 7, 6]
    assert literal("<b>") in drawn.hovertext[1]
    assert figure.layout.meta["table"]["columns"] == ["Token", "activation", "id"]
    assert figure.layout.meta["table"]["rows"][1:3] == [["<b>", -2.0, -1.0], ["▁a", None, None]]
    assert "The largest is <b>: activation" in str(made["alt"])
    at_ends = [(note.text, note.xanchor) for note in figure.layout.annotations][:2]  # left of those that go left
    assert at_ends == ([("+0.5", "left"), ("-2", "right")] if ends else [])
    shades = drawn.marker.color
    assert (shades[1] != shades[0]) == bool(more)
    with pytest.raises(ValueError, match="one for each"):
        bars(say("t"), axis(), NUMBERS, Numbers(say("id"), np.zeros(3)))


def test_the_histogram_stands_under_the_function_and_both_have_one_0():
    curves = {"x": np.array([-1.0, 1.0]), "values": np.array([-0.1, 1.0]), "slopes": np.array([0.0, 1.0])}
    given = {**curves, "function": "GELU", "piece": "<b>", "title": "t"}
    edges, shares = np.array([-1.0, 0.0, 1.0]), np.array([0.75, 0.25])
    figure = charts.pre_activations(edges, shares, np.array([0.5, 0.5]), **given)
    drawn, own, function, slope = figure.data
    assert (list(drawn.x), list(drawn.y), list(own.y)) == ([-0.5, 0.5], [0.75, 0.25], [0.5, 0.5])
    assert (own.name, function.name, function.yaxis) == (literal("<b>"), "GELU(x)", "y2")
    np.testing.assert_array_equal([function.y, slope.y], [curves["values"], curves["slopes"]])
    left, right = figure.layout.yaxis.range, figure.layout.yaxis2.range
    assert left[0] / left[1] == pytest.approx(right[0] / right[1])
    with pytest.raises(ValueError, match="do not fit"):
        charts.pre_activations(edges, np.zeros(3), np.zeros(2), **given)


def draw(rows, columns, values=CELLS, **more):
    made = heat(say("A <map>"), Axis(say("Row"), rows), Axis(say("Column"), columns), Numbers("v", values), **more)
    return figure_in(made["spec"], "en")


def test_rows_and_columns_are_named_by_pieces_by_numbers_or_by_lines_of_their_own():
    figure = draw(range(3), [0, 1, 8, 9])
    assert figure.data[0].customdata[2, 3].tolist() == ["<b>2</b>", "<b>9</b>"]
    assert list(figure.layout.xaxis.ticktext) == ["0", "1", "8", "9"]
    assert (figure.layout.yaxis.range, figure.layout.yaxis.ticktext) == ((2.5, -0.5), None)  # 0 on top
    layers, both = Axis(say("Layer"), ["1", "2"], counted=False), np.stack([VALUES, VALUES * 3])
    made = heat(say("t"), layers, axis(), Numbers(say("v"), both))
    drawn = figure_in(made["spec"], "en").data[0]
    assert drawn.customdata[1][1].tolist() == ["<b>2</b>", f"2: <b>{literal('<b>')}</b>"]
    assert "2 rows (Layer) and 4 columns (Token); v: −6 to 3" in str(made["alt"]).replace("-6", "−6")
    says = ["one", "two", "three"]  # which speak for themselves
    made = heat(say("t"), Axis(say("Row"), says, says=says), Axis(say("C"), range(4)), Numbers("v", CELLS, ".6g"))
    drawn = figure_in(made["spec"], "en").data[0]
    assert drawn.customdata[1, 1].tolist() == ["two", "<b>1</b>"]
    with pytest.raises(ValueError, match="one label for each"):
        draw(range(3), range(5))


def test_signed_numbers_have_0_in_the_middle_of_their_scale_and_closed_cells_do_not_count():
    drawn = draw("abc", "abcd", signed=True).data[0]
    np.testing.assert_array_equal(drawn.z, CELLS)
    assert drawn.zmax == -drawn.zmin == pytest.approx(np.abs(CELLS).max())
    assert [list(stop) for stop in drawn.colorscale] == SIGNED_SCALE
    open_cells = np.abs(CELLS) < 0.5
    some = draw("abc", "abcd", signed=True, allowed=open_cells).data[0]
    assert some.zmax == pytest.approx(np.abs(CELLS[open_cells]).max())
    assert np.isnan(some.z[~open_cells]).all()
    assert draw("abc", "abcd", np.zeros((3, 4)), signed=True).data[0].zmax == 1


def test_numbers_stand_in_their_cells_pale_on_strong_ones_and_none_where_there_is_none():
    values = np.array([[0.0, 0.5, 1.0, np.nan]])
    figure = draw(range(1, 2), range(1, 5), values, written=".2f", limits=None, marked_row=0, marked_cell=(0, 2))
    notes = figure.layout.annotations
    assert [(note.x, note.y, note.text) for note in notes] == [(0, 0, "0.00"), (1, 0, "0.50"), (2, 0, "1.00")]
    assert [note.font.color for note in notes] == [MARK_COLOR, MARK_COLOR, SCALES["neutral"][0][1]]
    assert "not a finite number" in figure.data[1].hovertemplate
    row, cell = figure.layout.shapes
    assert (row.x0, row.x1, cell.x0, cell.x1) == (-0.5, 3.5, 1.5, 2.5)


def series(across, *given, up=None, **more):
    made = lines(say("Errors"), across, up or Scale(say("Error")), given, **more)
    return figure_in(made["spec"], "en"), str(made["alt"])


def test_lines_over_numbers_have_names_clicks_and_gaps():
    one = Series("<one>", np.array([1e-7, np.nan, 3e-8]), LOOK, clicks=[1, 2, 5], number="%{y:.3g}")
    shade = Series("least", [0, 0, 0], {"line": {"width": 0}}, "lines", number="")
    figure, alt = series(SHIFTS, one, shade, top=90, note="no <b>", shapes=[upright(5)])
    np.testing.assert_array_equal(figure.data[0].y, [1e-7, np.nan, 3e-8])
    assert (list(figure.data[0].x), list(figure.data[0].customdata)) == ([1, 2, 5], [1, 2, 5])
    assert figure.data[0].hovertemplate == f"shift %{{x}}<br>{literal('<one>')} <b>%{{y:.3g}}</b><extra></extra>"
    assert figure.data[1].hoverinfo == "skip"
    assert figure.layout.shapes[0].x0 == 5
    assert alt == "Errors. <one>: 3 × 10⁻⁸ to 1 × 10⁻⁷. Horizontal axis: Shift."
    _, alt = series(SHIFTS, *(Series(f"head {n}", [n, 1, 2], LOOK) for n in range(9)))
    assert "9 series: 0 to 8" in alt


def test_places_with_names_have_them_on_hover_and_in_the_table_and_scales_stand_below_each_other():
    upper, lower = Scale(say("Mean"), {"domain": [0.5, 1]}), Scale(say("Rank"), {"domain": [0, 0.4]} | LOGARITHMIC)
    one = Series("v", np.array([1, np.inf, 3.0]), LOOK)
    figure, alt = series(THREE, one, Series("w", [4, 5, 6], BARS, "bar", scale=1), up=(upper, lower))
    assert figure.data[0].hovertext[1] == f"2: <b>{literal('<b>')}</b>"
    assert figure.layout.meta["table"]["columns"] == ["Token number", "Token", "v", "w"]
    assert figure.layout.meta["table"]["rows"][1] == [2, "<b>", None, 5]
    assert "v: 1 to 3; w: 4 to 6" in alt
    assert (figure.data[1].yaxis, figure.layout.xaxis.anchor, figure.layout.yaxis2.type) == ("y2", "y2", "log")
    with pytest.raises(ValueError, match="of v for 3 places"):
        series(SHIFTS, Series("v", [1.0, 2.0], LOOK))
