"""Pictures that are drawn by general marks hold the numbers of their scenes, each at its place."""

from dataclasses import replace

import numpy as np
import pytest

from glassformer import charts
from glassformer.charts.theme import NEUTRAL_COLOR, SCALES, SIGNED_SCALE, figure_in, literal
from glassformer.positions import sentence_pictures
from glassformer.runs.picture import PICTURES, declare_all
from glassformer.state.view import Click
from glassformer.step.step_pictures import MEASURES, unsure_curve
from tests.glassformer.conftest import look
from transformer.analysis.stream import rms

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
