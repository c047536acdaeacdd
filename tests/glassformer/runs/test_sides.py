"""The rows and columns of the three kinds of map."""

import pytest

from glassformer.runs.map_axes import sides
from glassformer.runs.visible_trace import VisibleTrace
from glassformer.state.view import View


@pytest.fixture(scope="module")
def trace(reverse):
    return reverse.run("glass")


ROWS = ["<s> → s", "s → s", "s → a", "a → l", "l → g", "g → </s>"]
SOURCE = ["g", "l", "a", "s", "s", "</s>"]


def test_the_rows_of_the_decoder_say_what_they_read_and_predict(trace):
    for kind in ("decoder", "cross"):
        found = sides(VisibleTrace(trace, View(step=2)), kind)
        assert found.queries == ROWS
        assert found.query_ids == trace.read_ids
        assert (found.query_side, found.current) == ("target", 2)


def test_columns_are_what_is_looked_at(trace):
    visible = VisibleTrace(trace, View())
    assert sides(visible, "cross").keys == SOURCE
    assert sides(visible, "decoder").keys == ["<s>", "s", "s", "a", "l", "g"]
    encoder = sides(visible, "encoder")
    assert encoder.queries == encoder.keys == SOURCE
    assert encoder.current is None


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_labels_fit_the_maps(trace, kind):
    found = sides(VisibleTrace(trace, View()), kind)
    assert trace.maps(kind).shape[2:] == (len(found.queries), len(found.keys))
    assert (len(found.query_ids), len(found.key_ids)) == (len(found.queries), len(found.keys))


def test_guessing_hides_what_comes(trace):
    covered = VisibleTrace(trace, View(step=2, guess=True), revealed=False)
    assert sides(covered, "decoder").queries == ["<s> → s", "s → s", "s → ?"]
    assert sides(covered, "decoder").keys == ["<s>", "s", "s"]
    assert sides(covered, "cross").keys == SOURCE
