"""Charts of masks: their data against the arrays they were given."""

import numpy as np
import pytest

from glassformer import charts
from glassformer.charts.grammar import upright
from glassformer.charts.marks import Axis
from glassformer.charts.theme import figure_in
from glassformer.masks.mask_pictures import movement

MASK = np.array([[True, False, False], [True, True, False], [True, True, False]])
FUTURE = np.triu(np.ones((3, 3), bool), 1) & ~np.array([False, False, True])
PADDING = ~MASK & ~FUTURE
QUERIES, KEYS = ["<s> → a", "a → </s>", "<pad>"], ["<s>", "a", "<pad>"]


def draw_map(**changes):
    given = {
        "reasons": {"future": FUTURE, "padding": PADDING},
        "queries": QUERIES,
        "keys": KEYS,
        "title": "A mask",
        "axes": ("Query", "Key"),
        "cell": (0, 2),
        "colour": "target",
        "convention": "bool",
    }
    return charts.mask_map(MASK, **(given | changes))


def cells_of(trace):
    return np.isfinite(np.array(trace.z, dtype=float))


def test_open_and_closed_cells_are_drawn_where_they_are_and_say_why():
    figure = draw_map()
    opened, future, padding = (trace for trace in figure.data if trace.type == "heatmap")
    np.testing.assert_array_equal(cells_of(opened), MASK)
    np.testing.assert_array_equal(cells_of(future), FUTURE)
    np.testing.assert_array_equal(cells_of(padding), PADDING)
    assert "True</b>: may attend" in opened.hovertemplate
    assert "False</b>: <i>future</i>" in future.hovertemplate
    assert "False</b>: <i>padding</i>" in padding.hovertemplate
    assert [trace.type for trace in figure.data][-1] == "scatter"  # the hatching


@pytest.mark.parametrize(("convention", "words"), [("bool", ("T", "F")), ("additive", ("0", "−∞"))])
def test_each_cell_is_written_once_in_its_convention(convention, words):
    figure = draw_map(convention=convention)
    written = [trace.text for trace in figure.data if trace.text is not None]
    assert len(written) == 1
    assert [list(row) for row in written[0]] == [[words[0] if may else words[1] for may in row] for row in MASK]


@pytest.mark.parametrize(("n", "written"), [(8, "−∞"), (9, "")])
def test_infinity_is_written_where_a_cell_has_room_for_it(n, written):
    mask = np.tril(np.ones((n, n), bool))
    drawn = charts.mask_map(
        mask, reasons={"later": ~mask}, queries=["q"] * n, keys=["k"] * n, title="A mask", axes=("Query", "Key"),
        cell=(0, 0), colour="target", convention="additive",
    )  # fmt: skip
    (signs,) = [trace.text for trace in drawn.data if trace.text is not None]
    assert (signs[0][0], signs[0][1]) == ("0", written)
    assert "−∞ is added" in drawn.data[1].hovertemplate


def test_an_additive_mask_says_what_is_added():
    opened, future, *_ = draw_map(convention="additive").data
    np.testing.assert_array_equal(np.array(opened.z)[MASK], 0)
    assert "−∞ is added" in future.hovertemplate


def test_the_cell_that_is_looked_at_is_framed():
    frame = draw_map(cell=(1, 2)).layout.shapes[0]
    assert (frame.x0, frame.x1, frame.y0, frame.y1) == (1.5, 2.5, 0.5, 1.5)


def test_small_cells_are_not_written_in():
    n = 30
    figure = charts.mask_map(
        np.ones((n, n), bool),
        reasons={},
        queries=["q"] * n,
        keys=["k"] * n,
        title="A mask",
        axes=("Query", "Key"),
        cell=(0, 0),
        colour="source",
        convention="bool",
    )
    assert all(trace.text is None for trace in figure.data)


@pytest.mark.parametrize("reasons", [{}, {"future": FUTURE}, {"future": ~MASK, "padding": PADDING}, {"x": MASK}])
def test_every_closed_cell_needs_one_reason(reasons):
    with pytest.raises(ValueError, match="one reason"):
        draw_map(reasons=reasons)


def test_markup_in_pieces_is_text():
    figure = draw_map(queries=["<b>x</b>", "a", "b"], keys=["%{z}", "$1$", "c"])
    assert "<b>x</b>" not in str(figure.layout.yaxis.ticktext)
    assert "&#36;1&#36;" in figure.layout.xaxis.ticktext


def test_a_batch_shows_who_is_padded():
    real = np.array([[True, True, True], [True, False, False]])
    pieces = [["a", "b", "</s>"], ["c", "<pad>", "<pad>"]]
    figure = charts.padded_batch(
        pieces,
        real,
        sentences=["Sentence 1", "Sentence 2"],
        columns=["1", "2", "3"],
        title="The batch",
        column_axis="Position",
        marked_row=1,
        colour="source",
    )
    opened, closed = (trace for trace in figure.data if trace.type == "heatmap")
    np.testing.assert_array_equal(cells_of(opened), real)
    np.testing.assert_array_equal(cells_of(closed), ~real)
    assert opened.text[0][0] == "a"
    assert (figure.layout.shapes[0].y0, figure.layout.shapes[0].y1) == (0.5, 1.5)
    table = figure.layout.meta["table"]
    assert table["rows"][2] == ["Sentence 1", "3", "</s>", ""]
    assert table["rows"][4] == ["Sentence 2", "2", "<pad>", "padding"]


def own(mask, n_sentences):
    names = [f"Sentence {i + 1}" for i in range(n_sentences)]
    return charts.mask_own_shape(mask, title="Own", sentences=names, colour="source")


