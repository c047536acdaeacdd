"""The examples of the chosen checkpoint are one click each, and it can read them."""

import json

import pytest

from glassformer.frame import source_box
from glassformer.frame.source_box import EXAMPLE_CHARACTERS
from glassformer.runs import loading
from glassformer.state import session
from tests.pages.conftest import STEP, check
from tests.pages.reading import run_of


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
        entry = loading.usable()[name]
        test = open_page(STEP, model=name)
        card = loading.open_checkpoint(entry).card
        examples = card.examples
        assert offered(test) == [source_box.glossed(example, card.glosses.get(example, "")) for example in examples]
        for place in range(len(examples)):
            check(test.menu_button(key=source_box.EXAMPLES).click_index(place).run())
            assert test.text_input(key=session.SOURCE).value == examples[place]
            assert not any(chip.get("unknown") for chip in run_of(test)["source"])
            assert not test.info


def test_a_long_example_is_cut_on_its_button_only(with_examples):
    long = "ba lo " * 20
    test = with_examples([long])
    (label,) = offered(test)
    assert len(label) == EXAMPLE_CHARACTERS
    assert label.endswith("…")
    check(test.menu_button(key=source_box.EXAMPLES).click_index(0).run())
    assert test.text_input(key=session.SOURCE).value == long


def test_empty_and_repeated_examples_are_left_out(with_examples):
    test = with_examples(["  ", "ba", "", "ba", "lo"])
    assert offered(test) == ["ba", "lo"]
    assert test.text_input(key=session.SOURCE).value == "ba"
