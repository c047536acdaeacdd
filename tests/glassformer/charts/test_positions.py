"""The charts of the Positions page hold the numbers they were given, and say what they show."""

import numpy as np
import pytest

from glassformer import charts
from glassformer.charts.embedding import Strengths
from glassformer.charts.positions import ErrorLine
from glassformer.charts.theme import SCALES, SIGNED_SCALE, literal

RANDOM = np.random.default_rng(0)


def colours(value):
    """Every colour named in a figure's plain data."""
    if isinstance(value, str) and value.startswith("#"):
        return {value}
    if isinstance(value, dict):
        return set().union(*map(colours, value.values()), set())
    return set().union(*map(colours, value), set()) if isinstance(value, list | tuple) else set()


def test_the_table_is_drawn_as_it_is_around_0():
    values = RANDOM.normal(size=(3, 4)).astype(np.float32)
    figure = charts.position_table(
        values, positions=range(3), dimensions=[0, 1, 8, 9], title="A <table>", note="Drawn: <some>."
    )
    trace = figure.data[0]
    np.testing.assert_array_equal(trace.z, values)
    assert trace.zmax == -trace.zmin == pytest.approx(np.abs(values).max())
    assert trace.customdata[2, 3].tolist() == ["p = <b>2</b>", "dimension <b>9</b>"]
    assert list(figure.layout.xaxis.ticktext) == ["0", "1", "8", "9"]
    assert figure.layout.yaxis.range[0] > figure.layout.yaxis.range[1]  # position 0 on top
    assert figure.layout.title.text == literal("A <table>")
    assert figure.layout.title.subtitle.text == literal("Drawn: <some>.")


def test_places_that_only_count_have_round_numbers_and_others_their_own():
    plain = charts.position_table_spec(np.zeros((64, 256)), positions=range(64), dimensions=range(256), title="t")
    assert "ticks" not in plain["layout"]["meta"]
    assert "ticktext" not in plain["layout"]["xaxis"]
    assert plain["layout"]["xaxis"]["range"] == [-0.5, 255.5]
    assert plain["layout"]["yaxis"]["range"] == [63.5, -0.5]
    assert plain["layout"]["yaxis"]["title"]["text"] == "Position p"
    pairs = charts.position_similarity_spec(np.zeros((3, 3)), positions=[0, 2, 4], title="s")
    assert {name: axis["labels"] for name, axis in pairs["layout"]["meta"]["ticks"].items()} == {
        "xaxis": ["0", "2", "4"],
        "yaxis": ["0", "2", "4"],
    }


def test_a_map_has_a_label_for_each_row_and_column():
    with pytest.raises(ValueError, match="one for each"):
        charts.position_table(np.zeros((3, 4)), positions=range(3), dimensions=range(5), title="t")


def test_similarity_is_coloured_by_sign_only_if_there_are_signs():
    similar = np.array([[2.0, 1.0], [1.0, 2.0]])
    plain = charts.position_similarity_spec(similar, positions=[0, 1], title="s")["data"][0]
    np.testing.assert_array_equal(plain["z"], similar)
    assert (plain["zmin"], plain["zmax"], plain["colorscale"]) == (1, 2, SCALES["neutral"])
    signed = charts.position_similarity_spec(similar - 2, positions=[0, 1], title="s")["data"][0]
    assert (signed["zmin"], signed["zmax"], signed["colorscale"]) == (-1, 1, SIGNED_SCALE)


def test_curves_have_a_band_each_with_the_formula_beside():
    values, formula = RANDOM.normal(size=(2, 5, 3)).astype(np.float32)
    figure = charts.position_curves(
        values, formula, dimensions=[0, 7, 9], notes=["sine", "cosine", "<b>"], title="Curves"
    )
    for place in range(3):
        table, paper = figure.data[2 * place], figure.data[2 * place + 1]
        np.testing.assert_array_equal(table.y, values[:, place])
        np.testing.assert_array_equal(paper.y, formula[:, place])
        assert list(table.x) == [0, 1, 2, 3, 4]
        assert table.yaxis == paper.yaxis == ("y" if place == 0 else f"y{place + 1}")
    assert [note.text for note in figure.layout.annotations][2] == literal("Dimension 9; formula: <b>")
    assert figure.layout.yaxis2.title.text == "PE(p, 7)"
    bands = [figure.layout.yaxis.domain, figure.layout.yaxis2.domain, figure.layout.yaxis3.domain]
    assert bands[0][0] > bands[1][1] > bands[1][0] > bands[2][1]
    assert figure.layout.yaxis.range == figure.layout.yaxis3.range
    assert np.abs(values).max() < figure.layout.yaxis.range[1]


def test_curves_need_the_formula_of_the_same_dimensions():
    with pytest.raises(ValueError, match="numbers"):
        charts.position_curves(np.zeros((5, 2)), np.zeros((5, 3)), dimensions=[0, 1], notes=["", ""], title="t")


