"""On the Step page of an encoder with an MLM head each piece can be hidden, and the model says what fits."""

import numpy as np
import pytest

from glassformer.runs import loading
from glassformer.state import session
from glassformer.step import StepLook, hidden_piece_panels
from tests.pages.conftest import STEP, check
from tests.pages.reading import address, figure, numbers, opened, payload, told_or_noted, view
from tests.transformer.featured import filling
from tests.transformer.one_stack import alone
from transformer.analysis.hidden_pieces import hide, mask_id

TEXT = "the quick fox"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("hiding")
    filling(made)
    alone("encoder", made)
    alone("encoder", made / "head", mlm_head=True)
    return made


@pytest.fixture
def open_model(folder, open_page, monkeypatch):
    monkeypatch.setenv(loading.ENVIRONMENT, str(folder))
    return lambda name="filling", **parameters: open_page(STEP, model=name, src=TEXT, **parameters)


def by_hand(place):
    checkpoint = opened("filling")
    ids, mask = checkpoint.run(TEXT).src_ids, mask_id(checkpoint.src_tokenizer)
    return checkpoint, ids, hide(checkpoint.model, ids, (place,), mask, whole=True)


def test_what_fits_in_the_gap_is_shown_with_what_was_there(open_model):
    test = open_model(hidden=3)
    checkpoint, ids, found = by_hand(2)
    drawn = figure(test, hidden_piece_panels.CANDIDATES)
    rows = drawn["layout"]["meta"]["table"]["rows"]
    assert [row[2] for row in rows[:10]] == found.likeliest(0, 10)
    assert any(row[2] == ids[2] and row[0] == found.ranks[0] for row in rows)
    np.testing.assert_allclose([row[3] for row in rows], np.exp(found.log_probs[0, [row[2] for row in rows]]))
    assert f"rank {found.ranks[0]:,} of {checkpoint.config.tgt_vocab_size}" in told_or_noted(test)
    assert f"= {found.losses[0]:.3f} nats" in told_or_noted(test)


def test_each_piece_is_hidden_in_turn(open_model):
    test = open_model()
    bars = figure(test, hidden_piece_panels.TURNS)["data"][0]
    _, ids, _ = by_hand(1)
    places = list(range(1, len(ids) - 1))  # not [CLS] and [SEP]
    assert list(bars["customdata"]) == places
    losses = [by_hand(place)[2].losses[0] for place in places]
    np.testing.assert_allclose(numbers(bars["y"]), losses, rtol=1e-5)
    assert f"pseudo-perplexity is e to the power of this loss, {np.exp(np.mean(losses)):.4g}" in told_or_noted(test)


def test_the_hidden_piece_is_chosen_and_stands_in_the_address(open_model):
    test = open_model()
    own = payload(test, session.STEPPER)
    assert own["choosable"]
    assert view(test).of(StepLook).hidden is None
    check(test.selectbox(key=hidden_piece_panels.CHOICE).set_value(1).run())
    assert address(test)["hidden"] == "2"
    assert payload(test, session.STEPPER)["chosen"] == 1
    assert "Token 2: candidates" in figure(test, hidden_piece_panels.CANDIDATES)["layout"]["title"]["text"]
    far = view(open_model(hidden=99)).of(StepLook)
    assert far.hidden == 98  # a longer text may have it; the page's own choice is shown


def test_a_head_without_a_mask_piece_says_so(folder, open_page, monkeypatch):
    monkeypatch.setenv(loading.ENVIRONMENT, str(folder / "head"))
    test = open_page(STEP, model="encoder alone", src="ba lo mi")
    assert "its tokenizer has no piece that marks a gap" in told_or_noted(test)
    assert not payload(test, session.STEPPER)["choosable"]
