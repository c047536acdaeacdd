"""The general charts hold the numbers they were given and name them; so does that of pre-activations."""

import numpy as np
import pytest

from glassformer import charts
from glassformer.charts.marks import Axis, Numbers, bars, heat
from glassformer.charts.theme import DARK_COLORS, figure_in, literal
from tests.glassformer.charts.test_positions import colours
from transformer.i18n import say

PIECES = ["▁a", "<b>", "▁a", "$x$"]
VALUES = np.array([0.5, -2.0, np.nan, 1.0], np.float32)
NUMBERS = Numbers(say("activation"), VALUES)
EDGES = np.array([-1.0, 0.0, 1.0])
CURVES = {"x": np.array([-1.0, 1.0]), "values": np.array([-0.1, 1.0]), "slopes": np.array([0.0, 1.0])}
HISTOGRAM = {**CURVES, "function": "GELU", "piece": "<b>", "title": "t"}


def axis(side="source", **more):
    return Axis(say("Piece"), PIECES, side, **more)


def test_the_histogram_stands_under_the_function_and_both_have_one_0():
    figure = charts.pre_activations(EDGES, np.array([0.75, 0.25]), np.array([0.5, 0.5]), **HISTOGRAM)
    drawn, own, function, slope = figure.data
    np.testing.assert_array_equal(drawn.x, [-0.5, 0.5])
    np.testing.assert_array_equal(drawn.y, [0.75, 0.25])
    np.testing.assert_array_equal(own.y, [0.5, 0.5])
    assert own.name == literal("<b>")
    np.testing.assert_array_equal(function.y, CURVES["values"])
    np.testing.assert_array_equal(slope.y, CURVES["slopes"])
    assert (function.name, function.yaxis) == ("GELU(x)", "y2")
    left, right = figure.layout.yaxis.range, figure.layout.yaxis2.range
    assert left[0] < 0
    assert left[0] / left[1] == pytest.approx(right[0] / right[1])
    with pytest.raises(ValueError, match="do not fit"):
        charts.pre_activations(EDGES, np.zeros(3), np.zeros(2), **HISTOGRAM)


@pytest.mark.parametrize("side", ["source", "target", "neutral"])
@pytest.mark.parametrize("more", [{}, {"ends": "{}".format}, {"ends": "{}".format, "signed": True}, {"chosen": 8}])
def test_bars_have_their_numbers_a_table_and_escaped_names(side, more):
    made = bars(say("t"), axis(side, clicks=[9, 8, 7, 6]), NUMBERS, Numbers(say("id"), VALUES + 1), **more)
    figure = figure_in(made["spec"], "en")
    (drawn,) = figure.data
    np.testing.assert_array_equal(drawn.x if "ends" in more else drawn.y, VALUES)  # NaN is not drawn as 0
    assert list(drawn.customdata) == [9, 8, 7, 6]
    assert literal("<b>") in drawn.hovertext[1]
    assert figure.layout.meta["table"]["columns"] == ["Piece", "activation", "id"]
    assert figure.layout.meta["table"]["rows"][1:3] == [["<b>", -2.0, -1.0], ["▁a", None, None]]
    assert "The largest is <b>: activation" in str(made["alt"])
    assert colours(made["spec"]) <= DARK_COLORS.keys()
    assert len(figure.layout.annotations) == (4 if "ends" in more else 0)
    shades = drawn.marker.color
    assert (shades[1] != shades[0]) == bool({"signed", "chosen"} & more.keys())


def test_a_map_has_its_numbers_and_the_names_of_its_axes():
    values = np.stack([VALUES, VALUES * 3])
    made = heat(say("t"), Axis(say("Layer"), ["1", "2"], counted=False), axis(), Numbers(say("v"), values))
    figure = figure_in(made["spec"], "en")
    np.testing.assert_array_equal(figure.data[0].z, values)
    assert figure.data[0].customdata[1][1].tolist() == ["<b>2</b>", f"2: <b>{literal('<b>')}</b>"]
    assert "2 rows (Layer) and 4 columns (Piece); v: −6 to 3" in str(made["alt"]).replace("-6", "−6")
    assert colours(made["spec"]) <= DARK_COLORS.keys()


def test_without_places_nothing_is_drawn():
    none = Axis(say("Piece"), [])
    assert not bars(say("t"), none, Numbers(say("v"), np.zeros(0)))["spec"]["data"]
    assert not heat(say("t"), none, none, Numbers(say("v"), np.zeros((0, 0))))["spec"]["data"]


def test_what_stands_at_the_ends_of_bars_is_left_of_those_that_go_left():
    made = bars(say("t"), axis(counted=False), NUMBERS, signed=True, ends=lambda i: f"{VALUES[i]:+#.2g}")
    figure = figure_in(made["spec"], "en")
    assert [(note.text, note.xanchor) for note in figure.layout.annotations][:2] == [
        ("+0.50", "left"),
        ("-2.0", "right"),
    ]
    assert list(figure.layout.yaxis.ticktext)[:2] == ["▁a", literal("<b>")]
    low, high = figure.layout.xaxis.range
    assert low == -high


def test_the_chosen_bar_alone_stands_out():
    (drawn,) = bars(say("t"), axis(), NUMBERS, chosen=2)["spec"]["data"]
    shades = drawn["marker"]["color"]
    assert [shade == shades[2] for shade in shades] == [False, False, True, False]


def test_a_map_marks_a_row_and_a_cell():
    made = heat(say("t"), axis(), axis(), Numbers(say("v"), np.eye(4)), marked_row=1, marked_cell=(1, 2))
    row, cell = made["spec"]["layout"]["shapes"]
    assert (cell["x0"], cell["x1"], cell["y0"], cell["y1"]) == (1.5, 2.5, 0.5, 1.5)
    assert (row["x0"], row["x1"]) == (-0.5, 3.5)
    assert (made["spec"]["data"][0]["zmin"], made["spec"]["data"][0]["zmax"]) == (0, 1)


@pytest.mark.parametrize("also", [(), (Numbers(say("id"), np.zeros(3)),)])
def test_numbers_that_do_not_fit_are_refused(also):
    what = NUMBERS if also else Numbers(say("v"), np.zeros(2))
    with pytest.raises(ValueError, match="one for each"):
        bars(say("t"), axis(), what, *also)
