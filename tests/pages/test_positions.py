"""The Positions page draws the table that the model adds, and what is chosen on it stands in its address."""

import numpy as np
import pytest

from glassformer.positions import position_controls, positions_page, table_pictures
from glassformer.positions.positions_page import MOST_CELLS, PAGE
from tests.pages.conftest import POSITIONS
from tests.pages.reading import (
    address,
    charts_of,
    choose,
    figure,
    numbers,
    opened,
    sentences,
    title,
    told,
    type_source,
    z_of,
)


def table_of(name, side="encoder"):
    return getattr(opened(name).model, side).embedding.positions.table.detach().numpy()


@pytest.mark.parametrize(("side", "stack"), [("source", "encoder"), ("target", "decoder")])
def test_a_learned_table_is_drawn_with_the_dimensions_that_are_chosen(open_page, side, stack):
    test, table = open_page(POSITIONS, model="reverse", side=side, dims="4.64"), table_of("reverse", stack)
    np.testing.assert_array_equal(z_of(test, "position_table"), table)
    drawn = figure(test, "position_curves")
    for place, dim in enumerate((3, 63)):
        assert drawn["layout"]["annotations"][place]["text"].startswith(f"Dimension {dim};")
        np.testing.assert_array_equal(numbers(drawn["data"][2 * place]["y"]), table[:, dim])


def test_sines_stand_apart_from_cosines_unless_asked_otherwise(open_page):
    test, table = open_page(POSITIONS, model="zh-en"), table_of("zh-en")
    whole = np.hstack([table[:64, ::2], table[:64, 1::2]])
    np.testing.assert_allclose(z_of(test, "position_table"), whole, atol=1e-5)
    labels = figure(test, "position_table")["layout"]["meta"]["ticks"]["xaxis"]["labels"]
    assert labels[126:130] == ["252", "254", "1", "3"]
    np.testing.assert_allclose(z_of(choose(test, "apart", False), "position_table"), table[:64], atol=1e-5)
    choose(test, position_controls.COUNT, 128)
    np.testing.assert_allclose(z_of(test, "position_table"), table, rtol=2e-5)  # five digits are sent


@pytest.mark.parametrize(("n", "d"), [(128, 256), (512, 512), (512, 15), (16, 16_384), (512, 1)])
def test_a_map_never_has_more_cells_than_it_says(n, d):
    dims = table_pictures.drawn_dims(n, d)
    assert n * len(dims) <= MOST_CELLS + 2 * n
    assert (n * d <= MOST_CELLS) == (len(dims) == d)
    assert all(dim + 1 in dims or dim + 1 == d for dim in dims[dims % 2 == 0])  # whole pairs


def test_a_shift_ends_where_the_measuring_of_a_long_table_ends(open_page, monkeypatch):
    monkeypatch.setattr(positions_page, "MOST_SHIFTED", 64)  # of 128 positions
    test = open_page(POSITIONS, positions="shift", model="zh-en", shift=100)
    assert "at most 62" in sentences(test)
    assert (test.slider(key="shift").max, test.slider(key="shift").value) == (62, 62)
    assert "shifted by 62" in title(test, "position_points")
    assert "Over the first 60 of 124 positions p" in told(choose(test, "shift", 4))


def test_one_part_is_drawn_at_a_time_and_a_table_needs_no_sentence(open_page):
    test = open_page(POSITIONS, model="reverse")
    of_no_table = {"rotary_scores", "bias_spreads"}
    for source in (None, ""):
        test = test if source is None else type_source(test, source)
        for part in position_controls.PARTS["table"]:
            choose(test, "positions_panel", part)
            drawn = part != "sentence" or source != ""
            assert charts_of(test) == ({*PAGE.parts[part].pictures} - of_no_table if drawn else set())
            assert source is not None or address(test).get("positions", "table") == part
