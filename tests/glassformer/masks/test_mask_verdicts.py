"""What the Masks page says about its checks, from numbers made up for it."""

import numpy as np
import pytest

from glassformer.masks.mask_texts import causality_verdict
from transformer.analysis.mask_checks import Movement


def moved(*kept, elsewhere=0.0):
    rows = np.array(kept, dtype=np.float32)
    return Movement(kept=rows, taken=rows + 1, largest=8.0, elsewhere=elsewhere)


@pytest.mark.parametrize(
    ("found", "place", "said"),
    [
        (moved(0, 0, 2.5), 2, "Rows 1 to 2 changed by exactly 0, row 3 by 2.5. "),
        (moved(0, 1.5, 2.5), 1, "Row 1 changed by exactly 0, rows 2 to 3 by 1.5 to 2.5. "),
        (moved(0, 1.501, 1.502), 1, "rows 2 to 3 by 1.5. "),
    ],
)
def test_a_range_is_written_as_one_only_where_it_is_one(found, place, said):
    held, sentence = causality_verdict(found, place=place, n_rows=3, n_sentences=1)
    assert held
    assert said in sentence
    assert "the mask does hide what comes later" in sentence


def test_an_earlier_row_that_moved_is_a_fault():
    held, sentence = causality_verdict(moved(0.5, 2.5), place=1, n_rows=2, n_sentences=1)
    assert not held
    assert "earlier rows can see what comes later" in sentence


def test_another_sentence_that_moved_is_a_fault():
    held, sentence = causality_verdict(moved(0, 2.5, elsewhere=1.0), place=1, n_rows=2, n_sentences=2)
    assert not held
    assert "Rows of the other sentences changed by 1." in sentence
