"""When the Masks page pads its sentence unasked: where padding is looked at, or an address means a padded batch."""

import numpy as np
import pytest

from tests.pages.conftest import check
from tests.pages.reading import figure, told
from tests.pages.test_masks import open_cells


def test_the_causal_mask_comes_first_and_without_pads(masks):
    test = masks()
    assert test.selectbox(key="mask").value == "causal"
    cells = open_cells(figure(test, "mask_bool"))
    np.testing.assert_array_equal(cells, np.tril(np.ones_like(cells)))
    assert "<pad>" not in str(test.selectbox(key="mask_query").options)
    check(test.selectbox(key="mask").set_value("decoder").run())
    assert "Source lengths: 6, 5 and 12 pieces, all padded to 12" in told(test)
    assert "<pad>" in str(test.selectbox(key="mask_query").options)


@pytest.mark.parametrize("looked_at", [{"sentence": 2}, {"query": 9}, {"key": 9}, {"with": "noon"}])
def test_an_address_that_means_a_padded_batch_still_shows_it(masks, looked_at):
    test = masks(**looked_at)
    assert "<pad>" in str(test.selectbox(key="mask_query").options) + told(test) + str(figure(test, "mask_batch"))
    assert test.selectbox(key="mask_query").value == looked_at.get("query", 1) - 1
