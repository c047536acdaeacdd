"""The charts of neurons hold the numbers they were given, and name them."""

import numpy as np
import pytest

from glassformer import charts
from glassformer.charts.theme import DARK_COLORS, literal
from tests.glassformer.charts.test_positions import colours

RANDOM = np.random.default_rng(0)
PIECES = ["▁a", "<b>", "▁a", "$x$"]
NUMBERS = RANDOM.random((4, 3)).astype(np.float32)
EDGES = np.array([-1.0, 0.0, 1.0])
CURVES = {"x": np.array([-1.0, 1.0]), "values": np.array([-0.1, 1.0]), "slopes": np.array([0.0, 1.0])}
HISTOGRAM = {**CURVES, "function": "GELU", "piece": "<b>", "title": "t"}


def test_shares_are_a_map_of_layers_and_tokens():
    figure = charts.silent_shares(
        NUMBERS.T, PIECES, marked=(1, 2), title="t", token_axis="Piece", value_name="share of zeros"
    )
    np.testing.assert_array_equal(figure.data[0].z, NUMBERS.T)
    assert figure.data[0].customdata[1][1].tolist() == ["<b>2</b>", f"2: <b>{literal('<b>')}</b>"]
    assert (figure.data[0].zmin, figure.data[0].zmax) == (0, 1)
    frame = figure.layout.shapes[0]
    assert (frame.x0, frame.x1, frame.y0, frame.y1) == (1.5, 2.5, 0.5, 1.5)
    assert figure.data[0].texttemplate == "%{z:.1%}"
    many = charts.silent_shares(np.zeros((2, 9)), ["a"] * 9, marked=(0, 0), title="t", token_axis="p", value_name="v")
    assert many.data[0].texttemplate is None


def test_the_histogram_stands_under_the_function_and_both_have_one_0():
    figure = charts.pre_activations(EDGES, np.array([0.75, 0.25]), np.array([0.5, 0.5]), **HISTOGRAM)
    bars, own, function, slope = figure.data
    np.testing.assert_array_equal(bars.x, [-0.5, 0.5])
    np.testing.assert_array_equal(bars.y, [0.75, 0.25])
    np.testing.assert_array_equal(own.y, [0.5, 0.5])
    assert own.name == literal("<b>")
    np.testing.assert_array_equal(function.y, CURVES["values"])
    np.testing.assert_array_equal(slope.y, CURVES["slopes"])
    assert (function.name, function.yaxis) == ("GELU(x)", "y2")
    left, right = figure.layout.yaxis.range, figure.layout.yaxis2.range
    assert left[0] < 0
    assert left[0] / left[1] == pytest.approx(right[0] / right[1])


def test_the_most_active_have_their_number_and_what_they_write():
    figure = charts.active_neurons([7, 0], np.array([2.0, 1.0]), np.array([2.0, 1.0]), np.array([3.0, 0.5]),
                                   chosen=0, title="t", colour="target")  # fmt: skip
    (bars,) = figure.data
    assert list(bars.customdata) == [7, 0]
    assert list(figure.layout.yaxis.ticktext) == ["8", "1"]
    np.testing.assert_array_equal(bars.x, [2, 1])
    assert bars.marker.color[0] != bars.marker.color[1]
    assert [note.text for note in figure.layout.annotations] == ["2.00 (3.00)", "1.00 (0.500)"]
    assert figure.layout.meta["table"]["rows"] == [[8, 2.0, 2.0, 3.0], [1, 1.0, 1.0, 0.5]]


def test_a_neuron_has_a_bar_for_each_token():
    figure = charts.neuron_tokens(NUMBERS[:, 0], -NUMBERS[:, 1], PIECES, chosen=2, title="t", token_axis="Piece")
    (bars,) = figure.data
    np.testing.assert_array_equal(bars.y, NUMBERS[:, 0])
    assert list(bars.customdata) == [0, 1, 2, 3]
    assert literal("<b>") in bars.hovertext[1]
    assert f"pre-activation −{abs(NUMBERS[1, 1]):.4g}" in bars.hovertext[1]
    assert [shade == bars.marker.color[2] for shade in bars.marker.color] == [False, False, True, False]


def test_the_map_of_neurons_marks_token_and_neuron():
    options = {"title": "t", "token_axis": "Piece"}
    figure = charts.neuron_map(NUMBERS, [9, 4, 0], PIECES, marked=(1, 2), **options)
    np.testing.assert_array_equal(figure.data[0].z, NUMBERS)
    assert figure.data[0].customdata[1][0].tolist() == [f"2: <b>{literal('<b>')}</b>", "<b>10</b>"]
    assert len(figure.layout.shapes) == 2
    assert len(charts.neuron_map(NUMBERS, [9, 4, 0], PIECES, marked=(1, None), **options).layout.shapes) == 1


def test_an_effect_goes_both_ways_and_says_how_far():
    figure = charts.logit_effect(["<b>", "x"], [0.5, -0.25], [3, 4], title="t")
    (bars,) = figure.data
    np.testing.assert_array_equal(bars.x, [0.5, -0.25])
    assert list(figure.layout.yaxis.ticktext) == [literal("<b>"), "x"]
    assert [(note.text, note.xanchor) for note in figure.layout.annotations] == [
        ("+0.50", "left"),
        ("-0.25", "right"),
    ]
    assert figure.layout.meta["table"]["rows"] == [["<b>", 3, 0.5], ["x", 4, -0.25]]


def test_numbers_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="do not fit"):
        charts.pre_activations(EDGES, np.zeros(3), np.zeros(2), **HISTOGRAM)
    with pytest.raises(ValueError, match="one number for each"):
        charts.active_neurons([1], np.zeros(2), np.zeros(1), np.zeros(1), chosen=None, title="t")
    with pytest.raises(ValueError, match="one for each"):
        charts.neuron_tokens(np.zeros(2), np.zeros(2), ["a"], chosen=0, title="t", token_axis="p")
    with pytest.raises(ValueError, match="one for each"):
        charts.logit_effect(["a"], [1.0, 2.0], [1], title="t")


def test_every_colour_has_a_dark_twin():
    row = NUMBERS[:, 0]
    for colour in ("source", "target"):
        options = {"title": "t", "colour": colour}
        specs = [
            charts.silent_shares_spec(NUMBERS, list("abc"), marked=(0, 0), token_axis="p", value_name="v", **options),
            charts.pre_activations_spec(EDGES, row[:2], row[:2], **(HISTOGRAM | options)),
            charts.active_neurons_spec([0, 1, 2, 3], row, row, row, chosen=1, **options),
            charts.neuron_tokens_spec(row, row, PIECES, chosen=0, token_axis="p", **options),
            charts.neuron_map_spec(NUMBERS, [0, 1, 2], PIECES, marked=(0, 0), token_axis="p", **options),
            charts.logit_effect_spec(["a", "b"], [1.0, -1.0], [0, 1], title="t"),
        ]
        for spec in specs:
            assert colours(spec) <= DARK_COLORS.keys()
            assert spec["layout"]["height"] > 100
