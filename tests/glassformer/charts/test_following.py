"""Which rows of a map are marked at which step."""

import numpy as np
import pytest

from glassformer import charts
from glassformer.charts.following import follow_steps
from glassformer.charts.grid import follow_in_tiles


def names(letter, count):
    return [f"{letter}{place}" for place in range(count)]


def heatmap(rows, columns):
    return charts.heatmap_spec(
        np.ones((rows, columns)), queries=names("q", rows), keys=names("k", columns), allowed=None, title=""
    )


def followed(spec):
    return spec["layout"]["meta"]["follow"]


def test_a_row_is_framed_over_its_whole_width():
    spec = heatmap(3, 5)
    shapes = list(spec["layout"]["shapes"])
    follow_steps(spec, [0, 0, None, 2], n_rows=3, n_columns=5)
    (frame,) = followed(spec)["marks"]
    assert (followed(spec)["rows"], followed(spec)["starts"]) == ([0, 0, None, 2], [0])
    assert (frame["x0"], frame["x1"], frame["line"]["width"]) == (-0.5, 4.5, 2)
    assert spec["layout"]["shapes"] == shapes


def test_a_row_that_the_map_lacks_is_refused():
    with pytest.raises(ValueError, match="Row 3 of a map with 3"):
        follow_steps(heatmap(3, 5), [0, 3], n_rows=3, n_columns=5)


@pytest.mark.parametrize(("most", "rows", "starts", "end"), [(10_000, [0, 1, 2, 3, 4], [0, 5], 17.5),
                                                            (60, [0, 0, 1, 1, 2], [0, 3], 8.5)])  # fmt: skip
def test_every_tile_has_its_mark_and_a_block_stands_for_all_its_queries(most, rows, starts, end):
    maps = np.ones((2, 3, 5, 6))
    spec = charts.grid_spec(maps, queries=names("q", 5), keys=names("k", 6), allowed=None, title="", most_cells=most)
    follow_in_tiles(spec, range(5))
    assert (followed(spec)["rows"], followed(spec)["starts"]) == (rows, starts)
    assert [mark["x1"] for mark in followed(spec)["marks"]] == [end]


@pytest.mark.parametrize(("n_rows", "width"), [(64, 2), (65, 1), (128, 1), (129, None)])
def test_thin_rows_have_a_thin_frame_and_thinner_ones_are_pointed_at(n_rows, width):
    spec = heatmap(n_rows, 2)
    follow_steps(spec, range(n_rows), n_rows=n_rows, n_columns=2)
    marks = followed(spec)["marks"]
    if width:
        assert [mark["line"]["width"] for mark in marks] == [width]
    else:
        assert [(mark["type"], mark["xref"], mark["xanchor"]) for mark in marks] == [
            ("path", "paper", 0),
            ("path", "paper", 1),
        ]
