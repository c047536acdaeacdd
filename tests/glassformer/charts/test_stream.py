"""The charts of the residual stream hold the numbers they were given, and say what they show."""

import numpy as np
import pytest

from glassformer import charts
from glassformer.charts.lens import Depth
from glassformer.charts.stream import MOST_LINES, whole_steps
from glassformer.charts.theme import DARK_COLORS, literal
from tests.glassformer.charts.test_positions import colours

RANDOM = np.random.default_rng(0)
DEPTHS = [Depth("embedding", "the embedding"), Depth("1 self", "layer 1's self-attention"), Depth("1 FFN", "<b>")]
VALUES = RANDOM.random((3, 4)).astype(np.float32)
PIECES = ["▁a", "<b>", "▁a", "$x$"]
LINES = {"chosen": 1, "title": "Of <b>", "value_name": "root mean square"}


def test_each_token_is_a_line_with_a_gap_after_it():
    weak, strong = charts.stream_lines(DEPTHS, VALUES, PIECES, **LINES).data
    np.testing.assert_array_equal(strong.y[:-1], VALUES[:, 1])
    drawn = np.reshape(weak.y, (3, 4))
    np.testing.assert_array_equal(drawn[:, :-1], VALUES[:, [0, 2, 3]].T)
    assert np.isnan(drawn[:, -1]).all()
    assert list(weak.customdata[:5]) == [0, 0, 0, 0, 2]
    assert weak.hovertext[4] == "token 3: <b>▁a</b><br>after the embedding"
    assert strong.hovertext[2] == f"token 2: <b>{literal('<b>')}</b><br>after {literal('<b>')}"
    assert strong.line.width > weak.line.width


def test_the_lines_state_their_table_and_title():
    layout = charts.stream_lines(DEPTHS, VALUES, PIECES, **LINES).layout
    assert layout.title.text == literal("Of <b>")
    assert layout.meta["table"]["columns"] == ["token", "piece", "after", "root mean square"]
    assert layout.meta["table"]["rows"][4] == [2, "<b>", "layer 1's self-attention", float(VALUES[1, 1])]


def test_a_single_token_is_one_line():
    assert len(charts.stream_lines(DEPTHS, VALUES[:, :1], ["a"], **(LINES | {"chosen": 0})).data) == 1


def test_very_many_tokens_are_a_range_that_says_so():
    values = RANDOM.random((3, MOST_LINES + 1)).astype(np.float32)
    figure = charts.stream_lines(DEPTHS, values, ["a"] * (MOST_LINES + 1), **LINES)
    low, high, strong = figure.data
    np.testing.assert_array_equal(low.y, values.min(1))
    np.testing.assert_array_equal(high.y, values.max(1))
    np.testing.assert_array_equal(strong.y[:-1], values[:, 1])
    assert f"{MOST_LINES + 1} tokens" in figure.layout.title.subtitle.text


@pytest.mark.parametrize("changes", [{"chosen": 4}, {"chosen": -1}])
def test_lines_need_a_chosen_token_and_one_value_each(changes):
    with pytest.raises(ValueError, match="one each"):
        charts.stream_lines(DEPTHS, VALUES, PIECES, **(LINES | changes))
    with pytest.raises(ValueError, match="one each"):
        charts.stream_lines(DEPTHS, VALUES[:2], PIECES, **LINES)


def test_what_was_added_stands_beside_the_stream_with_its_share():
    before, added, aligned = np.array([2.0, 4.0, 0.0]), np.array([1.0, 1.0, 3.0]), np.array([0.5, -1.0, 0.0])
    figure = charts.stream_added(DEPTHS, before, added, aligned, title="t")
    assert [list(bars.y) for bars in figure.data] == [list(before), list(added)]
    assert [(note.x, note.text) for note in figure.layout.annotations] == [(0, "0.50"), (1, "0.25")]
    assert "ratio <b>0.250</b><br>cosine <b>−1.000</b>" in figure.data[0].hovertext[1]
    assert figure.layout.meta["table"]["rows"][2] == ["<b>", 0.0, 3.0, None, 0.0]
    with pytest.raises(ValueError, match="each"):
        charts.stream_added(DEPTHS, before[:2], added, aligned, title="t")


@pytest.mark.parametrize("colour", ["source", "target", "neutral"])
def test_every_colour_has_a_dark_twin(colour):
    wide = RANDOM.random((3, MOST_LINES + 2))
    specs = [
        charts.stream_lines_spec(DEPTHS, VALUES, PIECES, **LINES, colour=colour),
        charts.stream_lines_spec(DEPTHS, wide, ["a"] * wide.shape[1], **LINES, colour=colour),
        charts.stream_added_spec(DEPTHS, VALUES[:, 0], VALUES[:, 1], VALUES[:, 2], title="t", colour=colour),
    ]  # fmt: skip
    for spec in specs:
        assert colours(spec) <= DARK_COLORS.keys()
        assert spec["layout"]["height"] > 100


@pytest.mark.parametrize("largest", [0.004, 0.87, 6.56, 11.4, 20, 1234.5])
def test_the_axis_of_sizes_ends_at_a_tick_above_every_line(largest):
    axis = whole_steps(np.array([0.0, largest / 3, largest, np.nan]))
    ticks = np.arange(0, axis["range"][1], axis["dtick"])
    assert ticks[-1] >= largest * 0.999
    assert 3 <= len(ticks) <= 7
    assert ticks[-2] < largest


def test_an_axis_of_nothing_is_still_one():
    assert whole_steps(np.array([np.nan]))["range"][1] > 0
