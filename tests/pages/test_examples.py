"""The examples of the chosen checkpoint are one click each, and it can read them."""

import json

import pytest

from glassformer.frame import source_box
from glassformer.frame.source_box import EXAMPLE_CHARACTERS
from glassformer.runs import loading
from glassformer.state import session
from tests.pages.conftest import STEP, check
from tests.pages.reading import opened


@pytest.fixture
def with_examples(open_page, spoil, monkeypatch):
    """A function that opens the Step page on a checkpoint whose card has these examples."""

    def open_one(examples):
        folder = spoil("card.json", json.dumps({"title": "Own", "examples": examples}).encode())
        monkeypatch.setenv(loading.ENVIRONMENT, str(folder.parent))
        return open_page(STEP, model=folder.name)

    return open_one


def offered(test):
    return [label.replace("\\", "") for menu in test.menu_button for label in menu.options]


def test_every_shipped_checkpoint_offers_examples_that_it_can_read(open_page):
    for name in ("zh-en", "reverse"):
        test, checkpoint = open_page(STEP, model=name), opened(name)
        card, tokenizer = checkpoint.card, checkpoint.src_tokenizer
        assert offered(test) == [source_box.glossed(one, card.glosses.get(one, "")) for one in card.examples]
        assert not [one for one in card.examples if checkpoint.config.unk_id in tokenizer.encode(one).ids]
        check(test.menu_button(key=source_box.EXAMPLES).click_index(1).run())
        assert test.text_input(key=session.SOURCE).value == card.examples[1]
        assert not test.info


def test_empty_and_repeated_examples_are_left_out_and_a_long_one_is_cut_on_its_button_only(with_examples):
    long = "ba lo " * 20
    test = with_examples(["  ", "ba", "", "ba", long])
    first, second = offered(test)
    assert (first, len(second), second[-1]) == ("ba", EXAMPLE_CHARACTERS, "…")
    assert test.text_input(key=session.SOURCE).value == "ba"
    check(test.menu_button(key=source_box.EXAMPLES).click_index(1).run())
    assert test.text_input(key=session.SOURCE).value == long
