"""Pictures that are drawn by the general mark of series hold the numbers of their scenes."""

import numpy as np
import pytest

from glassformer.charts.theme import figure_in, literal
from glassformer.inside.lens.lens_pictures import depths_of
from glassformer.positions.sentence import sentence_pictures
from glassformer.runs import loading
from glassformer.runs.picture_registry import PICTURES
from tests.glassformer.test_pictures import look
from transformer.analysis import position_study
from transformer.analysis.stream import rms
from transformer.checkpoint.load import load


@pytest.fixture(scope="module")
def drawn():
    """A function that returns the scene and the figure of a picture."""
    checkpoint = load(loading.SHIPPED / "reverse")

    def draw(name, **fields):
        run = look(PICTURES[name], checkpoint, "reverse", **fields)
        return PICTURES[name].part.scene(run), figure_in(PICTURES[name].of(run).spec, "en")

    return draw


def test_perplexity_alone_and_so_far(drawn):
    scene, figure = drawn("forcing_perplexity", at=1)
    points, line = figure.data
    np.testing.assert_allclose(points.y, scene.score.perplexities, rtol=1e-6)
    np.testing.assert_allclose(line.y, scene.score.running_perplexity, rtol=1e-6)
    assert np.flatnonzero(points.marker.line.width).tolist() == [scene.place]
    assert list(points.customdata) == list(range(len(scene.score)))
    n_pieces = len(scene.score.vocabulary)
    assert figure.layout.shapes[0].y0 == n_pieces
    assert figure.layout.yaxis.type == "log"
    assert 10 ** figure.layout.yaxis.range[1] > n_pieces
    row = figure.layout.meta["table"]["rows"][1]
    assert row == [2, scene.score.pieces[1], pytest.approx(points.y[1]), pytest.approx(line.y[1])]


def test_curves_of_a_lens_are_four_lines_over_the_depths(drawn):
    scene, figure = drawn("lens_curves", step=1)
    lens = scene.lens
    four = {"probability": lens.prob, "rank": lens.rank, "entropy": lens.entropy,
            "KL to the last depth": lens.divergence}  # fmt: skip
    assert [line.name for line in figure.data] == list(four)
    for line, values in zip(figure.data, four.values(), strict=True):
        np.testing.assert_allclose(line.y, values[:, 1], rtol=1e-6)
    ranks = figure.layout.yaxis2
    assert (ranks.type, ranks.range[0] > np.log10(lens.rank[:, 1].max()), ranks.range[1] < 0) == ("log", True, True)
    assert ranks.tickvals[0] == 1
    assert figure.data[0].hovertext[0] == f"<b>after {depths_of(lens)[0].name}</b>"
    assert figure.layout.meta["table"]["rows"][0][1] == pytest.approx(float(lens.prob[0, 1]))


def test_a_norm_has_mean_and_deviation_before_and_after(drawn):
    scene, figure = drawn("stream_norm")
    assert [(marks.name, marks.yaxis) for marks in figure.data] == [
        ("before", None), ("after", None), ("before", "y2"), ("after", "y2"),
    ]  # fmt: skip
    found = scene.normed
    values = (found.mean_before, found.mean_after, found.deviation_before, found.deviation_after)
    for marks, each in zip(figure.data, values, strict=True):
        np.testing.assert_allclose(marks.y, each, rtol=1e-6)
        assert list(marks.customdata) == list(range(len(scene.pieces)))
    frame = figure.layout.shapes[0]
    assert (frame.x0, frame.x1) == (scene.chosen - 0.5, scene.chosen + 0.5)
    assert figure.layout.meta["table"]["columns"][2:] == [
        "mean before", "mean after", "deviation before", "deviation after",
    ]  # fmt: skip


def test_dimensions_have_a_band_each_with_the_formula_beside(drawn):
    scene, figure = drawn("position_curves")
    formula = position_study.formula(scene.count, scene.d_model)
    for place, dim in enumerate(scene.dims):
        table, paper = figure.data[2 * place], figure.data[2 * place + 1]
        np.testing.assert_allclose(table.y, scene.values[: scene.count, dim], rtol=1e-6)
        np.testing.assert_allclose(paper.y, formula[:, dim], rtol=1e-5, atol=1e-7)
        assert list(table.x) == list(range(scene.count))
        assert table.yaxis == paper.yaxis == (f"y{place + 1}" if place else None)
    layout = figure.layout
    assert layout.annotations[1].text.startswith(literal(f"Dimension {scene.dims[1]}; formula: "))
    assert layout.yaxis2.title.text == f"PE(p, {scene.dims[1]})"
    bands = [layout.yaxis.domain, layout.yaxis2.domain, layout.yaxis3.domain]
    assert bands[0][0] > bands[1][1] > bands[1][0] > bands[2][1]
    assert layout.yaxis.range == layout.yaxis3.range
    assert np.abs(scene.values).max() < layout.yaxis.range[1]


@pytest.mark.parametrize("by", ["cosine", "distance"])
def test_nearest_pieces_are_bars_of_the_chosen_measure_and_hover_has_both(drawn, by):
    scene, figure = drawn("piece_neighbours", nearness=by)
    found, bars = scene.nearest, figure.data[0]
    values = getattr(found, by)
    np.testing.assert_allclose(bars.x, values, rtol=1e-6)
    assert list(bars.customdata) == found.ids.tolist()
    assert len(set(bars.marker.color)) == 1
    assert f"cosine <b>{found.cosine[1]:.4f}</b>".replace("-", "−") in bars.hovertext[1]
    assert f"distance <b>{found.distance[1]:.4f}</b>" in bars.hovertext[1]
    assert [note.text for note in figure.layout.annotations] == [f"{value:.3f}" for value in values]
    rows = figure.layout.meta["table"]["rows"]
    assert [row[-1] for row in rows] == found.ids.tolist()
    assert rows[1][1] == pytest.approx(float(values[1]))


@pytest.mark.parametrize(("fewer", "kind"), [(0, "bar"), (1, "scatter")])
def test_strengths_are_bars_until_there_are_too_many(drawn, monkeypatch, fewer, kind):
    scene, _ = drawn("embedding_strengths")
    monkeypatch.setattr(sentence_pictures, "_MOST_BARS", len(scene.pieces) - fewer)
    scene, figure = drawn("embedding_strengths", key=1)
    assert {trace.type for trace in figure.data} == {kind}
    values = [*(vectors for _, vectors in scene.embeddings), scene.positions, scene.total]
    for trace, vectors in zip(figure.data, values, strict=True):
        np.testing.assert_allclose(trace.y, rms(vectors), rtol=1e-6)
        assert list(trace.customdata) == list(range(len(scene.pieces)))
    assert figure.data[0].hovertext[2] == f"3: <b>{literal(scene.pieces[2])}</b>"
    assert (figure.layout.shapes[0].x0, figure.layout.shapes[0].x1) == (scene.chosen - 0.5, scene.chosen + 0.5)
