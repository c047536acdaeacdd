"""A map names its rows and columns by pieces, by numbers or by lines of their own; the pictures that are such maps."""

from dataclasses import replace

import numpy as np
import pytest

from glassformer.charts.marks import Axis, Numbers, heat
from glassformer.charts.positions import PAIR_AXIS
from glassformer.charts.theme import DARK_COLORS, MARK_COLOR, NEUTRAL_COLOR, SCALES, SIGNED_SCALE, figure_in, literal
from glassformer.positions.positions_page import DISTANCE_AXIS
from glassformer.runs.picture_registry import PICTURES
from glassformer.state.click import Click
from tests.glassformer.charts.test_positions import colours
from tests.glassformer.test_pictures import look, opened  # noqa: F401 (a fixture)
from transformer.analysis.position_study import own_table
from transformer.i18n import said, say

VALUES = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)


def draw(rows, columns, values=VALUES, **more):
    made = heat(say("A <map>"), Axis(say("Row"), rows), Axis(say("Column"), columns), Numbers("v", values), **more)
    return figure_in(made["spec"], "en")


def shown(opened, name, model, **fields):  # noqa: F811 (the fixture)
    plot = PICTURES[name].of(look(PICTURES[name], opened(model), model, **fields))
    return plot, figure_in(plot.spec, "en")


def test_numbers_stand_for_themselves_and_have_round_ones_on_the_axis_if_they_count_from_0():
    figure = draw(range(3), [0, 1, 8, 9])
    assert figure.data[0].customdata[2, 3].tolist() == ["<b>2</b>", "<b>9</b>"]
    assert list(figure.layout.meta["ticks"]) == ["xaxis"]
    assert list(figure.layout.xaxis.ticktext) == ["0", "1", "8", "9"]
    assert figure.layout.yaxis.ticktext is None
    assert tuple(figure.layout.yaxis.range) == (2.5, -0.5)  # 0 on top
    assert (figure.layout.yaxis.title.text, figure.layout.yaxis.dtick) == ("Row", 1)
    many = draw(range(64), range(256), np.zeros((64, 256)))
    assert (many.layout.xaxis.dtick, many.layout.xaxis.nticks) == (None, 12)
    assert tuple(many.layout.xaxis.range) == (-0.5, 255.5)
    assert many.layout.title.text == literal("A <map>")


def test_what_speaks_for_itself_on_hover_is_not_named_by_its_axis():
    says = ["one", "two", "three"]
    made = heat(say("t"), Axis(say("Row"), says, says=says), Axis(say("C"), range(4)), Numbers("v", VALUES, ".6g"))
    drawn = figure_in(made["spec"], "en").data[0]
    assert drawn.customdata[1, 1].tolist() == ["two", "<b>1</b>"]
    assert drawn.hovertemplate == "%{customdata[0]}<br>C %{customdata[1]}<br>v <b>%{z:.6~g}</b><extra></extra>"


def test_signed_numbers_have_0_in_the_middle_of_their_scale_and_closed_cells_do_not_count():
    drawn = draw("abc", "abcd", signed=True, gaps=(0, 3), height=99)
    np.testing.assert_array_equal(drawn.data[0].z, VALUES)
    assert drawn.data[0].zmax == -drawn.data[0].zmin == pytest.approx(np.abs(VALUES).max())
    assert [list(stop) for stop in drawn.data[0].colorscale] == SIGNED_SCALE
    assert (drawn.data[0].xgap, drawn.data[0].ygap, drawn.layout.height) == (0, 3, 99)
    open_cells = np.abs(VALUES) < 0.5
    some = draw("abc", "abcd", signed=True, allowed=open_cells).data[0]
    assert some.zmax == pytest.approx(np.abs(VALUES[open_cells]).max())
    assert np.isnan(some.z[~open_cells]).all()
    assert draw("abc", "abcd", np.zeros((3, 4)), signed=True).data[0].zmax == 1
    assert colours(drawn.to_plotly_json()["data"][0]["colorscale"]) <= DARK_COLORS.keys()


