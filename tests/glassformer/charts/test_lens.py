"""The charts of the logit lens hold the numbers they were given, and say what they show."""

import numpy as np
import pytest

from glassformer import charts
from glassformer.charts.lens import DEPTH_AXIS, HOW_TO_READ_TABLE, STEP_AXIS, Depth, in_cell
from glassformer.charts.theme import MARK_COLOR, literal

DEPTHS = [Depth("embedding", "the embedding"), Depth("1 self", "layer 1's self-attention"), Depth("1 FFN", "<b>")]
PIECES = [["▁a", "<b>", "$x$"], ["▁a", "▁a", "c"], ["▁Donaudampfschiff", "b", "中文中文中文"]]
PROBS = np.array([[0.9, 0.05, 0.01], [0.5, 0.4, 0.1], [0.62, 0.3, 0.0123456]])
CHOSEN = np.array([[True, False, False], [False] * 3, [False, True, False]])
RANK = np.array([[4, 1, 900], [1, 1, 20], [2, 1, 1]])
HEIGHTS = np.array([[0.1, 0.9, 1e-5], [0.7, 0.8, 0.01], [0.2, 0.9, 0.6]], np.float32)


def table(**changes):
    return charts.lens_table(DEPTHS, PIECES, PROBS, **({"chosen": CHOSEN, "title": "A <table>"} | changes))


def lens_map(**changes):
    values = {"probability": HEIGHTS, "rank": RANK, "first": np.array([1, 0, 2]), "stays": np.array([-1, 0, 2]),
              "step": 1, "title": "A <map>"}  # fmt: skip
    return charts.lens_map(DEPTHS, ["a → b", "a → b", "<s> → c"], **(values | changes))


def curves(**changes):
    values = {"probability": [0.1, 0.2, 0.9], "rank": [420, 3, 1], "entropy": [1, 2, 0.5], "divergence": [9, 3, 0]}
    return charts.lens_curves(DEPTHS, **(values | changes), title="How <b> came")


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


def test_curves_are_four_lines_over_the_depths():
    figure = curves()
    assert {line.name: list(line.y) for line in figure.data} == {
        "probability": [0.1, 0.2, 0.9],
        "rank": [420, 3, 1],
        "entropy": [1, 2, 0.5],
        "KL to the last depth": [9, 3, 0],
    }
    assert figure.layout.yaxis2.type == "log"
    assert figure.layout.yaxis2.range[0] > 3 > 0 > figure.layout.yaxis2.range[1]  # place 1 on top, 1,000 in view
    assert list(figure.layout.yaxis2.ticktext) == ["1", "10", "100", "1,000"]
    assert figure.data[0].hovertext[2] == literal("<b>")
    assert figure.layout.title.text == literal("How <b> came")
    assert figure.layout.meta["table"]["rows"][0] == ["the embedding", 0.1, 420.0, 1.0, 9.0]
    with pytest.raises(ValueError, match="each"):
        curves(rank=[1, 2])


def test_a_number_that_is_none_is_left_out_of_the_table():
    assert curves(divergence=[np.inf, np.nan, 0]).layout.meta["table"]["rows"][1][4] is None


def test_the_map_has_probabilities_places_and_paths():
    figure = lens_map()
    cells, lost, settled = figure.data
    np.testing.assert_array_equal(cells.z, HEIGHTS)
    assert (figure.layout.xaxis.title.text, figure.layout.yaxis.title.text) == (STEP_AXIS, DEPTH_AXIS)
    assert cells.text[0][2] == "900"
    assert "<br>rank <b>%{text}</b><br>probability <b>%{z:.4~g}</b>" in cells.hovertemplate
    assert cells.customdata[2, 1].tolist() == [f"after <b>{literal('<b>')}</b>", "step 2: <b>a → b</b>"]
    assert (list(lost.x), list(lost.y)) == ([0], [1])  # first on top and lost again
    assert (list(settled.x), list(settled.y)) == ([1, 2], [0, 2])
    assert {lost.hoverinfo, settled.hoverinfo} == {"skip"}
    assert (figure.layout.shapes[0].x0, figure.layout.shapes[0].x1) == (0.5, 1.5)
    assert not lens_map(step=None).layout.shapes


def test_places_are_coloured_by_their_logarithm_the_first_strongest():
    figure = lens_map(measure="rank")
    np.testing.assert_allclose(figure.data[0].z, np.log10(RANK), atol=1e-6)
    assert figure.data[0].customdata[0, 2, 2] == 900
    assert (figure.data[0].zmin, figure.data[0].zmax) == (0, 3)
    assert figure.data[0].colorscale[0][1] == "#7A3400"
    assert list(figure.data[0].colorbar.ticktext) == ["1", "10", "100", "1,000"]


def test_a_map_needs_labels_that_fit_and_may_have_no_steps():
    with pytest.raises(ValueError, match="one label for each"):
        lens_map(stays=np.array([1]))
    none = np.zeros((3, 0))
    spec = charts.lens_map_spec(
        DEPTHS, [], probability=none, rank=none, first=none[0], stays=none[0], step=None, title="t"
    )
    assert spec["data"] == []


def test_the_caption_says_what_is_computed():
    """The numbers pass the final norm first; see `transformer.analysis.logit_lens.read`."""
    assert "softmax(W · norm(stream))" in HOW_TO_READ_TABLE
    assert "softmax(W · stream)" not in HOW_TO_READ_TABLE


def test_the_mark_of_what_stays_is_filled_and_the_other_is_a_ring():
    values = {"probability": HEIGHTS, "rank": RANK, "first": np.array([0, 1, 2]), "stays": np.array([-1, 2, 2])}
    spec = charts.lens_map_spec(DEPTHS, list("abc"), **values, step=1, title="t")
    ring, dot = (trace["marker"] for trace in spec["data"][1:])
    assert dot["color"] == ring["line"]["color"] == MARK_COLOR
    assert ring["color"] == dot["line"]["color"] != MARK_COLOR
