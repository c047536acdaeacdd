"""The charts of What matters hold the numbers they were given: of pieces, of parts of a logit, of heads."""

import numpy as np
import pytest

from glassformer import charts
from glassformer.charts.attribution import Bar, Block, Column, head_at

PIECES = ["▁a", "b", "▁a"]
NAN = float("nan")


def credit(*columns):
    return charts.piece_credit(PIECES, columns, title="t", piece_axis="Token")


def notes_of(figure):
    return [note.text for note in figure.layout.annotations]


def test_each_column_has_a_scale_of_its_own():
    lost = np.array([0.02, -0.08, 0])
    figure = credit(Column("Attention", np.array([0.5, 0.1, 0.4]), ".2f"), Column("Lost", lost, "+.2f"))
    np.testing.assert_allclose(figure.data[0].z, [[1, 0.25], [0.2, -1], [0.8, 0]], atol=1e-6)
    assert notes_of(figure) == ["0.50", "+0.02", "0.10", "−0.08", "0.40", "0.00"]
    framed = [((shape.x0 + shape.x1) / 2, (shape.y0 + shape.y1) / 2) for shape in figure.layout.shapes]
    assert framed == [pytest.approx((0, 0)), pytest.approx((1, 1))]
    assert figure.layout.yaxis.range[0] > figure.layout.yaxis.range[1]  # the first piece on top
    assert figure.data[0].hovertext[1][0].endswith("</b><br>Attention <b>0.1</b>")
    assert figure.layout.meta["table"]["rows"][1] == [2, "b", 0.1, -0.08]
    with pytest.raises(ValueError, match="3 tokens"):
        credit(Column("Attention", np.zeros(2), ".2f"))


def test_what_is_missing_is_grey_and_says_why_and_traces_of_rounding_do_not_stand_out():
    figure = credit(Column("Lost", np.array([0.2, NAN, 0.1]), "+.2f", "it cannot be hidden"))
    absent, cells = figure.data
    np.testing.assert_array_equal(np.isfinite(absent.z)[:, 0], [False, True, False])
    assert np.isnan(cells.z[1, 0])
    assert cells.hovertext[1][0].endswith("<i>it cannot be hidden</i>")
    assert len(figure.layout.annotations) == 2
    assert figure.layout.meta["table"]["rows"][1][2] is None
    figure = credit(Column("Lost", np.array([1e-5, -4e-6, 0.0]), "+.2f", least=0.02))
    assert np.abs(figure.data[0].z).max() < 1e-3
    assert (set(notes_of(figure)), figure.layout.shapes) == ({"0.00"}, ())
    assert not np.isnan(credit(Column("None", np.zeros(3), ".2f")).data[0].z).any()


def test_a_map_of_parts_has_each_where_it_stands_and_bars_carry_what_can_be_clicked():
    named = {"rows": ["Embedding", "Layer 1"], "columns": [("Self", "1"), ("", "2")], "title": "t", "chosen": (1, 0)}
    named["names"] = [["", "embedding"], ["head 1", "head 2"]]
    figure = charts.contribution_map(np.array([[NAN, 0.5], [2.0, -1.0]]), **named)
    np.testing.assert_allclose(figure.data[0].z, [[NAN, 0.25], [1, -0.5]])
    assert notes_of(figure) == ["+0.50", "+2.00", "−1.00"]
    assert figure.data[0].hovertext[1][0].startswith("<b>head 1</b>")
    assert [row[1] for row in figure.layout.meta["table"]["rows"]] == [0.5, 2.0, -1.0]
    with pytest.raises(ValueError, match="2 rows"):
        charts.contribution_map(np.zeros((2, 2)), **named | {"columns": [("Self", "1")]})
    bars = [Bar("Layer 1, head 2", "Self 1.2", 2.5, 4, chosen=True), Bar("3 others", "3 others", -0.25)]
    figure = charts.contribution_bars(bars, title="t", every=[bars[0], *[Bar("x", "x", -0.125)] * 2])
    np.testing.assert_allclose(figure.data[0].x, [2.5, -0.25])
    assert list(figure.data[0].customdata) == [4, -1]
    assert list(figure.data[0].marker.line.width) == [2.5, 0]
    assert figure.layout.xaxis.range[0] < -0.25
    assert [row[1] for row in figure.layout.meta["table"]["rows"]] == [2.5, -0.125, -0.125]


ONE = np.array([[0.1, -0.5, 0.0], [0.2, np.nan, -0.001]])
TWO = np.array([[0.3, 0.25, -0.25]])
BLOCKS = [Block("Encoder self", ONE), Block("Cross", TWO)]


def heads(blocks=BLOCKS, **options):
    return charts.head_effects_spec(blocks, **{"title": "Effects", "value_name": "nats", "signed": True} | options)


def test_blocks_of_heads_stand_below_each_other_with_an_empty_row_between():
    spec = heads(chosen=(1, 0, 2))
    z, layout = spec["data"][0]["z"], spec["layout"]
    np.testing.assert_allclose(z, [*ONE, [NAN] * 3, *TWO], atol=1e-7)
    assert (layout["yaxis"]["tickvals"], layout["yaxis"]["ticktext"]) == ([0, 1, 3], ["1", "2", "1"])
    assert [row != "" for row in layout["meta"]["cells"]["rows"]] == [True, True, False, True]
    assert (layout["shapes"][0]["x0"], layout["shapes"][0]["y0"]) == (1.5, 2.5)
    assert [one["text"] for one in layout["annotations"] if "font" not in one] == ["Encoder self", "Cross"]
    where = [head_at([(2, 2), (1, 2)], (row, 1)) for row in (0, 1, 2, 3, 4, -1)]
    assert where == [(0, 0, 1), (0, 1, 1), None, (1, 0, 1), None, None]
    assert head_at([(2, 1), (1, 1)], (0, 1)) is None  # this kind of attention has fewer heads


def test_numbers_of_heads_are_written_as_they_are():
    for values, signed, written in (
        ([0.1, -0.5, -0.001], True, ["+0.10", "−0.50", "0.00"]),  # what is 0 by two digits has no sign
        ([0.0023, 0.00001], False, ["0.0023", "0.0000"]),
        ([3.0, 0.0, 12.0], False, ["3", "0", "12"]),
        ([-123.456, 7.5], True, ["−123.46", "+7.50"]),
    ):
        notes = heads([Block("Cross", np.array([values]))], signed=signed)["layout"]["annotations"]
        assert [one["text"] for one in notes if "font" in one] == written