def test_numbers_stand_in_their_cells_pale_on_strong_ones_and_none_where_there_is_none():
    values = np.array([[0.0, 0.5, 1.0, np.nan]])
    figure = draw(range(1, 2), range(1, 5), values, written=".2f", limits=None)
    notes = figure.layout.annotations
    assert [(note.x, note.y, note.text) for note in notes] == [(0, 0, "0.00"), (1, 0, "0.50"), (2, 0, "1.00")]
    assert [note.font.color for note in notes] == [MARK_COLOR, MARK_COLOR, SCALES["neutral"][0][1]]
    assert (figure.data[0].zmin, figure.data[0].zmax) == (0, 1)
    assert "not a finite number" in figure.data[1].hovertemplate
    assert not draw(range(1, 2), range(1, 5), values).layout.annotations


def test_a_map_has_a_label_for_each_row_and_column():
    with pytest.raises(ValueError, match="one label for each"):
        draw(range(3), range(5))
    assert not draw([], [], np.zeros((0, 0))).data


# ------------------------------------------------------------------------------------------------ pictures


def test_a_rotation_is_drawn_as_the_cosine_of_its_angle(opened):  # noqa: F811 (the fixture)
    plot, figure = shown(opened, "rotary_rotations", "rotary", dims=(1,))
    drawn = figure.data[0]
    speeds = 10000.0 ** (-np.arange(drawn.z.shape[1]) / drawn.z.shape[1])
    np.testing.assert_allclose(drawn.z, np.cos(np.arange(len(drawn.z))[:, None] * speeds), atol=1e-6)
    assert (drawn.zmin, drawn.zmax) == (-1, 1)
    turned = f"pair <b>1</b>: dimensions 1 and {1 + len(speeds)}<br>turned by p · {np.degrees(speeds[1]):.4g}°"
    assert drawn.customdata[2, 1].tolist() == ["<b>2</b>", turned]
    assert (figure.layout.shapes[0].x0, figure.layout.shapes[0].x1) == (0.5, 1.5)
    assert figure.layout.xaxis.title.text == PAIR_AXIS
    assert plot.clicked(Click(0, (3, 1), None)) == 1
    assert plot.clicked(Click(0, (3, 9), None)) is None


def test_a_map_of_heads_names_distances(opened):  # noqa: F811 (the fixture)
    plot, figure = shown(opened, "bias_map", "alibi", layer=0, head=1)
    drawn = figure.data[0]
    assert drawn.zmax == -drawn.zmin == pytest.approx(np.abs(drawn.z).max())
    np.testing.assert_allclose(drawn.z[0], drawn.z[0, -2] * np.arange(drawn.z.shape[1])[::-1])
    assert drawn.customdata[1, -2].tolist() == ["<b>2</b>", "distance <b>-1</b>"]
    assert (figure.layout.shapes[0].y0, figure.layout.shapes[0].y1) == (0.5, 1.5)
    assert figure.layout.xaxis.title.text == DISTANCE_AXIS
    assert plot.clicked(Click(0, (2, 0), None)) == 2


@pytest.mark.parametrize("apart", [True, False])
def test_the_table_of_positions_is_drawn_as_it_is_and_sines_apart_have_a_line(opened, apart):  # noqa: F811
    plot, figure = shown(opened, "position_table", "decoder", apart=apart)
    drawn = figure.data[0]
    table = own_table(opened("decoder").model, "decoder")[: len(drawn.z)]
    dims = np.arange(table.shape[1])
    dims = np.concatenate([dims[::2], dims[1::2]]) if apart else dims
    np.testing.assert_array_equal(drawn.z, table[:, dims])
    assert drawn.customdata[2, 3].tolist() == ["<b>2</b>", f"<b>{dims[3]}</b>"]
    assert [line.x0 for line in figure.layout.shapes] == [len(dims) / 2 - 0.5] * apart
    assert "(Position p)" in said(plot.alt, "en")


def test_similarity_is_coloured_by_sign_only_if_there_are_signs(opened):  # noqa: F811 (the fixture)
    _, figure = shown(opened, "position_similarity", "reverse")
    drawn = figure.data[0]
    np.testing.assert_allclose(drawn.z, drawn.z.T, rtol=1e-5)
    is_signed = bool((drawn.z < 0).any())
    scale = SIGNED_SCALE if is_signed else SCALES["neutral"]
    assert [list(stop) for stop in drawn.colorscale] == scale
    assert drawn.zmin == pytest.approx(-drawn.zmax if is_signed else drawn.z.min())


