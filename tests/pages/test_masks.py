"""The Masks page draws the masks that attention took in this batch, with a reason for each cell."""

import numpy as np
import pytest

from glassformer.masks.scene import default_cell
from glassformer.state import session
from tests.pages.conftest import MASKS, ROOT, check
from tests.pages.reading import address, figure, numbers, told
from transformer.checkpoint.load import load
from transformer.runs.running import run_batch


@pytest.fixture(scope="module")
def batch():
    """A checkpoint and the batch that its page opens with, run here."""
    checkpoint = load(ROOT / "checkpoints" / "en-fr")
    sources = ("I like coffee.", "Can you help me with this?")
    return checkpoint, run_batch(checkpoint, [checkpoint.query(source) for source in sources])


def open_cells(drawn):
    """The open cells of a drawn mask, bool [query, key]."""
    return np.isfinite(numbers(drawn["data"][0]["z"]))


def by_hand(trace, name, pad):
    """A mask of one sentence from its ids alone."""
    src, tgt = trace.src_ids, trace.read_ids
    if name in ("source", "cross"):
        return [[key != pad for key in src] for _ in (src if name == "source" else tgt)]
    return [
        [(key != pad or k == 0 or name == "causal") and (k <= q or name == "target") for k, key in enumerate(tgt)]
        for q in range(len(tgt))
    ]


@pytest.mark.parametrize("name", ["source", "target", "causal", "decoder", "cross"])
def test_masks_are_those_of_the_ids(open_page, batch, name):
    checkpoint, traces = batch
    test = open_page(MASKS, model=checkpoint.name, mask=name, sentence=2)
    expected = np.array(by_hand(traces[1], name, checkpoint.config.pad_id))
    for key in ("mask_bool", "mask_additive"):
        np.testing.assert_array_equal(open_cells(figure(test, key)), expected)
    assert "cells match the masks that attention used in this run" in told(test)


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


@pytest.mark.parametrize(
    ("src", "companion", "lengths", "padded"),
    [("noon", "abcdef", "5 and 7", 1), ("abcdefghijkl", "noon", "13 and 5", 2)],
)
def test_the_page_opens_on_a_batch_of_two_with_padding(masks, src, companion, lengths, padded):
    test = masks(src=src)
    assert [test.text_input(key=f"mask_companion_{i}").value for i in range(3)] == [companion, "", ""]
    assert f"2 sentences run as one batch. Source lengths: {lengths} tokens" in told(test)
    assert not {"with", "sentence", "mask"} & address(test).keys()
    assert (test.selectbox(key="sentence").value, test.selectbox(key="mask").value) == (padded - 1, "decoder")
    assert f"is padding in sentence {padded}" in told(test)
    assert "<pad>" in str(test.selectbox(key="mask_key").options)


@pytest.mark.parametrize(("bad", "said"), [("abcdefghijklmnop", "reads at most 13"), ("a" * 4001, "4,001 characters")])
def test_a_bad_companion_is_left_out_in_one_sentence(masks, bad, said):
    test = check(masks(mask="source").text_input(key="mask_companion_1").set_value(bad).run())
    assert said in "\n".join(element.value.replace("\\", "") for element in (*test.warning, *test.info))
    assert "2 sentences run as one batch. Source lengths: 6 and 12 tokens" in told(test)
    assert not test.error


def test_another_model_brings_its_own_companions(masks):
    test = masks(mask="source", **{"with": "abc", "sentence": 2})
    check(test.selectbox(key=session.MODEL).set_value("zh-en").run())
    assert test.text_input(key="mask_companion_0").value == "我不知道她为什么生气。"
    assert test.selectbox(key="sentence").value == 0


def test_the_page_opens_on_the_mask_that_attention_takes_and_on_the_row_with_most_open_keys(open_page, batch):
    checkpoint, traces = batch
    test = open_page(MASKS, model=checkpoint.name)
    expected = by_hand(traces[0], "decoder", checkpoint.config.pad_id)
    np.testing.assert_array_equal(open_cells(figure(test, "mask_bool")), expected)
    query, key = test.selectbox(key="mask_query").value, test.selectbox(key="mask_key").value
    n_real = traces[0].n_tokens("decoder")
    assert (query, key) == (n_real - 1, n_real)
    assert sum(expected[query]) == n_real >= 5
    assert "mask" not in address(test)
