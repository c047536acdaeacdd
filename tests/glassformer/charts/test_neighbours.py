"""The map of pieces has each where it is, by where it is from, and its labels stay apart."""

import numpy as np

from glassformer import charts
from glassformer.charts import points as neighbours
from glassformer.charts.points import MapPoint
from glassformer.charts.theme import literal


def boxes(points, figure):
    """Where each label stands, at the width and height that the chart reckons with."""
    (x0, x1), (y0, y1) = figure.layout.xaxis.range, figure.layout.yaxis.range
    found = []
    for trace in figure.data:
        for i, text, place in zip(trace.customdata, trace.text, trace.textposition, strict=True):
            if not text:
                continue
            point = next(one for one in points if one.id == i)
            across = (point.x - x0) / (x1 - x0) * neighbours._ROOM[0]
            down = (y1 - point.y) / (y1 - y0) * neighbours._ROOM[1]
            width, height, r = 12 * len(point.piece) * 0.6, 12, neighbours._STYLES[point.kind]["size"] / 2
            left = {"middle right": across + r, "middle left": across - r - width}.get(place, across - width / 2)
            top = {"top center": down - r - height, "bottom center": down + r}.get(place, down - height / 2)
            found.append((left, top, left + width, top + height))
    return found


def test_points_stand_where_they_are_by_where_they_are_from():
    points = [
        MapPoint("a", 1, "source", 0.0, 1.0),
        MapPoint("<b>", 2, "target", 2.0, 0.0),
        MapPoint("c", 3, "both", 1.0, 3.0),
        MapPoint("d", 4, "neighbour", 5.0, 5.0, near="a, <b>"),
    ]
    figure = charts.piece_map(points, shares=(0.5, 0.25), chosen=2, title="t", note="2 of 3")
    found = {trace.name: trace for trace in figure.data}
    assert list(found) == ["neighbour", "source", "output", "both"]
    assert (found["output"].x[0], found["output"].y[0]) == (2, 0)
    assert found["output"].text[0] == literal("<b>")
    assert found["output"].marker.size[0] > found["source"].marker.size[0]
    assert f"neighbour of a, {literal('<b>')}" in found["neighbour"].hovertext[0]
    assert list(found["neighbour"].customdata) == [4]
    assert figure.layout.xaxis.title.text == literal("Axis 1: 50% of the variance")
    assert figure.layout.title.subtitle.text == "2 of 3"
    assert figure.layout.meta["table"]["rows"][3] == ["d", 4, "neighbour", "a, <b>", 5.0, 5.0]


def test_labels_of_a_crowd_stay_apart_and_the_rest_is_counted():
    random = np.random.default_rng(0)
    points = [MapPoint(f"word{i}", i, "neighbour", *random.random(2).tolist()) for i in range(150)]
    figure = charts.piece_map(points, shares=(0.1, 0.1), chosen=None, title="t")
    placed = boxes(points, figure)
    assert 20 < len(placed) < 150
    left, top, right, bottom = np.transpose(placed)
    assert left.min() >= 0
    assert right.max() <= neighbours._ROOM[0]
    over = (left[:, None] < right) & (right[:, None] > left) & (top[:, None] < bottom) & (bottom[:, None] > top)
    np.testing.assert_array_equal(over, np.eye(len(placed), dtype=bool))
    assert figure.layout.title.subtitle.text.startswith(f"{150 - len(placed)} of 150 labels")


def test_the_sentence_and_the_chosen_are_labelled_before_neighbours():
    points = [MapPoint("near", 0, "neighbour", 0, 0), MapPoint("far", 2, "neighbour", 9, 9)]
    points += [MapPoint("x" * 14, 3 + i, "source", 0, 0) for i in range(9)]
    figure = charts.piece_map(points, shares=(1, 0), chosen=11, title="t")
    texts = {i: text for trace in figure.data for i, text in zip(trace.customdata, trace.text, strict=True)}
    assert texts[11]
    assert (texts[0], texts[2]) == ("", "far")
