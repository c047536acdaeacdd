"""On the Step page of an encoder with an MLM head each piece can be hidden, and the model says what fits."""

import pytest

from glassformer.runs import loading
from glassformer.state import session
from glassformer.step import StepLook, hidden_piece_panels
from tests.pages.conftest import STEP, check
from tests.pages.reading import address, figure, payload, told_or_noted, view
from tests.transformer.featured import filling
from tests.transformer.one_stack import alone

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
    assert "its tokenizer has no token that marks a gap" in told_or_noted(test)
    assert not payload(test, session.STEPPER)["choosable"]
