"""On the Step page of an encoder with an MLM head each piece can be hidden, and the model says what fits."""

import pytest

from glassformer.runs import loading
from glassformer.state import session
from glassformer.step import StepLook, hidden_piece_panels
from tests.pages.conftest import STEP
from tests.pages.reading import address, choose, payload, title, told_or_noted, view
from tests.transformer.featured import filling
from tests.transformer.one_stack import alone

TEXT = "the quick fox"


@pytest.fixture
def shown(tmp_path, open_page, monkeypatch):
    """A function that opens the page on a model of a folder."""
    monkeypatch.setenv(loading.ENVIRONMENT, str(tmp_path))
    return lambda checkpoint, **parameters: open_page(STEP, model=checkpoint.name, src=TEXT, **parameters)


def test_the_hidden_piece_is_chosen_and_stands_in_the_address(shown, tmp_path):
    model = filling(tmp_path)
    test = shown(model)
    assert payload(test, session.STEPPER)["choosable"]
    assert view(test).of(StepLook).hidden is None
    choose(test, hidden_piece_panels.CHOICE, 1)
    assert address(test)["hidden"] == "2"
    assert payload(test, session.STEPPER)["chosen"] == 1
    assert "Token 2: candidates" in title(test, hidden_piece_panels.CANDIDATES)
    assert view(shown(model, hidden=99)).of(StepLook).hidden == 98  # a longer text may have it


def test_a_head_without_a_mask_piece_says_so(shown, tmp_path):
    test = shown(alone("encoder", tmp_path, mlm_head=True))
    assert "its tokenizer has no token that marks a gap" in told_or_noted(test)
    assert not payload(test, session.STEPPER)["choosable"]
