"""The charts of the logit lens hold the numbers they were given, and say what they show."""

from dataclasses import replace

import numpy as np
import pytest

from glassformer import charts
from glassformer.charts.lens import DEPTH_AXIS, HOW_TO_READ_TABLE, Depth, in_cell
from glassformer.charts.theme import MARK_COLOR, figure_in, literal
from glassformer.inside.lens.lens_pictures import OpenLens, open_lens
from glassformer.runs.picture_registry import PICTURES
from tests.glassformer.test_pictures import look, opened  # noqa: F401 (a fixture)

DEPTHS = [Depth("embedding", "the embedding"), Depth("1 self", "layer 1's self-attention"), Depth("1 FFN", "<b>")]
PIECES = [["▁a", "<b>", "$x$"], ["▁a", "▁a", "c"], ["▁Donaudampfschiff", "b", "中文中文中文"]]
PROBS = np.array([[0.9, 0.05, 0.01], [0.5, 0.4, 0.1], [0.62, 0.3, 0.0123456]])
CHOSEN = np.array([[True, False, False], [False] * 3, [False, True, False]])
RANK = np.array([[4, 1, 900], [1, 1, 20], [2, 1, 1]])
HEIGHTS = np.array([[0.1, 0.9, 1e-5], [0.7, 0.8, 0.01], [0.2, 0.9, 0.6]], np.float32)


def table(**changes):
    return charts.lens_table(DEPTHS, PIECES, PROBS, **({"chosen": CHOSEN, "title": "A <table>"} | changes))


def lens_map(opened, **asked):  # noqa: F811 (the fixture)
    """The map of a run's first three depths, with other numbers in its first three steps."""
    run = look(PICTURES["lens_map"], opened("decoder"), "decoder", **asked)
    lens = open_lens(run).lens
    rank, log_prob = np.full_like(lens.rank[:3], 7), lens.log_prob[:3].copy()
    rank[:, :3], log_prob[:, :3] = RANK, np.log(HEIGHTS)
    lens = replace(lens, rank=rank, log_prob=log_prob, places=lens.places[:3])
    return figure_in(PICTURES["lens_map"].plot(OpenLens(run, lens)).spec, "en")


def test_a_table_writes_each_piece_and_its_probability_into_a_cell():
    figure = table()
    np.testing.assert_allclose(figure.data[0].z, PROBS, rtol=1e-6)
    texts = [note.text for note in figure.layout.annotations]
    assert texts[:3] == ["▁a<br>0.90", f"{literal('<b>')}<br>0.05", f"{literal('$x$')}<br>0.01"]
    assert texts[6] == "▁Donaudam<br>pfschiff<br>0.62"
    assert [(note.x, note.y) for note in figure.layout.annotations[3:5]] == [(0, 1), (1, 1)]
    assert [(shape.x0 + shape.x1, shape.y0 + shape.y1) for shape in figure.layout.shapes] == [(0, 0), (2, 4)]
    assert figure.data[0].hovertext[2][2].endswith("rank 3: <b>中文中文中文</b><br>probability <b>0.01235</b>")
    assert figure.layout.yaxis.range[0] > figure.layout.yaxis.range[1]  # the first depth on top
    assert figure.layout.title.text == literal("A <table>")
    stated = figure.layout.meta["table"]
    assert stated["rows"][7] == ["<b>", 2, "b", pytest.approx(0.3), True]
    assert len(stated["rows"]) == 9


def test_no_small_probability_reads_as_0():
    figure = charts.lens_table(DEPTHS[:1], [list("abc")], [[0.004, 0.0, 0.006]], chosen=CHOSEN[:1], title="t")
    assert [note.text for note in figure.layout.annotations] == [f"a<br>{literal('< 0.01')}", "b<br>0.00", "c<br>0.01"]


def test_many_depths_leave_a_piece_one_line():
    depths = [Depth(str(place), str(place)) for place in range(10)]
    figure = charts.lens_table(
        depths, [["▁Donaudampfschiff"]] * 10, np.ones((10, 1)), chosen=np.ones((10, 1), bool), title="t"
    )
    assert figure.layout.annotations[0].text == "▁Donauda…<br>1.00"
    assert figure.layout.height < 560


@pytest.mark.parametrize(
    ("piece", "most", "lines"),
    [
        ("▁coffee", 1, ["▁coffee"]), ("", 1, [""]), ("123456789", 1, ["123456789"]), ("1234567890", 1, ["12345678…"]),
        ("1234567890", 2, ["123456", "7890"]), ("x" * 30, 2, ["x" * 9, "x" * 8 + "…"]), ("中文中文", 1, ["中文中文"]),
        ("中文中文中", 2, ["中文中", "文中"]), ("中文中文中文", 1, ["中文中…"]),
    ],
)  # fmt: skip
def test_long_pieces_are_cut_and_say_so(piece, most, lines):
    assert in_cell(piece, most) == lines


def test_a_table_needs_one_piece_a_number():
    for changes in ({"chosen": CHOSEN[:2]}, {"chosen": CHOSEN[:, :2]}):
        with pytest.raises(ValueError, match="one for each piece"):
            table(**changes)
    with pytest.raises(ValueError, match="one for each piece"):
        charts.lens_table(DEPTHS, [["a"]] * 3, PROBS, chosen=CHOSEN, title="t")


def test_the_map_has_probabilities_places_and_paths(opened):  # noqa: F811 (the fixture)
    figure = lens_map(opened, step=1)
    cells, lost, settled = figure.data
    np.testing.assert_allclose(cells.z[:, :3], HEIGHTS, rtol=1e-5)
    assert (figure.layout.xaxis.title.text, figure.layout.yaxis.title.text) == ("Reads → predicts", DEPTH_AXIS)
    assert cells.text[0][2] == "900"
    assert "<br>rank <b>%{text}</b><br>probability <b>%{z:.4~g}</b>" in cells.hovertemplate
    assert cells.customdata[0, 1].tolist() == [
        "after <b>the embedding</b>",
        "step 2: <b>" + cells.customdata[0, 1][1][11:],
    ]
    assert (list(lost.x)[:1], list(lost.y)[:1]) == ([0], [1])  # first on top and lost again
    assert (list(settled.x), list(settled.y)) == ([1, 2], [0, 2])
    assert {lost.hoverinfo, settled.hoverinfo} == {"skip"}
    assert settled.marker.color == lost.marker.line.color == MARK_COLOR
    assert lost.marker.color == settled.marker.line.color != MARK_COLOR
    assert (figure.layout.shapes[0].x0, figure.layout.shapes[0].x1) == (0.5, 1.5)


def test_places_are_coloured_by_their_logarithm_the_first_strongest(opened):  # noqa: F811 (the fixture)
    cells = lens_map(opened, lens_colour="rank").data[0]
    np.testing.assert_allclose(cells.z[:, :3], np.log10(RANK), atol=1e-6)
    assert cells.customdata[0, 2, 2] == 900
    assert (cells.zmin, cells.zmax) == (0, 3)
    assert cells.colorscale[0][1] == "#7A3400"
    assert list(cells.colorbar.ticktext) == ["1", "10", "100", "1,000"]
    assert "<br>rank <b>%{customdata[2]:,d}</b><br>probability <b>%{text}</b>" in cells.hovertemplate
    assert list(cells.text[0][:2]) == ["0.1", "0.9"]


def test_the_caption_says_what_is_computed():
    """The numbers pass the final norm first; see `transformer.analysis.logit_lens.read`."""
    assert "softmax(W · norm(stream))" in HOW_TO_READ_TABLE
    assert "softmax(W · stream)" not in HOW_TO_READ_TABLE
