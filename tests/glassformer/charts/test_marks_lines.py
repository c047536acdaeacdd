"""The general chart of series holds the numbers it was given, names them on hover, and says in words where they are."""

import numpy as np
import pytest

from glassformer.charts.grammar import stroke, upright
from glassformer.charts.marks import LOGARITHMIC, Axis, Places, Scale, Series, lines
from glassformer.charts.theme import DARK_COLORS, NEUTRAL_COLOR, figure_in, literal
from tests.glassformer.charts.test_positions import colours
from transformer.i18n import say

LOOK = stroke(NEUTRAL_COLOR, 2, size=6)
BARS = {"marker": {"color": NEUTRAL_COLOR}}
SHIFTS = Places(say("Shift"), [1, 2, 5], say("shift {k}", k="%{x}"))
PIECES = Axis(say("Piece"), ["▁a", "<b>", "▁a"])


ERROR = Scale(say("Error"))


def drawn(across, series, up=ERROR, **more):
    made = lines(say("Errors"), across, up, series, **more)
    assert colours(made["spec"]) <= DARK_COLORS.keys()
    return figure_in(made["spec"], "en"), str(made["alt"])


def test_lines_over_numbers_have_names_clicks_and_gaps():
    one = Series("<one>", np.array([1e-7, np.nan, 3e-8]), LOOK, clicks=[1, 2, 5], number="%{y:.3g}")
    shade = Series("least", [0, 0, 0], {"line": {"width": 0}}, "lines", number="")
    figure, alt = drawn(SHIFTS, [one, shade], top=90, note="no <b>", shapes=[upright(5)])
    np.testing.assert_array_equal(figure.data[0].y, [1e-7, np.nan, 3e-8])
    assert (list(figure.data[0].x), list(figure.data[0].customdata)) == ([1, 2, 5], [1, 2, 5])
    assert figure.data[0].name == literal("<one>")
    assert figure.data[0].hovertemplate == f"shift %{{x}}<br>{literal('<one>')} <b>%{{y:.3g}}</b><extra></extra>"
    assert figure.data[1].hoverinfo == "skip"
    assert figure.layout.showlegend
    assert figure.layout.shapes[0].x0 == 5
    assert figure.layout.title.subtitle.text == f"no {literal('<b>')}"
    assert (figure.layout.xaxis.title.text, figure.layout.xaxis.dtick) == ("Shift", 1)
    assert alt == "Errors. <one>: 3 × 10⁻⁸ to 1 × 10⁻⁷. Horizontal axis: Shift."


def test_a_series_may_stand_at_places_of_its_own_and_say_more():
    ring = Series("score", [2.0], LOOK, "markers", at=[2], texts=["actual"])
    figure, _ = drawn(SHIFTS, [Series("score", [1.0, 2.0, 3.0], LOOK), ring])
    assert (figure.data[1].x[0], figure.data[1].y[0]) == (2, 2)
    assert "%{hovertext}" in figure.data[1].hovertemplate
    assert "%{hovertext}" not in figure.data[0].hovertemplate
    assert not figure.layout.showlegend


@pytest.mark.parametrize(("look", "kind", "sizes"), [(LOOK, "lines+markers", [6, 13, 6]), (BARS, "bar", None)])
def test_the_chosen_mark_stands_out(look, kind, sizes):
    figure, _ = drawn(PIECES, [Series("v", [1.0, 2.0, 3.0], look, kind, chosen=1)])
    assert list(figure.data[0].marker.line.width) == [0, 2, 0]
    assert (None if sizes is None else list(figure.data[0].marker.size)) == sizes
    assert "line" not in look["marker"]  # the look may be another series' too


def test_places_with_names_have_them_on_hover_and_in_the_table():
    figure, alt = drawn(PIECES, [Series("v", np.array([1, np.inf, 3.0]), LOOK), Series("w", [4, 5, 6], BARS, "bar")])
    assert figure.data[0].hovertext[1] == f"2: <b>{literal('<b>')}</b>"
    assert figure.layout.meta["table"]["columns"] == ["Piece number", "Piece", "v", "w"]
    assert figure.layout.meta["table"]["rows"][1] == [2, "<b>", None, 5]
    assert figure.layout.barmode == "group"
    assert "v: 1 to 3; w: 4 to 6" in alt


def test_scales_stand_below_each_other():
    upper, lower = Scale(say("Mean"), {"domain": [0.5, 1]}), Scale(say("Rank"), {"domain": [0, 0.4]} | LOGARITHMIC)
    both = [Series("v", [1.0, 2.0, 3.0], LOOK), Series("w", [4.0, 5.0, 6.0], LOOK, scale=1)]
    figure, _ = drawn(PIECES, both, (upper, lower))
    assert (figure.data[1].yaxis, figure.layout.xaxis.anchor, figure.layout.yaxis2.type) == ("y2", "y2", "log")
    assert figure.layout.yaxis2.title.text == "Rank"


@pytest.mark.parametrize("clicks", [None, range(100)])
def test_a_line_of_many_places_has_no_marks_unless_they_are_clicked(clicks):
    many = Places(say("Distance"), np.arange(100), "%{x}")
    figure, _ = drawn(many, [Series("v", np.zeros(100), LOOK, clicks=clicks)])
    assert figure.data[0].mode == ("lines" if clicks is None else "lines+markers")
    assert figure.layout.xaxis.dtick is None


def test_many_series_are_said_together_and_none_is_said_to_be_none():
    _, alt = drawn(SHIFTS, [Series(f"head {n}", [n, 1, 2], LOOK) for n in range(9)])
    assert "9 series: 0 to 8" in alt
    figure, alt = drawn(Axis(say("Piece"), []), [Series("v", [], LOOK)])
    assert (figure.data, alt) == ((), "Errors: no numbers.")


def test_a_number_for_each_place():
    with pytest.raises(ValueError, match="of v for 3 places"):
        drawn(SHIFTS, [Series("v", [1.0, 2.0], LOOK)])
