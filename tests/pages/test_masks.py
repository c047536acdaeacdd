"""The Masks page draws the masks that attention took in this batch, with a reason for each cell."""

import numpy as np
import pytest

from glassformer.masks.scene import default_cell
from glassformer.state import session
from tests.pages.conftest import MASKS
from tests.pages.reading import choose, opened, sentences, told, z_of
from transformer.runs.running import run_batch


@pytest.mark.parametrize(("name", "kind"), [("source", "encoder"), ("decoder", "decoder"), ("cross", "cross")])
def test_masks_are_those_that_attention_took(open_page, name, kind):
    test, checkpoint = open_page(MASKS, model="en-fr", mask=name, sentence=2), opened("en-fr")
    batch = [checkpoint.query(source) for source in ("I like coffee.", "Can you help me with this?")]
    taken = run_batch(checkpoint, batch)[1].mask(kind)
    for key in ("mask_bool", "mask_additive"):
        np.testing.assert_array_equal(np.isfinite(z_of(test, key)), taken)


TRIL = np.tril(np.ones((4, 4), bool))


@pytest.mark.parametrize(
    ("mask", "real", "cell"),
    [
        (TRIL, [True] * 4, (2, 3)),  # the last row closes nothing
        (TRIL & (np.arange(4) < 3), [True, True, True, False], (2, 3)),  # a row that is padding explains nothing
        (np.arange(4) < np.full((4, 1), 2), [True] * 4, (0, 2)),
        (np.ones((3, 4), bool), [True] * 3, (0, 0)),
        (np.array([[False, True], [True, True]]), [True, True], (0, 0)),
    ],
)
def test_the_first_cell_is_closed_in_a_row_with_open_keys(mask, real, cell):
    assert default_cell(mask, np.array(real)) == cell


@pytest.mark.parametrize(("bad", "said"), [("abcdefghijklmnop", "reads at most 13"), ("a" * 4001, "4,001 characters")])
def test_a_bad_companion_is_left_out_in_one_sentence(masks, bad, said):
    test = choose(masks(mask="source"), "mask_companion_1", bad)
    assert said in sentences(test)
    assert "2 sentences run as one batch. Source lengths: 6 and 12 tokens" in told(test)
    assert not test.error


def test_another_model_brings_its_own_companions(masks):
    test = choose(masks(mask="source", **{"with": "abc", "sentence": 2}), session.MODEL, "zh-en")
    (box,) = (box for box in test.text_input if box.key.startswith("mask_companion_0"))  # a new one: see `folded_key`
    assert box.value == "我不知道她为什么生气。"
    assert test.selectbox(key="sentence").value == 0
