"""The page Compare shows any two runs beside each other; its address says both, and a step moves both."""

from dataclasses import replace
from difflib import SequenceMatcher

import numpy as np
import pytest

from glassformer.extensions.what_if import compare_panels, head_effect_jobs, outputs, pair_pictures, second_run
from glassformer.extensions.what_if.head_effects import head_effects
from glassformer.extensions.what_if.second_run import BRANCH, CHECKPOINT, step_beside
from glassformer.runs import loading
from glassformer.state import session
from glassformer.state.view import MAIN, SECOND
from tests.extensions.scripts import COMPARE
from tests.extensions.tokenizers.filling import filling
from tests.pages.conftest import check
from tests.pages.reading import address, figure, keys_of, numbers, opened, payload, press, sentences, told
from transformer.analysis.hidden_pieces import hide, mask_id
from transformer.runs.apply_interventions import tap_for
from transformer.runs.interventions import parse

LAYERS = [f"skip-{stack}.{layer}.whole" for stack in ("encoder", "decoder") for layer in (1, 2, 3)]


@pytest.fixture
def compare(open_page):
    """Opens the page on the model that reverses letters."""
    return lambda **parameters: open_page(COMPARE, **{"model": "reverse", "src": "abcdef"} | parameters)


def pieces(test, slot):
    """The output of a slot."""
    return [chip["piece"] for chip in payload(test, f"{slot}{session.STEPPER}")["run"]["target"]]


def trace(source, change="", model="reverse"):
    checkpoint = opened(model)
    query = replace(checkpoint.query(source), interventions=parse(change))
    return checkpoint, loading.runner().trace(checkpoint, query)


def test_both_sides_are_filled_before_any_head_was_measured_and_the_right_one_stays(open_page, monkeypatch):
    monkeypatch.setattr(head_effect_jobs, "found_now", lambda *_: None)
    test = open_page(COMPARE, model="addition")
    assert "As a suggestion" in told(test)
    assert payload(test, f"{SECOND}{session.STEPPER}")["run"] != payload(test, session.STEPPER)["run"]
    before = [button.label for button in test.button if button.key == second_run.PROPOSAL]
    monkeypatch.setattr(head_effect_jobs, "found_now", lambda *_: pytest.fail("it is measured after all"))
    assert [button.label for button in check(test.run()).button if button.key == second_run.PROPOSAL] == before


def key_of(test, picture):
    """The key of a picture in the slot of the longer run, whose steps it follows."""
    return next(key for key in keys_of(test) if key in (picture.key, f"{SECOND}{picture.key}"))


@pytest.mark.parametrize(
    ("model", "source", "said"),
    [("reverse", "glass", "head that matters most"), ("en-fr", "The cat sleeps on the table.", "skips one layer")],
)
def test_the_page_opens_with_a_change_that_changes_the_output(compare, model, source, said):
    """It is the head that matters most, else the layer without which the output is another one, but most alike."""
    checkpoint, control = trace(source, model=model)
    kind, layer, head = head_effect_jobs.matters_most(head_effects(checkpoint, control))
    most, before = f"zero-{kind}.{layer + 1}.{head + 1}", control.tgt_tokens
    after = {one: trace(source, one, model)[1].tgt_tokens for one in (most, *LAYERS) if one == most or "layer" in said}
    assert (after[most] == before) == ("layer" in said)
    alike = {one: SequenceMatcher(None, before, tokens).ratio() for one, tokens in after.items() if tokens != before}
    expected = max(alike, key=alike.get)
    test = compare(model=model, src=source)
    assert said in told(test)
    assert pieces(test, MAIN) == list(before)
    assert pieces(test, SECOND) == list(after[expected])
    assert "do" not in address(test)
    test.button(key=second_run.PROPOSAL).click()
    assert address(check(test.run()))["do"] == expected


def test_a_selected_head_is_the_one_that_is_taken_away(compare):
    test = compare(layer=2, head=1)
    assert "leaves out one head" in told(test)
    assert pieces(test, SECOND) == list(trace("abcdef", "zero-cross.2.1")[1].tgt_tokens)


def test_another_sentence_is_typed_and_its_address_opens_the_same(compare, open_page):
    test = compare(compare="sentences")
    test.text_input(key=second_run.SENTENCE).set_value("abcxyz").run()
    assert pieces(check(test), SECOND) == list(trace("abcxyz")[1].tgt_tokens)
    assert address(test)["b"] == "src=abcxyz"
    again = open_page(COMPARE, **address(test))
    for key in ("stepper", "b-stepper"):
        assert payload(again, key)["run"] == payload(test, key)["run"]


