"""The table of heads on Attention: what the output loses without a head is what runs without it lose."""

import time

import numpy as np
import pytest

from glassformer.attention.head_table_panel import MEASURE
from glassformer.extensions.effects import heads_panel as heads
from glassformer.extensions.what_if import head_effect_jobs
from glassformer.extensions.what_if.head_effects import head_effects
from glassformer.extensions.what_if.interventions import ZeroHead
from glassformer.runs import loading, measurement_jobs
from tests.extensions.scripts import MATTERS
from tests.pages.conftest import ATTENTION, MAIN, check
from tests.pages.reading import figure, go_to, keys_of, numbers, payload, sentences, view
from transformer import run

SOURCE = "abcdef"
TABLE = {"panel": "table", "measure": "log_prob"}


@pytest.fixture
def page(open_page):
    def opened(**options):
        return until_measured(open_page(ATTENTION, **TABLE | {"model": "reverse", "src": SOURCE} | options))

    return opened


def until_measured(test):
    """On a busy machine the map may not be there at once."""
    end = time.monotonic() + 60
    while time.monotonic() < end and "matters_effects" not in keys_of(test):
        check(test.run())
    return test


def reverse():
    return loading.open_checkpoint(loading.usable()["reverse"])


def losses(kind, *others):
    """Change of each step's log-probability without each head, [layer, head, step], of a run with these changes."""
    checkpoint = reverse()
    trace = loading.runner().trace(checkpoint, checkpoint.query(SOURCE, interventions=others))
    return head_effects(checkpoint, trace).of[kind].log_prob


def drawn(test):
    """[row, head] of the map: encoder, decoder and cross, an empty row between two."""
    return numbers(figure(test, "matters_effects")["data"][0]["z"])


def test_one_step_and_other_measures_come_from_the_same_measurement(page, monkeypatch):
    test = page(layer=2, head=4)
    assert drawn(test)[7, 3] == pytest.approx(losses("cross")[1, 3].sum(), abs=1e-4)
    begun = []
    monkeypatch.setattr(head_effect_jobs, "measuring", lambda *of: begun.append(of))
    check(test.button_group(key="effect_at").set_value("step").run())
    check(go_to(test, 3))
    assert drawn(test)[7, 3] == pytest.approx(losses("cross")[1, 3][2], abs=1e-4)
    check(test.selectbox(key=MEASURE).set_value("pieces").run())
    assert set(np.unique(drawn(test)[~np.isnan(drawn(test))])) <= {0.0, 1.0}
    assert not begun


def test_a_head_that_is_taken_away_stays_away_in_every_number(page):
    found = drawn(page(layer=1, head=1, do="zero-cross.1.1"))
    assert found[6, 0] == pytest.approx(0, abs=1e-5)
    assert found[0, 0] == pytest.approx(losses("encoder", ZeroHead("cross", 0, 0))[0, 0].sum(), abs=1e-4)


def test_a_large_model_is_measured_when_it_is_asked_for_and_can_be_stopped(open_page, monkeypatch):
    monkeypatch.setattr(measurement_jobs, "SMALL", 0)
    test = open_page(ATTENTION, model="reverse", src="stop", **TABLE)
    assert "matters_effects" not in keys_of(test)
    assert "kl" not in test.dataframe[0].value
    assert "parameters, so this may take" in sentences(test)
    check(test.button(key=heads.MEASURE).click().run())
    until_measured(test)
    assert drawn(test).shape == (8, 4)


def test_hidden_steps_are_not_summed(open_page):
    test = check(
        go_to(open_page(ATTENTION, model="reverse", src=SOURCE, kind="cross", guess=1, layer=1, head=1, **TABLE), 3)
    )
    assert "matters_effects" not in keys_of(test)  # it would tell about the piece
    until_measured(check(test.button(key="matters_heads_reveal").click().run()))
    assert drawn(test)[6, 0] == pytest.approx(losses("cross")[0, 0, :3].sum(), abs=1e-4)
    assert len(numbers(figure(test, "matters_steps")["data"][0]["y"])) == 3
    assert view(test).step == 2


# ---------------------------------------------------------------- models of one stack


@pytest.mark.parametrize("stack", ["decoder", "encoder"])
def test_a_model_of_one_stack_has_a_block_for_its_attention(open_one_stack, stack):
    """An encoder alone writes nothing: its vectors move."""
    measure = "log_prob" if stack == "decoder" else "vectors"
    test = until_measured(open_one_stack(stack, ATTENTION, panel="table", measure=measure, layer=1, head=2))
    checkpoint = loading.open_checkpoint(loading.usable()[f"{stack} alone"])
    effect = head_effects(checkpoint, run(checkpoint, checkpoint.query("ba lo mi"))).of[stack]
    expected = effect.log_prob.sum(-1) if stack == "decoder" else effect.vectors.mean(-1)
    np.testing.assert_allclose(drawn(test), expected, atol=1e-5)
    assert ("effect_at" in {one.key for one in test.button_group}) == (stack == "decoder")
    table = test.dataframe[0].value
    assert [name for name in ("log_prob", "probability", "kl", "pieces", "vectors") if name in table] == [measure]
    np.testing.assert_allclose(table[measure], expected.ravel(), atol=1e-4)
    bars = numbers(figure(test, "matters_steps")["data"][0]["y"])
    np.testing.assert_allclose(bars, (effect.log_prob if stack == "decoder" else effect.vectors)[0, 1], atol=1e-5)
    is_said = "This encoder-only model generates no output" in payload(test, "matters_effects")["caption"]
    assert is_said == (stack == "encoder")


def test_an_old_address_of_the_heads_leads_to_the_table(open_page):
    test = open_page(MAIN)
    test.switch_page(str(MATTERS.relative_to(MAIN.parent)))
    for name, value in {"model": "reverse", "src": SOURCE, "matters": "heads", "effect": "kl", "layer": "1"}.items():
        test.query_params[name] = value
    check(test.run())
    assert test.button_group(key="panel").value == "table"
    assert test.selectbox(key=MEASURE).value == "kl"
    assert view(test).layer == 0
