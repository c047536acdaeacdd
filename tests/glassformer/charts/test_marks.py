"""General marks and pictures drawn by them hold the numbers given, each at its place, on hover and in a table."""

from dataclasses import replace

import numpy as np
import pytest

from glassformer import charts
from glassformer.charts.grammar import stroke, upright
from glassformer.charts.marks import LOGARITHMIC, Axis, Numbers, Places, Scale, Series, bars, heat, lines
from glassformer.charts.theme import MARK_COLOR, NEUTRAL_COLOR, SCALES, SIGNED_SCALE, figure_in, literal
from glassformer.positions import sentence_pictures
from glassformer.runs.picture import PICTURES, declare_all
from glassformer.state.view import Click
from glassformer.step.step_pictures import MEASURES, unsure_curve
from tests.glassformer.conftest import look
from transformer.analysis.stream import rms
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


declare_all()


@pytest.fixture
def drawn(opened):
    """A function that returns the scene, the figure and the plot of a picture."""

    def draw(name, model="reverse", **fields):
        picture = PICTURES[name]
        plot = picture.of(run := look(picture, opened(model), model, **fields))
        return picture.part.scene(run), figure_in(plot.spec, "en"), plot

    return draw


def test_a_rotation_is_drawn_as_the_cosine_of_its_angle(drawn):
    _, figure, plot = drawn("rotary_rotations", "rotary", dims=(1,))
    z = figure.data[0].z
    speeds = 10000.0 ** (-np.arange(z.shape[1]) / z.shape[1])
    np.testing.assert_allclose(z, np.cos(np.arange(len(z))[:, None] * speeds), atol=1e-6)
    turned = f"pair <b>1</b>: dimensions 1 and {1 + len(speeds)}<br>turned by p · {np.degrees(speeds[1]):.4g}°"
    assert figure.data[0].customdata[2, 1].tolist() == ["<b>2</b>", turned]
    assert [plot.clicked(Click(0, (3, pair), None)) for pair in (1, 9)] == [1, None]


def test_similarity_is_coloured_by_sign_only_if_there_are_signs(drawn):
    cells = drawn("position_similarity")[1].data[0]
    is_signed = bool((cells.z < 0).any())
    assert [list(stop) for stop in cells.colorscale] == (SIGNED_SCALE if is_signed else SCALES["neutral"])
    assert cells.zmin == pytest.approx(-cells.zmax if is_signed else cells.z.min())


def test_weighted_values_add_up_and_closed_keys_say_why(drawn):
    _, figure, plot = drawn("walk_values", "decoder", layer=0, head=0, query=1, key=0)
    cells, *closed = figure.data
    open_rows = np.isfinite(cells.z).all(axis=1)
    np.testing.assert_allclose(cells.z[open_rows][:-1].sum(axis=0), cells.z[-1], atol=1e-5)
    assert np.isfinite(closed[0].z).any(axis=1).tolist() == (~open_rows).tolist()
    assert "<i>closed: comes later in the text</i>" in closed[0].hovertemplate
    assert plot.clicked(Click(0, (1, 0), None)) == {"key": 1}


def test_the_lengths_of_heads_say_their_share_and_take_clicks_above_low_bars(opened):
    picture = PICTURES["walk_norms"]
    scene = picture.part.scene(look(picture, opened("decoder"), "decoder", layer=0, head=1))
    for norms, said in (([1.0, 2.0, 5.0], "2</b>|25.0%"), ([0.0] * 3, "0</b>|0.0%")):
        plot = picture.plot(replace(scene, walk=replace(scene.walk, shares=np.array(norms)[:, None])))
        low, whole = figure_in(plot.spec, "en").data
        assert (list(low.y), set(whole.y)) == (norms, {plot.spec["layout"]["yaxis"]["range"][1]})
        length, share = said.split("|")
        assert whole.hovertext[1] == f"Head 2<br>length <b>{length}<br>share of the summed lengths <b>{share}</b>"
        assert [shade == NEUTRAL_COLOR for shade in low.marker.color] == [False, True, False]


@pytest.mark.parametrize(("fewer", "kind"), [(0, "bar"), (1, "scatter")])
def test_strengths_are_bars_until_there_are_too_many(drawn, monkeypatch, fewer, kind):
    scene, _, _ = drawn("embedding_strengths")
    monkeypatch.setattr(sentence_pictures, "_MOST_BARS", len(scene.pieces) - fewer)
    scene, figure, _ = drawn("embedding_strengths", key=1)
    assert {trace.type for trace in figure.data} == {kind}
    values = [*(vectors for _, vectors in scene.embeddings), scene.positions, scene.total]
    for trace, vectors in zip(figure.data, values, strict=True):
        np.testing.assert_allclose(trace.y, rms(vectors), rtol=1e-6)


@pytest.mark.parametrize("count", [2, 20, 128])
def test_no_mark_of_the_curve_is_cut_or_runs_into_the_next(count):
    values = np.linspace(0, 9, count)
    figure = figure_in(unsure_curve(values, ["<x>"] * count, 0, MEASURES["entropy"])["spec"], "en")
    marks, (first, last) = figure.data[0], figure.layout.xaxis.range
    np.testing.assert_array_equal(marks.y, values)
    assert set(marks.hovertext) == {literal("<x>")}
    a_step = 300 / (last - first)  # pixels, about, beside the candidates
    sizes = marks.marker.size
    assert (1 - first) * a_step >= sizes[0] / 2 == 6.5
    assert (last - count) * a_step >= sizes[-1] / 2
    assert max(sizes[1:]) <= max(7 if count == 2 else 0, a_step)


def test_a_rotation_is_rings_crosses_and_an_angle():
    wanted, found = np.random.default_rng(0).normal(size=(2, 4, 2)).astype(np.float32)
    figure = charts.shift_points(wanted, found, pair=3, shift=2, title="Shift", angle=np.pi / 2 + 2 * np.pi)
    arc, rings, crosses = figure.data
    np.testing.assert_array_equal(np.stack([rings.x, rings.y], axis=1), wanted)
    np.testing.assert_array_equal(np.stack([crosses.x, crosses.y], axis=1), found)
    assert (arc.x[1], arc.y[1]) == (0, 0.5)  # from the top
    assert (arc.x[-2], arc.y[-2]) == pytest.approx((0.5, 0), abs=1e-6)  # clockwise, whole turns left out
    assert "450°" in arc.hovertemplate
    assert figure.layout.xaxis.title.text == "Dimension 6 (sine)"
    assert figure.layout.yaxis.scaleanchor == "x"  # or a circle would be none