@pytest.mark.parametrize("d_model", [4, 5])
def test_every_dimension_has_the_wavelength_of_its_pair(d_model):
    waves = np.array([6.0, 60.0, 600.0])[: -(-d_model // 2)]
    periods, shares = np.arange(2.0, 2 + d_model), np.linspace(0, 1, d_model)
    figure = charts.wavelengths(waves, periods, shares, n_positions=128, title="Waves")
    line, measured, points = figure.data
    np.testing.assert_array_equal(line.y, [waves[dimension // 2] for dimension in range(d_model)])
    np.testing.assert_array_equal(points.y, periods)
    np.testing.assert_allclose(points.marker.opacity, 0.2 + 0.8 * shares, rtol=1e-6)
    assert points.hovertext[-1] == "100% of the variance"
    assert figure.layout.yaxis.type == "log"
    assert list(measured.y) == [128, 128]


def test_the_band_goes_from_the_least_to_the_largest():
    figure = charts.similarity_by_distance([3.0, 2.0], [3.0, 1.0], [3.0, 4.0], title="By distance")
    low, high, mean = figure.data
    np.testing.assert_array_equal(low.y, [3, 1])
    np.testing.assert_array_equal(high.y, [3, 4])
    np.testing.assert_array_equal(mean.y, [3, 2])
    assert high.fill == "tonexty"
    with pytest.raises(ValueError, match="one each"):
        charts.similarity_by_distance([3.0], [3.0, 1.0], [3.0], title="t")


def test_a_rotation_is_rings_crosses_and_an_angle():
    wanted, found = RANDOM.normal(size=(2, 4, 2)).astype(np.float32)
    figure = charts.shift_points(wanted, found, pair=3, shift=2, title="Shift", angle=np.pi / 2 + 2 * np.pi)
    arc, rings, crosses = figure.data
    np.testing.assert_array_equal(np.stack([rings.x, rings.y], axis=1), wanted)
    np.testing.assert_array_equal(np.stack([crosses.x, crosses.y], axis=1), found)
    assert list(crosses.hovertext) == ["p = 0", "p = 1", "p = 2", "p = 3"]
    assert (arc.x[1], arc.y[1]) == (0, 0.5)  # from the top
    assert (arc.x[-2], arc.y[-2]) == pytest.approx((0.5, 0), abs=1e-6)  # clockwise, whole turns left out
    assert "450°" in arc.hovertemplate
    assert figure.layout.xaxis.title.text == "Dimension 6 (sine)"
    assert figure.layout.yaxis.scaleanchor == "x"  # or a circle would be none


def test_fitted_and_held_out_positions_are_told_apart():
    points = RANDOM.normal(size=(5, 2))
    held_out = np.array([False, True, False, True, False])
    figure = charts.shift_points(points, points, pair=0, shift=1, title="Shift", held_out=held_out, unpaired=True)
    assert [list(trace.hovertext) for trace in figure.data[1:]] == [["p = 0", "p = 2", "p = 4"], ["p = 1", "p = 3"]]
    assert figure.layout.xaxis.title.text == "Dimension 0"
    with pytest.raises(ValueError, match="do not fit"):
        charts.shift_points(points, points[:4], pair=0, shift=1, title="t")


def test_errors_are_drawn_by_shift_and_an_exact_0_is_no_logarithm():
    lines = [ErrorLine("one", [1e-7, 0.0, 3e-8]), ErrorLine("two", [1.0, 2.0, 3.0])]
    log = charts.shift_errors([1, 2, 5], lines, shift=5, log=True, y_title="Error", title="Errors")
    np.testing.assert_array_equal(log.data[0].y, [1e-7, np.nan, 3e-8])
    assert list(log.data[0].x) == [1, 2, 5]
    assert list(log.data[0].customdata) == [1, 2, 5]
    assert log.layout.shapes[0].x0 == 5
    low, high = log.layout.yaxis.range
    assert low < np.log10(3e-8)
    assert high > np.log10(3)
    linear = charts.shift_errors([1, 2, 5], lines, shift=4, log=False, y_title="Error", title="Errors")
    np.testing.assert_array_equal(linear.data[0].y, [1e-7, 0, 3e-8])
    assert not linear.layout.shapes
    with pytest.raises(ValueError, match="one for each shift"):
        charts.shift_errors([1, 2], lines, shift=1, log=False, y_title="Error", title="Errors")


@pytest.mark.parametrize(("count", "kind"), [(3, "bar"), (24, "bar"), (25, "scatter"), (60, "scatter")])
def test_strengths_are_bars_until_there_are_too_many(count, kind):
    values = RANDOM.random((2, count)).astype(np.float32)
    figure = charts.embedding_strengths(
        ["<b>"] * count,
        [Strengths("one", values[0]), Strengths("two", values[1])],
        chosen=1,
        title="t",
        token_axis="Piece",
        colour="target",
    )
    assert [trace.type for trace in figure.data] == [kind, kind]
    np.testing.assert_array_equal([trace.y for trace in figure.data], values)
    assert list(figure.data[0].customdata) == list(range(count))
    assert figure.data[0].hovertext[2] == f"3: <b>{literal('<b>')}</b>"
    assert (figure.layout.shapes[0].x0, figure.layout.shapes[0].x1) == (0.5, 1.5)


def test_strengths_need_one_value_a_token():
    with pytest.raises(ValueError, match="one for each token"):
        charts.embedding_strengths(["a"], [Strengths("x", np.zeros(2))], chosen=None, title="t", token_axis="Piece")


def test_vectors_are_rows_with_their_names():
    vectors = RANDOM.normal(size=(3, 6)).astype(np.float32)
    figure = charts.embedding_rows(vectors, ["a", "<b>", "c"], title="What $x$ starts from")
    np.testing.assert_array_equal(figure.data[0].z, vectors)
    assert list(figure.layout.yaxis.ticktext) == ["a", literal("<b>"), "c"]
    assert figure.layout.title.text == literal("What $x$ starts from")
    with pytest.raises(ValueError, match="one name"):
        charts.embedding_rows(vectors, ["a"], title="t")