def test_a_padding_mask_has_one_row_a_sentence():
    mask = np.array([[True, True, False], [True, False, False]])[:, None, None, :]
    figure = own(mask, 2)
    (block,) = figure.data
    np.testing.assert_array_equal(block.z, mask[:, 0, 0])
    assert figure.layout.yaxis.ticktext == ("Sentence 1", "Sentence 2")
    assert figure.layout.xaxis.title.text == "Key"


def test_a_mask_with_queries_has_one_block_a_sentence():
    mask = np.stack([np.tril(np.ones((4, 4), bool)), np.eye(4, dtype=bool)])[:, None]
    figure = own(mask, 2)
    for place, block in enumerate(figure.data):
        np.testing.assert_array_equal(block.z, mask[place, 0])
        assert block.xaxis == ("x", "x2")[place]
    assert figure.layout.xaxis.domain[1] < figure.layout.xaxis2.domain[0]
    assert figure.layout.xaxis2.title.text == "Key (2)"
    assert len(own(mask[:1], 2).data) == 1  # the causal mask is stored once for all


def test_a_mask_of_another_shape_is_refused():
    with pytest.raises(ValueError, match="give one"):
        own(np.ones((3, 1, 4, 4), bool), 2)
    with pytest.raises(ValueError, match="give one"):
        own(np.ones((2, 4, 4, 4), bool), 2)


SCORES = np.array([-1.5, 2.0, 0.25], dtype=np.float32)
ALLOWED = np.array([True, True, False])
WEIGHTS = np.array([0.03, 0.97, 0.0], dtype=np.float32)


def draw_row(**changes):
    given = {
        "keys": ["a", "b", "<pad>"],
        "title": "Row",
        "key_axis": "Key",
        "key": 1,
        "colour": "source",
        "mask_reasons": ["", "", "padding"],
    }
    return charts.masked_row(SCORES, ALLOWED, WEIGHTS, **(given | changes))


def test_a_row_is_drawn_before_and_after_the_mask():
    before, after, weights, closed_scores, closed_after, closed_weights = draw_row().data
    np.testing.assert_array_equal(before.y, [-1.5, 2.0, np.nan])
    np.testing.assert_array_equal(after.y, [-1.5, 2.0, np.nan])
    np.testing.assert_array_equal(weights.y, np.array([0.03, 0.97, np.nan], dtype=np.float32))
    np.testing.assert_array_equal(closed_scores.y, np.array([np.nan, np.nan, 0.25]))
    assert [trace.yaxis for trace in (before, after, weights)] == ["y", "y2", "y3"]
    for trace in (closed_after, closed_weights):
        assert list(trace.x) == [2]
        assert trace.marker.pattern.shape == "/"
        assert "padding" in trace.hovertext[0]
    assert list(closed_after.text) == ["−∞"]


def test_a_closed_key_that_weighs_something_has_a_bar():
    figure = draw_row(filled="−1")
    assert list(figure.data[4].text) == ["−1"]
    weights = np.array([0.03, 0.9, 0.07], dtype=np.float32)
    figure = charts.masked_row(
        SCORES, ALLOWED, weights, keys=["a", "b", "<pad>"], title="Row", key_axis="Key", key=1,
        colour="source", mask_reasons=["", "", "padding"], filled="−1",
    )  # fmt: skip
    np.testing.assert_array_equal(figure.data[2].y, weights)
    assert len(figure.data[5].x) == 0
    assert figure.layout.meta["table"]["rows"][2][3:5] == [None, pytest.approx(0.07)]


def test_what_is_saved_of_a_row_has_no_number_where_it_is_closed():
    rows = draw_row().layout.meta["table"]["rows"]
    assert rows[1] == [2, "b", 2.0, 2.0, pytest.approx(0.97), ""]
    assert rows[2] == [3, "<pad>", 0.25, None, None, "padding"]


def test_an_open_row_has_nothing_closed():
    figure = charts.masked_row(
        SCORES, np.ones(3, bool), WEIGHTS, keys=["a", "b", "c"], title="Row", key_axis="Key", key=0,
        colour="target", mask_reasons=["", "", ""],
    )  # fmt: skip
    assert len(figure.data) == 3


def test_sizes_of_a_row_must_fit():
    with pytest.raises(ValueError, match="2 keys"):
        draw_row(keys=["a", "b"])


def test_a_movement_of_zero_has_its_own_place_below_all_others():
    kept, taken = np.array([0.0, 3e-7, 0.5]), np.array([0.2, 0.0, 4.0])
    both = {"with": kept, "without": taken}
    spec = movement("Moved", Axis("Row", ["a", "b", "c"]), "max", both, 1e-5, [upright(2, below=False)])
    figure = figure_in(spec, "en")
    zero = figure.layout.yaxis.tickvals[0]
    assert figure.layout.yaxis.ticktext[0] == "exactly 0"
    for trace, values in zip(figure.data, (kept, taken), strict=True):
        np.testing.assert_allclose(trace.y, np.where(values == 0, zero, values))
        assert [text == "exactly 0" for text in trace.text] == [value == 0 for value in values]
        assert "%{text}" in trace.hovertemplate
    assert zero < 3e-7
    band, line = figure.layout.shapes
    assert band.y1 == 1e-5
    assert line.x0 == line.x1 == 2
    low, high = figure.layout.yaxis.range
    assert low < np.log10(zero)
    assert high > np.log10(4.0)
    assert figure.layout.meta["table"]["rows"][0] == [1, "a", 0.0, 0.2]


def test_a_movement_needs_a_number_for_each_row():
    with pytest.raises(ValueError, match="2 places"):
        movement("Moved", Axis("Row", ["a", "b"]), "max", {"with": np.zeros(3)}, 1e-5)
