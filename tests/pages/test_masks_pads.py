"""Which sentence and which cell the Masks page opens on, where nothing was chosen."""

import numpy as np
import pytest

from glassformer.masks.scene import default_cell

TRIL = np.tril(np.ones((4, 4), bool))
PADDED = TRIL & (np.arange(4) < 3)


@pytest.mark.parametrize(
    ("mask", "real", "cell"),
    [
        (TRIL, [True] * 4, (2, 3)),  # the last row closes nothing
        (PADDED, [True, True, True, False], (2, 3)),  # a row that is padding explains nothing
        (np.arange(4) < np.full((4, 1), 2), [True] * 4, (0, 2)),
        (np.ones((3, 4), bool), [True] * 3, (0, 0)),
        (np.zeros((3, 4), bool), [True] * 3, (0, 0)),
        (np.array([[False, True], [True, True]]), [True, True], (0, 0)),
    ],
)
def test_the_first_cell_is_closed_in_a_row_with_open_keys(mask, real, cell):
    assert default_cell(mask, np.array(real)) == cell


@pytest.mark.parametrize("looked_at", [{"sentence": 2}, {"query": 9}, {"key": 9}, {"with": "noon"}])
def test_an_address_still_means_the_sentence_and_the_cell_that_it_names(masks, looked_at):
    test = masks(**looked_at)
    for name, value in looked_at.items():
        if name != "with":
            assert test.selectbox(key=name if name == "sentence" else f"mask_{name}").value == value - 1
    assert "2 sentences" in str([one.value for one in test.caption])
