"""The shift of a table with more positions than are measured, without a browser."""

import pytest

from glassformer.positions import positions_page
from tests.pages.conftest import POSITIONS, check
from tests.pages.reading import address, figure, sentences


@pytest.fixture
def long_table(open_page, monkeypatch):
    """A function that opens the shift of a table of which only the first 64 of 128 positions are measured."""
    monkeypatch.setattr(positions_page, "MOST_SHIFTED", 64)
    return lambda **parameters: open_page(POSITIONS, positions="shift", model="zh-en", **parameters)


def test_the_slider_ends_where_the_measuring_ends(long_table):
    test = long_table(shift=100)
    assert "at most 62" in sentences(test)
    assert (test.slider(key="shift").max, test.slider(key="shift").value) == (62, 62)
    assert "shifted by 62" in figure(test, "position_points")["layout"]["title"]["text"]
    assert figure(test, "position_errors")["layout"]["shapes"][0]["x0"] == 62
    check(test.slider(key="shift").set_value(61).run())
    assert address(test)["shift"] == "61"


def test_the_sentence_says_how_much_of_the_table_was_measured(long_table):
    said = long_table(shift=4).markdown[0].value.replace("\\", "")
    assert "Over the first 60 of 124 positions p" in said
