"""Charts of parameters hold every number, label axes without overlap, and say what they leave out."""

from types import SimpleNamespace

import numpy as np
import pytest

from glassformer import charts
from glassformer.charts.theme import NEUTRAL_COLOR, figure_in
from glassformer.extensions.parameters import parameter_pictures
from transformer.analysis.parameters import Spectrum

EDGES = np.array([-2.0, -1.0, 0.0, 1.0])


def spread(counts=(1, 0, 40), edges=EDGES, **options):
    return charts.number_spread(edges, np.array(counts), title="w", value_name="Value", **options)


def test_each_interval_has_its_bar_and_says_where_it_lies():
    figure = spread()
    (bars,) = figure.data
    assert [list(values) for values in (bars.x, bars.width, bars.y)] == [[-1.5, -0.5, 0.5], [1, 1, 1], [1, 0, 40]]
    assert bars.hovertext[0] == "from −2 to −1"
    assert figure.layout.meta["table"]["rows"] == [[-2.0, -1.0, 1], [-1.0, 0.0, 0], [0.0, 1.0, 40]]
    assert figure.layout.shapes[0].x0 == 0  # numbers lie on both sides
    assert not spread(edges=EDGES + 5).layout.shapes
    assert not spread(counts=(), edges=np.zeros(1)).data
    with pytest.raises(ValueError, match="4 edges for 2 counts"):
        spread(counts=(1, 2))


class Rows:
    """A tokenizer of which each id is a row."""

    names = ("<pad>", "▁a", "<b>")

    def piece(self, i):
        return self.names[i]

    def is_special(self, i):
        return i == 0


def of_parameter(**known):
    return SimpleNamespace(name="w", **known)


def singular(values):
    found = Spectrum(np.array(values, dtype=np.float64))
    plot = parameter_pictures.singular.plot(of_parameter(one=SimpleNamespace(spectrum=found)))
    return figure_in(plot.spec, "en")


@pytest.mark.parametrize("values", [[3, 2, 1], [9, 5, 2], [40, 3, 1], [5e3, 1], [1e12, 1], [1.02, 1.01, 1]])
def test_labels_of_singular_values_do_not_overlap(values):
    axis = singular(values).layout.yaxis
    low, high = axis.range
    if high - low >= 2:
        assert axis.dtick >= 1
        assert 2 <= (high - low) / axis.dtick <= 8
        return
    at = np.log10(axis.tickvals)
    assert len(at) >= 3
    assert np.diff(at).min() > (high - low) / 8
    assert all(low <= one <= high for one in at)
    assert len(set(axis.ticktext)) == len(at)


def test_singular_values_of_0_are_counted_instead():
    figure = singular([10, 1, 0, 0])
    assert list(figure.data[0].y) == [10, 1]
    assert figure.layout.title.subtitle.text == "2 singular values are 0"
    assert not singular([0, 0]).data


def test_rows_are_drawn_with_their_pieces_special_ones_pale():
    scene = of_parameter(pieces=Rows(), lengths=np.array([0.0, 1.0, 2.5]), has_rows=True)
    plot = parameter_pictures.rows.plot(scene)
    figure = figure_in(plot.spec, "en")
    (drawn,) = figure.data
    assert list(drawn.x) == [0.0, 1.0, 2.5]
    assert list(figure.layout.yaxis.ticktext) == ["&#60;pad&#62;", "▁a", "&#60;b&#62;"]
    assert drawn.marker.color[0] != drawn.marker.color[1] == NEUTRAL_COLOR
    assert drawn.hovertext[0].startswith("<b>&#60;pad&#62;</b>, a special token<br>length of the row <b>0</b>")
    assert "special" not in drawn.hovertext[1]
    assert figure.layout.meta["table"]["rows"][2] == ["<b>", 2.5, 2]
    assert [note.text for note in figure.layout.annotations] == ["0", "1", "2.5"]
