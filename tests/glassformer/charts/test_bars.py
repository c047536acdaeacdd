import html

import numpy as np
import pytest

from glassformer import charts
from glassformer.charts.candidates import Others
from glassformer.charts.theme import MARK_COLOR, TARGET_COLOR, literal
from transformer.i18n.sentence import chance

PIECES = ["▁a", "▁a", "<br>"]


def draw(**options):
    return charts.candidates(PIECES, [0.5, 0.25, 0.0004], ids=[7, 8, 9], chosen=1, **options)


def test_bars_are_the_probabilities_and_carry_their_ids():
    bars, _ = draw().data
    assert list(bars.x) == [0.5, 0.25, 0.0004]
    assert list(bars.y) == [0, 1, 2]
    assert list(bars.customdata) == [7, 8, 9]


def test_the_chosen_piece_is_marked_by_more_than_colour():
    figure = draw(how_chosen="drawn by chance")
    assert figure.layout.yaxis.ticktext == ("▁a", "✓ <b>▁a</b>", literal("<br>"))
    assert [colour == TARGET_COLOR for colour in figure.data[0].marker.color] == [False, True, False]
    assert list(figure.data[0].marker.line.width) == [1, 1.5, 1]
    assert "drawn by chance" in figure.data[0].hovertext[1]


def test_nothing_is_marked_while_the_choice_is_hidden():
    figure = charts.candidates(PIECES, [0.5, 0.25, 0.1], ids=[7, 8, 9], chosen=None)
    assert "✓" not in "".join(figure.layout.yaxis.ticktext)


def test_where_a_piece_was_drawn_the_bars_are_what_it_was_drawn_from():
    figure = draw(drawn_from=[0.3, 0.2, 0.0], others=Others(4_000, 0.2496, 0.5))
    bars, own, rows = figure.data
    assert list(bars.x) == [0.3, 0.2, 0.0, 0.5]
    assert list(own.x) == [0.5, 0.25, 0.0004, 0.2496]
    assert list(figure.layout.yaxis.ticktext)[3] == "4,000 others"
    assert [note.text for note in figure.layout.annotations] == ["0.30", "0.20", "cut off", "0.50"]
    assert "cut off before sampling" in bars.hovertext[2]
    assert "sampling probability <b>0.2000</b>" in rows.hovertext[1]
    assert "the model's own probability <b>0.2500</b>" in rows.hovertext[1]
    assert list(bars.customdata) == [7, 8, 9, -1]
    assert figure.layout.showlegend


def test_a_table_has_both_probabilities_of_a_piece_that_was_drawn():
    spec = charts.candidates_spec(
        PIECES, [0.5, 0.25, 0.1], ids=[7, 8, 9], chosen=1, drawn_from=[0.6, 0.4, 0], others=Others(1, 0.15, 0.0)
    )
    table = spec["layout"]["meta"]["table"]
    assert table["columns"] == ["rank", "piece", "id", "probability", "probability of being drawn", "note"]
    assert table["rows"][1] == [2, "▁a", 8, 0.25, 0.4, "chosen"]
    assert table["rows"][2] == [3, "<br>", 9, 0.1, 0.0, "cut off before sampling"]
    assert table["rows"][3] == [None, "1 other", None, 0.15, 0.0, ""]


def test_every_bar_has_an_edge_that_is_seen():
    bars, _ = draw().data
    assert min(bars.marker.line.width) >= 1
    assert set(bars.marker.line.color) == {TARGET_COLOR, MARK_COLOR}


def test_a_row_can_be_clicked_from_edge_to_edge():
    bars, rows = draw().data
    assert set(rows.x) == {1}
    assert list(rows.customdata) == list(bars.customdata)
    assert list(rows.y) == list(bars.y)
    assert rows.marker.color == "rgba(0,0,0,0)"
    assert "probability <b>0.5000</b>" in rows.hovertext[0]


def test_probabilities_stand_in_one_column():
    notes = draw().layout.annotations
    assert {(note.x, note.xref, note.xanchor) for note in notes} == {(1, "paper", "right")}
    assert [note.text for note in notes] == ["0.50", "0.25", literal("<0.001")]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0.00"),
        (1, "1.00"),
        (0.0004, "<0.001"),
        (0.004, "0.004"),
        (0.25, "0.25"),
        (0.9999, ">0.99"),
        (0.1234, "0.12"),
    ],
)
def test_only_0_reads_0_and_only_1_reads_1(value, text):
    assert chance(value) == text


def test_lists_of_different_length_are_refused():
    with pytest.raises(ValueError, match="3 pieces"):
        charts.candidates(PIECES, [0.5], ids=[1, 2, 3], chosen=0)


def test_no_candidates_is_an_empty_figure():
    assert not charts.candidates([], [], ids=[], chosen=None).data


def test_attention_bars_are_the_weights_in_sentence_order():
    figure = charts.attention_bar(np.array([0.2, 0.8]), ["▁a", "▁a"], allowed=None, title="Shares")
    np.testing.assert_allclose(figure.data[0].y, [0.2, 0.8], rtol=1e-6)
    assert list(figure.data[0].customdata) == [0, 1]
    assert figure.layout.xaxis.ticktext == ("▁a", "▁a")


def test_closed_keys_have_no_bar_of_their_own():
    figure = charts.attention_bar(
        np.array([0.2, 0.0]), ["▁a", "<pad>"], title="Shares", allowed=np.array([True, False]), mask_reason="padding"
    )
    weights, closed = figure.data
    assert np.isnan(weights.y[1])
    assert list(closed.x) == [1]
    assert "padding" in closed.hovertemplate
    assert literal("<pad>") in closed.hovertext[0]


@pytest.mark.parametrize(("largest", "top"), [(0.03, 0.25), (0.25, 0.25), (0.3, 0.5), (0.51, 1), (1.0000001, 1)])
def test_the_axis_of_weights_ends_above_the_largest_of_all_rows(largest, top):
    figure = charts.attention_bar(
        np.array([0.02, 0.0]), ["a", "b"], title="Shares", allowed=np.array([True, False]), largest=largest
    )
    assert figure.layout.yaxis.range == (0, top)
    assert list(figure.data[1].y) == [top]  # a closed key is hatched to the end


def test_attention_of_another_size_is_refused():
    with pytest.raises(ValueError, match="2 keys"):
        charts.attention_bar(np.array([1.0]), ["a", "b"], allowed=None, title="Shares")


def test_what_rules_do_to_a_piece_is_marked_and_said():
    rules = ["closed", None, "lowered"]
    own = draw(rules=rules)
    assert own.layout.yaxis.ticktext == ("⊘ ▁a", "✓ <b>▁a</b>", f"↓ {literal('<br>')}")
    assert "excluded by the model's settings" in html.unescape(own.data[0].hovertext[0])
    assert [note.text for note in own.layout.annotations] == ["0.50", "0.25", literal("<0.001")]
    drawn = draw(rules=rules, drawn_from=[0.0, 1.0, 0.0])
    assert [note.text for note in drawn.layout.annotations] == ["closed", "1.00", "cut off"]
    assert "cut off" not in drawn.data[0].hovertext[0]
