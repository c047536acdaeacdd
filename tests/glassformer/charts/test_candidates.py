"""Bars of next pieces, draws and votes are what was computed, marked by more than colour, and say what is cut off."""

import html

import pytest

from glassformer import charts
from glassformer.charts.candidates import Drawn, Others, Shares
from glassformer.charts.histograms import RIGHT, votes_spec
from glassformer.charts.theme import TARGET_COLOR, as_figure, literal
from transformer.i18n.sentence import chance

PIECES = ["▁a", "▁a", "<br>"]
votes = as_figure(votes_spec)


def draw(probabilities=(0.5, 0.25, 0.0004), *, chosen=1, **options):
    return charts.candidates(PIECES, list(probabilities), ids=[7, 8, 9], chosen=chosen, **options)


def numbers_of(figure, *names):
    """The numbers of the traces with these names."""
    return [list(next(trace for trace in figure.data if trace.name == name).x) for name in names]


def notes_of(figure):
    return [note.text for note in figure.layout.annotations]


def test_bars_are_the_probabilities_with_their_ids_and_the_chosen_one_is_marked_by_more_than_colour():
    bars, rows = (figure := draw()).data
    assert (list(bars.x), list(bars.customdata)) == ([0.5, 0.25, 0.0004], [7, 8, 9])
    assert figure.layout.yaxis.ticktext == ("▁a", "✓ <b>▁a</b>", literal("<br>"))
    assert [colour == TARGET_COLOR for colour in bars.marker.color] == [False, True, False]
    assert list(bars.marker.line.width) == [1, 1.5, 1]  # every bar has an edge that is seen
    assert (set(rows.x), list(rows.customdata)) == ({1}, [7, 8, 9])  # a row can be clicked from edge to edge
    assert "✓" not in "".join(draw(chosen=None).layout.yaxis.ticktext)  # while the choice is hidden
    with pytest.raises(ValueError, match="3 tokens"):
        draw([0.5])
    written = {0: "0.00", 1: "1.00", 0.0004: "<0.001", 0.004: "0.004", 0.25: "0.25", 0.9999: ">0.99"}
    assert {value: chance(value) for value in written} == written  # only 0 reads 0, and only 1 reads 1


def test_where_a_piece_was_drawn_the_bars_are_what_it_was_drawn_from_and_what_rules_do_to_it_is_said():
    figure = draw(drawn_from=[0.3, 0.2, 0.0], others=Others(4_000, 0.2496, 0.5))
    bars, own, rows = figure.data
    assert (list(bars.x), list(own.x)) == ([0.3, 0.2, 0.0, 0.5], [0.5, 0.25, 0.0004, 0.2496])
    assert list(bars.customdata) == [7, 8, 9, -1]
    assert notes_of(figure) == ["0.30", "0.20", "cut off", "0.50"]
    assert "probability <b>0.2000</b><br>the model's own <b>0.2500</b>" in rows.hovertext[1]
    assert figure.layout.meta["table"]["rows"][1:] == [
        [2, "▁a", 8, 0.25, 0.2, "chosen"],
        [3, "<br>", 9, 0.0004, 0.0, "cut off before sampling"],
        [None, "4,000 others", None, 0.2496, 0.5, ""],
    ]
    own = draw(rules=(rules := ["closed", None, "lowered"]))
    assert own.layout.yaxis.ticktext == ("⊘ ▁a", "✓ <b>▁a</b>", f"↓ {literal('<br>')}")
    assert "excluded by the model's settings" in html.unescape(own.data[0].hovertext[0])
    assert notes_of(draw(rules=rules, drawn_from=[0.0, 1.0, 0.0])) == ["closed", "1.00", "cut off"]


def test_each_piece_has_its_own_tempered_and_sampling_probability_and_a_line_is_where_the_cut_is():
    rows = [Shares("a", 0.7, 0.5, 0.6, id=4, drawn=True), Shares("b", 0.2, 0.3, 0.4, id=9)]
    rows += [Shares("c", 0.06, 0.12, 0.0, id=2, note="cut off by top-k")]
    figure = charts.reshaped(rows, others=(7, Shares("7 others", 0.04, 0.08, 0.0)), border=2, title="T")
    found = numbers_of(figure, "sampling probability", "tempered", "the model's own")
    assert found == [[0.6, 0.4, 0.0, 0.0], [0.5, 0.3, 0.12, 0.08], [0.7, 0.2, 0.06, 0.04]]
    assert figure.layout.shapes[0].y0 == 1.5
    whole = figure.data[-1]
    assert list(whole.customdata) == [4, 9, 2, -1]
    assert "cut off by top-k" in whole.hovertext[2]


def test_an_output_has_its_share_its_interval_and_its_probabilities():
    drawn = [Drawn("<i>one</i>", 8, 0.8, 0.75, 0.6, 0.5, 0.94, 3), Drawn("two", 2, 0.2, 0.1, 0.05, 0.06, 0.5, 7)]
    figure = charts.draws(drawn, title="T", chosen=1)
    found = numbers_of(figure, "share", "probability", "the model's own")
    assert found == [[0.8, 0.2], [0.75, 0.1], [0.6, 0.05]]
    error = next(trace for trace in figure.data if trace.name == "share").error_x
    assert [*error.array, *error.arrayminus] == pytest.approx([0.14, 0.3, 0.3, 0.14])
    assert list(figure.data[-1].customdata) == [3, 7]
    assert "<i>one" not in str(figure.data[-1].hovertext) + str(figure.layout.yaxis.ticktext)


def test_votes_stand_beside_those_of_the_round_before_and_the_right_choice_is_marked():
    figure = votes([(3, 0, 9), (5, 6, 1)], ["one", "two", "<b>three</b>"], title="Votes")
    assert [list(bars.x) for bars in figure.data] == [[3, 0, 9], [5, 6, 1]]
    assert [list(bars.text) for bars in figure.data] == [["3", "0", "9"], ["5", "6", "1"]]
    assert "<b>" not in figure.layout.yaxis.ticktext[2]
    assert figure.layout.xaxis.range[1] > 9
    assert figure.layout.yaxis.range == (2.5, -0.5)  # the first on top
    assert isinstance(figure.layout.height, int)  # as Streamlit wants it
    assert not votes([(0, 0)], ["a", "b"], title="Votes").layout.showlegend
    plain, marked = (votes([(5, 1)], ["a", "b"], title="6 votes", right=right) for right in (None, 1))
    assert list(plain.layout.yaxis.ticktext) == ["a", "b"]
    assert [text.startswith(RIGHT) for text in marked.layout.yaxis.ticktext] == [False, True]
    wall = votes([(5, 1)], ["a", "b"], title="6 votes", large=True)  # in larger letters
    assert wall.layout.yaxis.tickfont.size > 16
    assert not wall.layout.title.text
