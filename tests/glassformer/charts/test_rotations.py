"""Charts of positions that act inside attention hold the numbers they were given, and say what they show."""

import numpy as np
import pytest

from glassformer import charts
from glassformer.charts.by_distance import DISTANCE_AXIS, Curve
from glassformer.charts.rotations import PAIR_AXIS, Turns

SPEEDS = np.array([1.0, 0.1, 0.01])
DISTANCES = np.arange(-3, 4)


def test_a_rotation_is_drawn_as_the_cosine_of_its_angle():
    angles = np.arange(5)[:, None] * SPEEDS
    figure = charts.rotation_map(angles, n_pairs=3, pair=1, pairs=range(3), title="t")
    np.testing.assert_allclose(figure.data[0].z, np.cos(angles), atol=1e-7)
    assert (figure.data[0].zmin, figure.data[0].zmax) == (-1, 1)
    assert figure.data[0].customdata[2, 1].tolist() == [
        "p = <b>2</b>",
        "pair <b>1</b>: dimensions 1 and 4<br>turned by p · 5.73°",
    ]
    assert (figure.layout.shapes[0].x0, figure.layout.shapes[0].x1) == (0.5, 1.5)
    assert figure.layout.xaxis.title.text == PAIR_AXIS
    some = charts.rotation_map_spec(angles[:, [0, 2]], n_pairs=3, pair=1, pairs=[0, 2], title="t")
    assert "shapes" not in some["layout"]  # the pair that is followed is not drawn
    with pytest.raises(ValueError, match="do not fit"):
        charts.rotation_map_spec(angles, n_pairs=3, pair=1, pairs=[0, 2], title="t")


def test_a_pair_goes_around_its_circle():
    points = charts.turning_circle(np.pi / 2, 6, title="t").data[0]
    np.testing.assert_allclose(points.x, [1, 0, -1, 0, 1, 0], atol=1e-6)
    np.testing.assert_allclose(points.y, [0, 1, 0, -1, 0, 1], atol=1e-6)
    assert list(points.text) == ["0", "1", "2", "3", "", ""]  # later ones would cover them
    assert list(points.textposition[:4]) == ["middle right", "top center", "middle left", "bottom center"]
    assert list(points.customdata) == [0, 90, 180, 270, 360, 450]


def test_wavelengths_stand_beside_what_they_were():
    waves = 2 * np.pi / SPEEDS
    lines = [Turns("layer 1", waves, main=True), Turns("before the scaling", waves / 8)]
    figure = charts.turning_waves(lines, limits=[("longest text", 512)], pair=2, title="t")
    np.testing.assert_allclose(figure.data[0].y, waves, rtol=1e-6)
    assert list(figure.data[0].customdata) == [0, 1, 2]
    assert figure.data[0].marker.size.argmax() == 2
    assert [trace.name for trace in figure.data] == ["layer 1", "before the scaling", "longest text: 512 tokens"]
    assert figure.layout.yaxis.type == "log"


def test_curves_by_distance_put_what_is_looked_at_on_top():
    curves = [Curve("head 1", DISTANCES * 1.0, place=0), Curve("head 2", DISTANCES * 2.0, strong=False, place=1)]
    figure = charts.distance_curves(DISTANCES, curves, title="t", value_name="score", marked=-2, edges=[0.5])
    assert [trace.name for trace in figure.data] == ["head 2", "head 1", "actual distance"]
    assert (figure.data[2].x[0], figure.data[2].y[0]) == (-2, -2)
    assert set(figure.data[0].customdata) == {1}
    assert figure.layout.shapes[0].x0 == 0.5
    assert figure.layout.xaxis.title.text == DISTANCE_AXIS
    elsewhere = charts.distance_curves(DISTANCES, curves, title="t", value_name="score", marked=9)
    assert len(elsewhere.data) == 2
    with pytest.raises(ValueError, match="7 distances"):
        charts.distance_curves_spec(DISTANCES, [Curve("x", np.zeros(2))], title="t", value_name="score")


def test_a_map_of_heads_names_distances_and_buckets():
    bias = np.outer([1.0, -2.0], DISTANCES)
    figure = charts.distance_map(bias, DISTANCES, title="t", buckets=np.arange(7), head=1)
    np.testing.assert_allclose(figure.data[0].z, bias)
    assert figure.data[0].zmax == -figure.data[0].zmin == 6
    assert figure.data[0].customdata[1, 0].tolist() == ["head <b>2</b>", "distance <b>-3</b>, bucket 0"]
    assert (figure.layout.shapes[0].y0, figure.layout.shapes[0].y1) == (0.5, 1.5)
    with pytest.raises(ValueError, match="for 2 distances"):
        charts.distance_map_spec(bias, DISTANCES[:2], title="t")


def test_spreads_have_two_bars_a_head():
    content, added = charts.spreads(np.array([3.0, 1.0]), np.array([0.5, 2.0]), head=1, title="t").data
    assert (list(content.y), list(added.y), list(content.x)) == ([3, 1], [0.5, 2], [1, 2])
    assert list(added.marker.line.width) == [0, 2]
