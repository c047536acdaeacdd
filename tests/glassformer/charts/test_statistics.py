"""The measure of one head in each row: a bar for each that counts, and a line at their mean."""

import numpy as np
import pytest

from glassformer.charts.grammar import at_mean
from glassformer.charts.theme import figure_in, literal
from glassformer.runs.picture_registry import PICTURES
from tests.glassformer.test_pictures import look, opened  # noqa: F401 (a fixture)


@pytest.mark.parametrize(("measure", "top"), [("entropy_share", 1.0), ("entropy", None)])
def test_each_row_has_its_bar_and_the_line_is_their_mean(opened, measure, top):  # noqa: F811 (the fixture)
    picture = PICTURES["head_table_rows"]
    run = look(picture, opened("decoder"), "decoder", layer=0, head=1, step=1, measure=measure)
    figure = figure_in(picture.of(run).spec, "en")
    (drawn,) = figure.data
    named = figure.layout.meta["table"]["rows"]
    assert list(drawn.hovertext) == [f"{n}: <b>{literal(piece)}</b>" for n, piece, _ in named]
    assert [None if np.isnan(value) else value for value in drawn.y] == pytest.approx([row[2] for row in named])
    assert figure.layout.shapes[0].y0 == pytest.approx(np.nanmean(drawn.y))
    assert list(drawn.marker.line.width) == [2 * (row == run.trace.row_of(1)) for row in range(len(drawn.y))]
    assert figure.layout.yaxis.rangemode == "tozero"
    assert figure.layout.yaxis.range == (None if top is None else (0, top))


def test_rows_that_do_not_count_are_not_in_the_mean():
    (line,) = at_mean(np.array([np.nan, 1.0, 0.5]))
    assert (line["y0"], line["y1"]) == (0.75, 0.75)
    assert at_mean(np.full(3, np.nan)) == []
