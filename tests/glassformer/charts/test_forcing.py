"""The charts of teacher forcing show what each piece reads, predicts and loses, and where two texts part."""

import numpy as np
import pytest

from glassformer import charts
from glassformer.charts.piece_rows import COLUMNS, MOST, place_in_bands, tops, window

LABELS = [f"p{i}" for i in range(11)]
READS = ["&#60;s&#62;", *LABELS[:-1]]


def shift(chosen):
    losses = [i / 2 for i in range(11)]
    return charts.shift_spec(["<s>", *LABELS[:-1]], LABELS, losses, guessing=5.0, chosen=chosen, title="t")


def cells(figure):
    """Text, shade and hover of every cell that is drawn, by row and place."""
    found = {}
    for trace in figure["data"]:
        for row, column in np.argwhere(np.isfinite(trace["z"])).tolist():
            at = place_in_bands((row, column), n_rows=2, first=figure["layout"]["meta"]["first"])
            found[at] = (trace["colorscale"], float(trace["z"][row, column]), trace["hovertext"][row][column])
    return found


def test_inputs_stand_above_labels_shifted_by_one_and_a_place_sees_itself_and_what_stands_before_it():
    found = cells(figure := shift(3))
    assert set(found) == {(row, place) for row in (0, 1) for place in range(11)}
    for place in range(11):
        assert f"token {place + 1} reads <b>{READS[place]}</b>" in found[0, place][2]
        assert f"token {place + 1} has to predict <b>{LABELS[place]}</b>" in found[1, place][2]
    table = figure["layout"]["meta"]["table"]["rows"]
    assert [row[1] for row in table[1:]] == [row[2] for row in table[:-1]]
    assert [found[0, place][1] > 0 for place in range(11)] == [place <= 3 for place in range(11)]
    assert "not visible from token 4" in found[0, 4][2]
    assert all(shade > 0 for (row, _), (_, shade, _) in cells(shift(None)).items() if row == 0)
    shades = [found[1, place][1] for place in range(11)]  # the darker the larger the loss, up to guessing
    assert shades == pytest.approx([min(i / 2 / 5.0, 1) for i in range(11)])


def test_the_window_holds_the_place_and_is_whole_bands_and_a_click_between_rows_means_nothing():
    for count, place in ((3, None), (48, 47), (49, 0), (49, 48), (400, 200), (400, 399)):
        found = window(count, place)
        assert (place or 0) in found
        assert len(found) <= MOST
        assert found.start % COLUMNS == 0
        assert found.stop == count or found.stop % COLUMNS == 0
        assert count > MOST or found == range(count)
    assert place_in_bands((1, 2), n_rows=2, first=0) is place_in_bands((4,), n_rows=2, first=0) is None
    assert place_in_bands((6, 2), n_rows=2, first=16) == (1, 16 + COLUMNS + 2)
    assert tops(3, 2) == sorted(tops(3, 2))


def texts(one, other, parts_at, tail):
    each = ([0.5] * len(one), [0.25] * len(other))
    return charts.two_texts_spec(("a", "b"), (one, other), each, parts_at=parts_at, tail=tail, title="t")


def test_two_texts_are_alike_until_they_part():
    found = cells(figure := texts("xyz.", "xw.", 1, 1))
    parts = [str(row[-1]) for row in figure["layout"]["meta"]["table"]["rows"]]
    ends = ["first difference", "same ending"]
    assert parts == ["same", ends[0], "after the first difference", ends[1], "same", *ends]
    assert found[0, 0][:2] == found[1, 0][:2]  # colour and shade
    assert found[0, 1][0] != found[0, 0][0]
    assert found[0, 3][:2] == found[1, 2][:2] not in (found[0, 0][:2], found[0, 2][:2])
    frames = [shape for shape in figure["layout"]["shapes"] if shape["type"] == "rect"]
    assert [frame["x0"] for frame in frames] == pytest.approx([0.52, 0.52])
    equal = texts("xy", "xy", None, 0)
    assert not [shape for shape in equal["layout"]["shapes"] if shape["type"] == "rect"]
    assert len({str(cell[:2]) for cell in cells(equal).values()}) == 1


def test_losses_of_pieces_and_of_hidden_pieces_are_bars_with_their_mean():
    given = {"best": ["a", "<x>"], "best_probabilities": [0.9, 0.5], "ranks": [1, 40], "title": "t"}
    figure = charts.piece_losses(["a", "b"], [0.5, 1.5], places=[0, 1], chosen=1, guessing=4.0, **given)
    assert [shape.y0 for shape in figure.layout.shapes] == [1.0, 4.0]  # and at guessing
    assert figure.layout.shapes[0].line.dash != figure.layout.shapes[1].line.dash
    assert figure.layout.yaxis.range[1] > 4.0
    figure = charts.hidden_pieces(["a", "b"], [0.1, 4.0], places=[1, 2], chosen=2, **given)
    bars = figure.data[0]
    assert (list(bars.y), list(bars.customdata)) == ([pytest.approx(0.1), 4], [1, 2])
    assert "likeliest: &#60;x&#62; (0.50)" in bars.hovertext[1]
    assert "rank 40" in bars.hovertext[1]
    assert bars.marker.color[0] != bars.marker.color[1]  # the first would have been written
    assert list(bars.marker.line.width) == [1, 3]
    assert figure.layout.shapes[0].y0 == pytest.approx(2.05)
    assert figure.layout.meta["table"]["rows"][1] == [3, "b", 4.0, pytest.approx(np.exp(-4)), 40, "<x>", 0.5]
    with pytest.raises(ValueError, match="2 tokens need"):
        charts.hidden_pieces_spec(["a", "b"], [0.1], places=[1, 2], chosen=None, **given)
