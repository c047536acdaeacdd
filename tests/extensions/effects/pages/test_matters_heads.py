"""The part Heads of the page What matters: its numbers are those of runs without the head."""

import time

import numpy as np
import pytest

from glassformer.extensions.effects.matters import heads_panel as heads
from glassformer.extensions.what_if import head_effect_jobs
from glassformer.extensions.what_if.head_effects import head_effects
from glassformer.extensions.what_if.interventions import ZeroHead
from glassformer.runs import loading, measurement_jobs
from tests.extensions.scripts import MATTERS
from tests.pages.conftest import check
from tests.pages.reading import figure, go_to, keys_of, numbers, payload, sentences, view
from transformer import run
from transformer.runs.apply_interventions import tap_for
from transformer.runs.replay import replay

SOURCE = "abcdef"


@pytest.fixture
def page(open_page):
    def opened(**options):
        test = open_page(MATTERS, **{"model": "reverse", "src": SOURCE} | options)
        return until_measured(test)

    return opened


def until_measured(test):
    """On a busy machine the map may not be there at once."""
    end = time.monotonic() + 60
    while time.monotonic() < end and "matters_effects" not in keys_of(test):
        check(test.run())
    return test


def reverse():
    return loading.open_checkpoint(loading.usable()["reverse"])


def without(kind, layer, head, *others):
    """Change of each step's log-probability: the output read by a changed model, log-softmax by numpy."""
    checkpoint = reverse()
    trace = loading.runner().trace(checkpoint, checkpoint.query(SOURCE, interventions=others))

    def log_probs(interventions):
        logits = replay(checkpoint, trace, ["logits"], tap=tap_for(interventions, checkpoint))["logits"]
        shifted = logits.astype(np.float64) - logits.max(-1, keepdims=True)
        own = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
        return own[np.arange(trace.n_steps), list(trace.tgt_ids)]

    return log_probs([ZeroHead(kind, layer, head)]) - log_probs([])


def drawn(test):
    """[row, head] of the map: encoder, decoder and cross, an empty row between two."""
    return numbers(figure(test, "matters_effects")["data"][0]["z"])


def test_the_map_has_every_heads_effect_on_the_whole_output(page):
    test = page()
    found = drawn(test)
    assert found.shape == (2 + 1 + 2 + 1 + 2, 4)
    assert np.isnan(found[[2, 5]]).all()
    for start, kind in ((0, "encoder"), (3, "decoder"), (6, "cross")):
        for layer, head in ((0, 1), (1, 3)):
            assert found[start + layer, head] == pytest.approx(without(kind, layer, head).sum(), abs=1e-4)
    scale = figure(test, "matters_effects")["data"][0]
    assert scale["zmin"] == -scale["zmax"] == pytest.approx(-np.nanmax(abs(found)), abs=1e-6)


def test_one_step_and_other_measures_come_from_the_same_measurement(page, monkeypatch):
    test = page(layer=2, head=4)
    begun = []
    monkeypatch.setattr(head_effect_jobs, "measuring", lambda *of: begun.append(of))
    check(test.button_group(key="effect_at").set_value("step").run())
    check(go_to(test, 3))
    assert drawn(test)[7, 3] == pytest.approx(without("cross", 1, 3)[2], abs=1e-4)
    check(test.selectbox(key="effect").set_value("kl").run())
    scale = figure(test, "matters_effects")["data"][0]
    assert scale["zmin"] == 0
    assert np.nanmin(drawn(test)) >= 0
    check(test.selectbox(key="effect").set_value("pieces").run())
    assert set(np.unique(drawn(test)[~np.isnan(drawn(test))])) <= {0.0, 1.0}
    assert not begun


def test_the_chosen_head_is_drawn_step_by_step_beside_its_map(page):
    test = page(kind="decoder", layer=1, head=3)
    bars = numbers(figure(test, "matters_steps")["data"][0]["y"])
    np.testing.assert_allclose(bars, without("decoder", 0, 2), rtol=0, atol=1e-4)
    checkpoint = reverse()
    trace = loading.runner().trace(checkpoint, checkpoint.query(SOURCE))
    weights = numbers(figure(test, "matters_map")["data"][0]["z"])
    np.testing.assert_allclose(np.nan_to_num(weights), trace.maps("decoder")[0, 2], atol=1e-3)
    frame = figure(test, "matters_effects")["layout"]["shapes"][0]
    assert (frame["y0"], frame["x0"]) == (2.5, 1.5)


def test_a_head_that_is_taken_away_stays_away_in_every_number(page):
    found = drawn(page(layer=1, head=1, do="zero-cross.1.1"))
    assert found[6, 0] == pytest.approx(0, abs=1e-5)
    assert found[0, 0] == pytest.approx(without("encoder", 0, 0, ZeroHead("cross", 0, 0)).sum(), abs=1e-4)


def test_the_table_has_a_row_for_each_head(page):
    test = page(step=2)
    (element,) = test.dataframe
    assert len(element.value) == 24
    assert element.value["log_prob"].iloc[16] == pytest.approx(without("cross", 0, 0).sum(), abs=1e-3)
    assert element.value["log_prob_step"].iloc[16] == pytest.approx(without("cross", 0, 0)[1], abs=1e-3)


def test_a_large_model_is_measured_when_it_is_asked_for_and_can_be_stopped(open_page, monkeypatch):
    monkeypatch.setattr(measurement_jobs, "SMALL", 0)
    test = open_page(MATTERS, model="reverse", src="stop")
    keys = keys_of(test)
    assert "matters_effects" not in keys
    assert "matters_grid" in keys
    assert "parameters, so this may take" in sentences(test)
    check(test.button(key=heads.MEASURE).click().run())
    until_measured(test)
    assert drawn(test).shape == (8, 4)


def test_hidden_steps_are_not_summed(open_page):
    test = check(go_to(open_page(MATTERS, model="reverse", src=SOURCE, guess=1, layer=1, head=1), 3))
    assert "matters_effects" not in keys_of(test)  # it would tell about the piece
    until_measured(check(test.button(key="matters_heads_reveal").click().run()))
    assert drawn(test)[6, 0] == pytest.approx(without("cross", 0, 0)[:3].sum(), abs=1e-4)
    assert len(numbers(figure(test, "matters_steps")["data"][0]["y"])) == 3
    assert view(test).step == 2


# ---------------------------------------------------------------- models of one stack


@pytest.mark.parametrize("stack", ["decoder", "encoder"])
def test_a_model_of_one_stack_has_a_block_for_its_attention(open_one_stack, stack):
    test = open_one_stack(stack, MATTERS, layer=1, head=2)
    until_measured(test)
    checkpoint = loading.open_checkpoint(loading.usable()[f"{stack} alone"])
    found = drawn(test)
    assert found.shape == (checkpoint.config.n_encoder_layers + checkpoint.config.n_decoder_layers, 3)
    effects = head_effects(checkpoint, run(checkpoint, checkpoint.query("ba lo mi")))
    expected = effects.of[stack].log_prob.sum(-1) if stack == "decoder" else effects.of[stack].vectors.mean(-1)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    keys = {one.key for one in (*test.selectbox, *test.button_group)}
    assert ({"effect", "effect_at"} <= keys) == (stack == "decoder")
    bars = numbers(figure(test, "matters_steps")["data"][0]["y"])
    own = effects.of[stack].log_prob if stack == "decoder" else effects.of[stack].vectors
    np.testing.assert_allclose(bars, own[0, 1], atol=1e-5)
    if stack == "encoder":
        assert "This encoder-only model generates no output" in payload(test, "matters_effects")["caption"]
