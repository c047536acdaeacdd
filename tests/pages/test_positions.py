"""The Positions page draws the table that the model adds, and what is chosen on it stands in its address."""

import numpy as np
import pytest

from glassformer.positions import position_controls, positions_page, table_pictures
from glassformer.positions.positions_page import MOST_CELLS, PAGE
from tests.pages.conftest import POSITIONS, check
from tests.pages.reading import address, charts_of, figure, numbers, opened, sentences, type_source


@pytest.fixture
def page(open_page):
    """A function that opens the page: `page("shift", model="reverse")`."""
    return lambda part="table", **parameters: open_page(
        POSITIONS, **({"positions": part} if part != "table" else {}), **parameters
    )


def table_of(name, side="source"):
    model = opened(name).model
    stack = model.encoder if side == "source" else model.decoder
    return stack.embedding.positions.table.detach().numpy()


def z_of(test, key):
    return numbers(figure(test, key)["data"][0]["z"])


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_learned_table_is_drawn_with_the_dimensions_that_are_chosen(page, side):
    test, table = page(model="reverse", side=side, dims="4.64"), table_of("reverse", side)
    np.testing.assert_array_equal(z_of(test, "position_table"), table)
    drawn = figure(test, "position_curves")
    for place, dim in enumerate((3, 63)):
        assert drawn["layout"]["annotations"][place]["text"].startswith(f"Dimension {dim};")
        np.testing.assert_array_equal(numbers(drawn["data"][2 * place]["y"]), table[:, dim])


def test_sines_stand_apart_from_cosines_unless_asked_otherwise(page):
    test, table = page(model="zh-en"), table_of("zh-en")
    whole = np.hstack([table[:64, ::2], table[:64, 1::2]])
    np.testing.assert_allclose(z_of(test, "position_table"), whole, atol=1e-5)
    assert figure(test, "position_table")["layout"]["meta"]["ticks"]["xaxis"]["labels"][126:130] == [
        "252", "254", "1", "3"
    ]  # fmt: skip
    check(next(toggle for toggle in test.toggle if toggle.key == "apart").set_value(False).run())
    np.testing.assert_allclose(z_of(test, "position_table"), table[:64], atol=1e-5)
    check(test.selectbox(key=position_controls.COUNT).set_value(128).run())
    np.testing.assert_allclose(z_of(test, "position_table"), table, rtol=2e-5)  # five digits are sent


@pytest.mark.parametrize(("n", "d"), [(128, 256), (512, 512), (512, 15), (16, 16_384), (512, 1)])
def test_a_map_never_has_more_cells_than_it_says(n, d):
    dims = table_pictures.drawn_dims(n, d)
    assert n * len(dims) <= MOST_CELLS + 2 * n
    assert (n * d <= MOST_CELLS) == (len(dims) == d)
    assert all(dim + 1 in dims or dim + 1 == d for dim in dims[dims % 2 == 0])  # whole pairs


def test_a_shift_ends_where_the_measuring_of_a_long_table_ends(page, monkeypatch):
    monkeypatch.setattr(positions_page, "MOST_SHIFTED", 64)  # of 128 positions
    test = page("shift", model="zh-en", shift=100)
    assert "at most 62" in sentences(test)
    assert (test.slider(key="shift").max, test.slider(key="shift").value) == (62, 62)
    assert "shifted by 62" in figure(test, "position_points")["layout"]["title"]["text"]
    check(test.slider(key="shift").set_value(4).run())
    assert "Over the first 60 of 124 positions p" in test.markdown[0].value.replace("\\", "")


def test_one_part_is_drawn_at_a_time_and_a_table_needs_no_sentence(page):
    test = page(model="reverse")
    of_no_table = {"rotary_scores", "bias_spreads"}
    for source in (None, ""):
        test = test if source is None else type_source(test, source)
        for part in position_controls.TABLE_PARTS:
            check(next(c for c in test.segmented_control if c.key == "positions_panel").set_value(part).run())
            drawn = part != "sentence" or source != ""
            assert charts_of(test) == ({*PAGE.parts[part].pictures} - of_no_table if drawn else set())
            assert source is not None or address(test).get("positions", "table") == part
