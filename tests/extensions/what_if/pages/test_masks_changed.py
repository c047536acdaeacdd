"""The Masks page while something is changed inside the model."""

from functools import partial
from pathlib import Path

import numpy as np

from tests.pages.conftest import ROOT
from tests.pages.reading import everything, figure, told
from transformer.checkpoint.load import load
from transformer.runs.interventions import parse
from transformer.runs.running import run_batch

text = partial(told, kinds=("markdown",))


def test_one_row_is_that_of_the_changed_run_and_the_checks_say_that_they_are_not(masks):
    given = {"src": "glass", "with": "lanterns", "do": "fill-all.m1"}
    test = masks(masks="one_row", mask="source", sentence=1, layer=1, head=2, query=2, key=8, **given)
    checkpoint = load(Path(ROOT) / "checkpoints" / "reverse")
    made = [checkpoint.query(source, interventions=parse(given["do"])) for source in ("glass", "lanterns")]
    rows = figure(test, "mask_row")["layout"]["meta"]["table"]["rows"]
    weights = [row[4] for row in rows]
    np.testing.assert_allclose(weights, run_batch(checkpoint, made)[0].maps("encoder")[0, 1, 1], atol=5e-6)
    assert rows[7][3] is None, "padding is closed"
    assert f"replaced with −1, which still goes into the softmax, so the weight is {weights[7]:.4f}" in text(test)
    later = masks(masks="one_row", mask="decoder", query=2, key=4, **given)
    assert figure(later, "mask_row")["layout"]["meta"]["table"]["rows"][3][2:5] == [None] * 3
    assert "and key 4 comes later" in text(later)
    assert "without the change" in everything(masks(masks="checks", **given))
    assert "without the change" not in everything(masks(masks="checks", src="glass"))


def test_a_change_that_leaves_masks_as_they_are_says_so(masks):
    assert "The change leaves this mask as it was." in text(masks(src="glass", do="fill-all.m1", mask="decoder"))


def test_a_key_that_a_change_closes_has_a_reason(masks):
    test = masks(masks="one_row", mask="decoder", src="glass", query=1, key=1, do="causal-hidden", **{"with": ""})
    rows = figure(test, "mask_row")["layout"]["meta"]["table"]["rows"]
    assert [row[5] for row in rows[:1]] == ["closed by a change to the model, or by a layer's window"]