def test_a_checkpoint_and_a_branch_that_are_chosen_run_beside_this_one(compare):
    test = compare(compare="checkpoints")
    check(test.selectbox(key=CHECKPOINT).set_value("en-fr").run())
    assert address(test)["b"] == "model=en-fr"
    assert pieces(test, SECOND) == list(trace("abcdef", model="en-fr")[1].tgt_tokens)
    test, vocabulary = compare(compare="branches", tried="7_8.9"), trace("abcdef")[1].vocabulary
    branches = ["Choose a branch", f"Step 1: {vocabulary[7]}", f"Step 2: {vocabulary[9]}"]
    assert list(test.selectbox(key=BRANCH).options) == branches
    check(test.selectbox(key=BRANCH).set_value("8.9").run())
    assert pieces(test, SECOND)[:2] == [vocabulary[8], vocabulary[9]]
    assert address(test)["b"] == "forced=8.9"
    assert str(outputs.ONE_MODEL) in told(test)


@pytest.mark.parametrize(
    ("step", "n_steps", "own", "n_own", "found"),
    [
        (3, 9, 0, 9, 3),
        (3, 9, 7, 9, 3),
        (8, 9, 0, 5, 4),
        (4, 5, 7, 9, 7),
        (4, 5, 2, 9, 4),
        (4, 5, 7, 6, 5),
        (0, 1, 0, 0, 0),
    ],
)
def test_the_second_run_stands_where_the_first_does(step, n_steps, own, n_own, found):
    assert step_beside(step, n_steps, own, n_own) == found


def test_the_address_says_the_step_of_both(compare):
    """The sentence on the right has more pieces: it may stand behind the end of the left one."""
    test = compare(src="abc", step=4, b="src=abcdefgh&step=7")
    steps = [payload(test, f"{slot}{session.STEPPER}")["step"] for slot in (MAIN, SECOND)]
    assert steps == [3, 6]


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"b": "forced=99999"}, "Choose a branch above"),
        ({"b": "model=nowhere"}, "There is no other checkpoint named “nowhere”"),
        ({"b": "do=zero-cross.9.9"}, "The unchanged run is shown instead."),
        ({"do": "causal-hidden_unguarded-decoder"}, "not a number"),
    ],
)
def test_a_forged_link_is_said_and_something_sensible_compared(compare, parameters, said):
    test = compare(**parameters)
    assert said in sentences(test)
    slot = SECOND if "not a number" in said else MAIN  # a changed run that cannot be done leaves its control
    assert pieces(test, slot) == [*"fedcba", "</s>"]


def test_models_of_one_stack_are_compared_with_their_control(open_one_stack):
    """An encoder alone has maps and vectors, and no output."""
    test = open_one_stack("decoder", COMPARE, do="zero-decoder.1.1", layer=2, head=1)
    rows = figure(test, key_of(test, pair_pictures.outputs))["layout"]["meta"]["table"]["rows"]
    assert all(row[10] is not None for row in rows if row[1] is not None)
    test = open_one_stack("encoder", COMPARE, do="zero-encoder.1.1", layer=2, head=1)
    assert f"{SECOND}{compare_panels.DIFFERENCE}" in keys_of(test)
    assert pair_pictures.outputs.key not in keys_of(test)
    assert "One of these models does not generate output" in sentences(test)
    cosines = numbers(figure(test, outputs.VECTORS)["data"][0]["z"])
    np.testing.assert_allclose(cosines[0], 1, atol=1e-6)  # the change comes after the embedding
    assert cosines[-1].min() < 0.999


def test_outputs_that_are_hidden_are_compared_once_they_are_asked_for(compare):
    test = compare(do="zero-cross.1.1", guess=1)
    assert "This shows whole outputs" in sentences(test)
    assert not keys_of(test)
    press(test, "show_candidates")
    assert pair_pictures.outputs.key in keys_of(test)


def test_gaps_of_an_encoder_with_a_head_for_them(open_page, monkeypatch, tmp_path):
    filling(tmp_path)
    monkeypatch.setenv(loading.ENVIRONMENT, str(tmp_path))
    test = open_page(COMPARE, model="filling", src="the quick fox", do="zero-encoder.1.1")
    checkpoint = opened("filling")
    ids, mask = checkpoint.run("the quick fox").src_ids, mask_id(checkpoint.src_tokenizer)
    table = test.dataframe[0].value
    places = range(len(checkpoint.config.source_start), len(ids) - len(checkpoint.config.source_end))
    control = hide(checkpoint.model, ids, tuple(places), mask)
    changed = hide(checkpoint.model, ids, tuple(places), mask, tap=tap_for(parse("zero-encoder.1.1"), checkpoint))
    np.testing.assert_allclose(table["loss_left"], control.losses, rtol=1e-5)
    np.testing.assert_allclose(table["difference"], changed.losses - control.losses, atol=1e-5)
    assert np.abs(table["difference"]).max() > 0
