"""The charts of What matters hold the numbers they were given, and say what they show."""

import numpy as np
import pytest

from glassformer import charts
from glassformer.charts.credit import Bar, Column
from glassformer.charts.theme import literal

PIECES = ["▁a", "<b>", "▁a"]
NAN = float("nan")


def credit(*columns):
    return charts.piece_credit(PIECES, columns, title="What <b> owes", piece_axis="Piece")


def test_each_column_has_a_scale_of_its_own():
    figure = credit(
        Column("Attention", np.array([0.5, 0.1, 0.4]), ".2f"), Column("Lost", np.array([0.02, -0.08, 0]), "+.2f")
    )
    np.testing.assert_allclose(figure.data[0].z, [[1, 0.25], [0.2, -1], [0.8, 0]], atol=1e-6)
    texts = [note.text for note in figure.layout.annotations]
    assert texts == ["0.50", "+0.02", "0.10", "−0.08", "0.40", "0.00"]
    framed = [((shape.x0 + shape.x1) / 2, (shape.y0 + shape.y1) / 2) for shape in figure.layout.shapes]
    assert framed == [pytest.approx((0, 0)), pytest.approx((1, 1))]
    assert figure.layout.yaxis.range[0] > figure.layout.yaxis.range[1]  # the first piece on top
    assert figure.data[0].hovertext[1][0] == f"2: <b>{literal('<b>')}</b><br>Attention <b>0.1</b>"
    assert figure.layout.title.text == literal("What <b> owes")
    table = figure.layout.meta["table"]
    assert [str(name) for name in table["columns"]] == ["Number", "Piece", "Attention", "Lost"]
    assert table["rows"][1] == [2, "<b>", 0.1, -0.08]


def test_what_is_missing_is_grey_and_says_why():
    figure = credit(Column("Lost", np.array([0.2, NAN, 0.1]), "+.2f", "it cannot be hidden"))
    absent, cells = figure.data
    np.testing.assert_array_equal(np.isfinite(absent.z)[:, 0], [False, True, False])
    assert np.isnan(cells.z[1, 0])
    assert cells.hovertext[1][0].endswith("<i>it cannot be hidden</i>")
    assert len(figure.layout.annotations) == 2
    assert figure.layout.meta["table"]["rows"][1][2] is None


def test_traces_of_rounding_do_not_stand_out():
    figure = credit(Column("Lost", np.array([1e-5, -4e-6, 0.0]), "+.2f", least=0.02))
    assert np.abs(figure.data[0].z).max() < 1e-3
    assert not figure.layout.shapes
    assert {note.text for note in figure.layout.annotations} == {"0.00"}
    assert not np.isnan(credit(Column("None", np.zeros(3), ".2f")).data[0].z).any()
    signed = credit(Column("Lost", np.array([0.5, -0.25, 0.0]), "+.2f")).layout.annotations
    assert [note.text for note in signed] == ["+0.50", "−0.25", "0.00"]


def test_a_heading_says_what_its_measure_is_when_it_is_pointed_at():
    figure = credit(Column("<b>", np.array([0.5, 0.25, 0.0]), ".2f", meaning="<i> & its source"))
    (over, *numbers) = figure.layout.annotations
    assert (over.hovertext, over.x, len(numbers)) == ("&#60;i&#62; &#38; its source", 0, 3)
    assert over.text == figure.layout.xaxis.ticktext[0] == "&#60;b&#62; ⓘ"
    assert figure.layout.meta["table"]["columns"][-1] == "<B>"


def test_a_column_has_a_number_for_each_piece():
    with pytest.raises(ValueError, match="3 pieces"):
        credit(Column("Attention", np.zeros(2), ".2f"))
    assert not charts.piece_credit([], [], title="t", piece_axis="p").data


def contribution_map(**changes):
    values = {
        "rows": ["Embedding", "Layer 1"], "columns": [("Self", "1"), ("", "2")],
        "names": [["", "embedding"], ["head <1>", "head 2"]], "title": "t", "chosen": (1, 0),
    }  # fmt: skip
    return charts.contribution_map(np.array([[NAN, 0.5], [2.0, -1.0]]), **(values | changes))


def test_a_map_of_parts_has_each_where_it_stands():
    figure = contribution_map()
    np.testing.assert_allclose(figure.data[0].z, [[NAN, 0.25], [1, -0.5]])
    assert [note.text for note in figure.layout.annotations] == ["+0.50", "+2.00", "−1.00"]
    assert list(figure.layout.xaxis.ticktext) == ["Self<br>1", "<br>2"]
    assert figure.data[0].hovertext[1][0].startswith(f"<b>{literal('head <1>')}</b>")
    assert [row[1] for row in figure.layout.meta["table"]["rows"]] == [0.5, 2.0, -1.0]
    assert len(figure.layout.shapes) == 1
    with pytest.raises(ValueError, match="2 rows"):
        contribution_map(columns=[("Self", "1")])


def test_bars_carry_what_can_be_clicked():
    bars = [Bar("Layer 1, head 2", "Self 1.2", 2.5, 4, chosen=True), Bar("3 others", "3 others", -0.25)]
    figure = charts.contribution_bars(bars, title="t")
    np.testing.assert_allclose(figure.data[0].x, [2.5, -0.25])
    assert list(figure.data[0].customdata) == [4, -1]
    assert list(figure.layout.yaxis.ticktext) == ["Self 1.2", "3 others"]
    assert list(figure.data[0].marker.line.width) == [2.5, 0]
    assert figure.layout.meta["table"]["rows"] == [["Layer 1, head 2", 2.5], ["3 others", -0.25]]
    assert figure.layout.xaxis.range[0] < -0.25
    whole = charts.contribution_bars(bars, title="t", every=[bars[0], *[Bar("x", "x", -0.125)] * 2])
    assert len(whole.layout.meta["table"]["rows"]) == 3