@pytest.mark.parametrize("key", ["embedding_rows", "stream_strip"])
def test_vectors_are_rows_with_their_whole_names(opened, key):  # noqa: F811 (the fixture)
    _, figure = shown(opened, key, "reverse")
    drawn = figure.data[0]
    names = list(figure.layout.yaxis.ticktext)
    assert drawn.z.shape[0] == len(names) == len(figure.layout.meta["ticks"]["yaxis"]["labels"])
    assert not any("…" in name for name in names)
    if key == "embedding_rows":
        np.testing.assert_allclose(drawn.z[-1], drawn.z[-3] + drawn.z[-2], atol=1e-5)


def test_every_head_has_its_cell_its_number_and_the_bracket_of_its_group(opened):  # noqa: F811 (the fixture)
    plot, figure = shown(opened, "head_table_map", "alibi", layer=0, head=1)
    drawn, notes = figure.data[0], figure.layout.annotations
    assert {(note.y, note.x): note.text for note in notes[: drawn.z.size]} == {
        place: f"{value:.2f}" for place, value in np.ndenumerate(drawn.z)
    }
    assert [note.text for note in notes[drawn.z.size :]] == ["K, V 1"]
    assert tuple(figure.layout.yaxis.range) == (len(drawn.z) - 0.5, -0.5)  # layer 1 on top
    assert drawn.customdata[1][2].tolist() == ["<b>2</b>", "<b>head 3 (key-value head 1)</b>"]
    assert drawn.hovertemplate.startswith("Layer %{customdata[0]}<br>%{customdata[1]}<br>")
    frame = figure.layout.shapes[0]
    assert (frame.y0, frame.y1, frame.x0, frame.x1) == (-0.5, 0.5, 0.5, 1.5)
    assert (drawn.zmin, drawn.zmax) == pytest.approx((drawn.z.min(), drawn.z.max()))
    assert plot.clicked(Click(0, (1, 2), None))["head"] == 2


def test_weighted_values_add_up_and_closed_keys_say_why(opened):  # noqa: F811 (the fixture)
    plot, figure = shown(opened, "walk_values", "decoder", layer=0, head=0, query=1, key=0)
    drawn, *closed = figure.data
    open_rows = np.isfinite(drawn.z).all(axis=1)
    np.testing.assert_allclose(drawn.z[open_rows][:-1].sum(axis=0), drawn.z[-1], atol=1e-5)
    assert drawn.zmin == -drawn.zmax == pytest.approx(-np.nanmax(np.abs(drawn.z)))
    assert drawn.customdata[0, 1].tolist()[1] == "<b>1</b>"
    assert figure.layout.yaxis.range[0] > figure.layout.yaxis.range[1]
    if not open_rows.all():
        assert np.isfinite(closed[0].z).any(axis=1).tolist() == (~open_rows).tolist()
        assert "<i>closed: comes later in the text</i>" in closed[0].hovertemplate
        assert closed[-1].hoverinfo == "skip"  # the hatching
    assert (figure.layout.shapes[0].y0, figure.layout.shapes[0].y1) == (-0.5, 0.5)
    assert plot.clicked(Click(0, (1, 0), None)) == {"key": 1}


def test_the_lengths_of_heads_say_their_share_and_take_clicks_above_low_bars(opened):  # noqa: F811 (the fixture)
    picture = PICTURES["walk_norms"]
    scene = picture.part.scene(look(picture, opened("decoder"), "decoder", layer=0, head=1))
    for norms in (np.arange(1.0, 1.0 + len(scene.walk.norms)), np.zeros(len(scene.walk.norms))):
        plot = picture.plot(replace(scene, walk=replace(scene.walk, shares=norms[:, None])))
        drawn, whole = figure_in(plot.spec, "en").data
        shares = (norms / (norms.sum() or 1)).tolist()
        np.testing.assert_array_equal(drawn.y, norms)
        assert list(whole.customdata) == list(range(len(norms)))
        assert set(whole.y) == {plot.spec["layout"]["yaxis"]["range"][1]}
        said = f"Head 2<br>length <b>{norms[1]:g}</b><br>share of the summed lengths <b>{shares[1]:.1%}</b>"
        assert whole.hovertext[1] == said
        assert [shade == NEUTRAL_COLOR for shade in drawn.marker.color] == [head == 1 for head in range(len(norms))]
        rows = [[head, norm, share] for head, (norm, share) in enumerate(zip(norms, shares, strict=True), start=1)]
        assert plot.spec["layout"]["meta"]["table"]["rows"] == rows
