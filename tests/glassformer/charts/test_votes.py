"""The chart of votes has each choice's count, beside that of the round before, and marks the right one."""

from glassformer.charts.histograms import RIGHT, votes_spec
from glassformer.charts.theme import as_figure

drawn = as_figure(votes_spec)


def test_bars_are_the_counts_and_the_round_before_stands_beside():
    figure = drawn([(3, 0, 9), (5, 6, 1)], ["one", "two", "<b>three</b>"], title="Votes")
    assert [list(bars.x) for bars in figure.data] == [[3, 0, 9], [5, 6, 1]]
    assert [list(bars.text) for bars in figure.data] == [["3", "0", "9"], ["5", "6", "1"]]
    assert list(figure.layout.yaxis.tickvals) == [0, 1, 2]
    assert "<b>" not in figure.layout.yaxis.ticktext[2]
    assert figure.layout.xaxis.range[1] > 9
    assert figure.layout.yaxis.range == (2.5, -0.5)  # the first on top
    assert isinstance(figure.layout.height, int)  # as Streamlit wants it
    assert not drawn([(0, 0)], ["a", "b"], title="Votes").layout.showlegend


def test_the_right_choice_is_marked_and_letters_are_larger_on_a_wall():
    plain, marked = (drawn([(5, 1)], ["a", "b"], title="6 votes", right=right) for right in (None, 1))
    assert list(plain.layout.yaxis.ticktext) == ["a", "b"]
    assert [text.startswith(RIGHT) for text in marked.layout.yaxis.ticktext] == [False, True]
    wall = drawn([(5, 1)], ["a", "b"], title="6 votes", large=True)
    assert wall.layout.yaxis.tickfont.size > 16
    assert not wall.layout.title.text
