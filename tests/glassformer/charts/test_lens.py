"""The charts of the logit lens and of the residual stream hold the numbers they were given, depth by depth."""

from dataclasses import replace

import numpy as np
import pytest

from glassformer import charts
from glassformer.charts.stream import Depth
from glassformer.charts.theme import MARK_COLOR, figure_in, in_cell, literal
from glassformer.inside.lens_pictures import OpenLens, open_lens
from glassformer.runs.picture import PICTURES, declare_all
from tests.glassformer.conftest import look

declare_all()

DEPTHS = [Depth("embedding", "the embedding"), Depth("1 self", "layer 1's self-attention"), Depth("1 FFN", "<b>")]
PIECES = [["▁a", "<b>", "$x$"], ["▁a", "▁a", "c"], ["▁Donaudampfschiff", "b", "中文中文中文"]]
PROBS = np.array([[0.9, 0.05, 0.004], [0.5, 0.4, 0.1], [0.62, 0.3, 0.0123456]])
CHOSEN = np.array([[True, False, False], [False] * 3, [False, True, False]])
RANK = np.array([[4, 1, 900], [1, 1, 20], [2, 1, 1]])
HEIGHTS = np.array([[0.1, 0.9, 1e-5], [0.7, 0.8, 0.01], [0.2, 0.9, 0.6]], np.float32)


def table(**changes):
    return charts.lens_table(DEPTHS, PIECES, PROBS, **({"chosen": CHOSEN, "title": "A <table>"} | changes))


def test_a_table_writes_each_piece_and_its_probability_into_a_cell():
    figure = table()
    np.testing.assert_allclose(figure.data[0].z, PROBS, rtol=1e-6)
    texts = [note.text for note in figure.layout.annotations]
    assert texts[:3] == ["▁a<br>0.90", f"{literal('<b>')}<br>0.05", f"{literal('$x$')}<br>{literal('< 0.01')}"]
    assert texts[6] == "▁Donaudam<br>pfschiff<br>0.62"
    assert [(shape.x0 + shape.x1, shape.y0 + shape.y1) for shape in figure.layout.shapes] == [(0, 0), (2, 4)]
    assert figure.data[0].hovertext[2][2].endswith("rank 3: <b>中文中文中文</b><br>probability <b>0.01235</b>")
    assert figure.layout.yaxis.range[0] > figure.layout.yaxis.range[1]  # the first depth on top
    assert figure.layout.meta["table"]["rows"][7] == ["<b>", 2, "b", pytest.approx(0.3), True]
    with pytest.raises(ValueError, match="one for each token"):
        table(chosen=CHOSEN[:2])


def test_long_pieces_are_cut_and_say_so():
    cut = {
        ("", 1): [""], ("123456789", 1): ["123456789"], ("1234567890", 1): ["12345678…"], ("中文中文", 1): ["中文中文"],
        ("1234567890", 2): ["123456", "7890"], ("x" * 30, 2): ["x" * 9, "x" * 8 + "…"],
        ("中文中文中", 2): ["中文中", "文中"], ("中文中文中文", 1): ["中文中…"],
    }  # fmt: skip
    assert {given: in_cell(*given) for given in cut} == cut


def lens_map(opened, **asked):
    """The map of a run's first three depths, with other numbers in its first three steps."""
    run = look(PICTURES["lens_map"], opened("decoder"), "decoder", **asked)
    lens = open_lens(run).lens
    rank, log_prob = np.full_like(lens.rank[:3], 7), lens.log_prob[:3].copy()
    rank[:, :3], log_prob[:, :3] = RANK, np.log(HEIGHTS)
    lens = replace(lens, rank=rank, log_prob=log_prob, places=lens.places[:3])
    return figure_in(PICTURES["lens_map"].plot(OpenLens(run, lens)).spec, "en")


def test_the_map_has_probabilities_places_and_paths(opened):
    figure = lens_map(opened, step=1)
    cells, lost, settled = figure.data
    np.testing.assert_allclose(cells.z[:, :3], HEIGHTS, rtol=1e-5)
    assert cells.text[0][2] == "900"
    assert cells.customdata[0, 1][0] == "after <b>the embedding</b>"
    assert (list(lost.x)[:1], list(lost.y)[:1]) == ([0], [1])  # first on top and lost again
    assert (list(settled.x), list(settled.y)) == ([1, 2], [0, 2])
    assert settled.marker.color == lost.marker.line.color == MARK_COLOR
    assert lost.marker.color == settled.marker.line.color != MARK_COLOR
    assert (figure.layout.shapes[0].x0, figure.layout.shapes[0].x1) == (0.5, 1.5)


VALUES = np.random.default_rng(0).random((3, 4)).astype(np.float32)
TOKENS = ["▁a", "<b>", "▁a", "$x$"]
LINES = {"chosen": 1, "title": "Of <b>", "value_name": "root mean square"}


def test_each_token_is_a_line_and_what_was_added_stands_beside_the_stream_with_its_share():
    figure = charts.stream_lines(DEPTHS, VALUES, TOKENS, **LINES)
    weak, strong = figure.data
    np.testing.assert_array_equal(strong.y[:-1], VALUES[:, 1])
    drawn = np.reshape(weak.y, (3, 4))
    np.testing.assert_array_equal(drawn[:, :-1], VALUES[:, [0, 2, 3]].T)
    assert np.isnan(drawn[:, -1]).all()
    assert list(weak.customdata[:5]) == [0, 0, 0, 0, 2]
    assert weak.hovertext[4] == "token 3: <b>▁a</b><br>after the embedding"
    assert strong.line.width > weak.line.width
    rows = figure.layout.meta["table"]["rows"]
    assert rows[4] == [2, "<b>", "layer 1's self-attention", float(VALUES[1, 1])]
    for values, chosen in ((VALUES, 4), (VALUES, -1), (VALUES[:2], 1)):
        with pytest.raises(ValueError, match="one each"):
            charts.stream_lines(DEPTHS, values, TOKENS, **(LINES | {"chosen": chosen}))
    before, added, aligned = np.array([2.0, 4.0, 0.0]), np.array([1.0, 1.0, 3.0]), np.array([0.5, -1.0, 0.0])
    figure = charts.stream_added(DEPTHS, before, added, aligned, title="t")
    assert [list(bars.y) for bars in figure.data] == [list(before), list(added)]
    assert [(note.x, note.text) for note in figure.layout.annotations] == [(0, "0.50"), (1, "0.25")]
    assert "added / stream <b>0.250</b><br>cosine <b>−1.000</b>" in figure.data[0].hovertext[1]
    assert figure.layout.meta["table"]["rows"][2] == ["<b>", 0.0, 3.0, None, 0.0]
    with pytest.raises(ValueError, match="each"):
        charts.stream_added(DEPTHS, before[:2], added, aligned, title="t")
