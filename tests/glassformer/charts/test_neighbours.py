"""The map of pieces has each where it is, by where it is from, and its labels stay apart."""

import numpy as np

from glassformer import charts
from glassformer.charts import neighbours
from glassformer.charts.neighbours import MapPoint
from glassformer.charts.theme import literal

RANDOM = np.random.default_rng(0)


def crowd(count, kind="neighbour", text="喝咖啡"):
    return [MapPoint(f"{text}{i}", i, kind, *RANDOM.random(2).tolist()) for i in range(count)]


def boxes(points, figure):
    """Where each label stands, at the width and height that the chart reckons with."""
    ranges = [list(figure.layout.xaxis.range), list(figure.layout.yaxis.range)]
    found = []
    for trace in figure.data:
        for i, text, place in zip(trace.customdata, trace.text, trace.textposition, strict=True):
            if not text:
                continue
            point = next(point for point in points if point.id == i)
            across = (point.x - ranges[0][0]) / (ranges[0][1] - ranges[0][0]) * neighbours._ROOM[0]
            down = (ranges[1][1] - point.y) / (ranges[1][1] - ranges[1][0]) * neighbours._ROOM[1]
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
    points = crowd(150, text="word")
    figure = charts.piece_map(points, shares=(0.1, 0.1), chosen=None, title="t")
    placed = boxes(points, figure)
    assert 20 < len(placed) < 150
    for place, one in enumerate(placed):
        assert one[0] >= 0
        assert one[2] <= neighbours._ROOM[0]
        for other in placed[:place]:
            apart = one[0] >= other[2] or one[2] <= other[0] or one[1] >= other[3] or one[3] <= other[1]
            assert apart
    assert figure.layout.title.subtitle.text.startswith(f"{150 - len(placed)} of 150 labels")


def test_the_sentence_and_the_chosen_are_labelled_before_neighbours():
    points = [MapPoint("near", 0, "neighbour", 0, 0), MapPoint("own", 1, "source", 0, 0)]
    points += [MapPoint("far", 2, "neighbour", 9, 9), *(MapPoint("x" * 14, 3 + i, "source", 0, 0) for i in range(9))]
    figure = charts.piece_map(points, shares=(1, 0), chosen=11, title="t")
    texts = {i: text for trace in figure.data for i, text in zip(trace.customdata, trace.text, strict=True)}
    assert texts[11]
    assert not texts[0]
    assert texts[2] == "far"
