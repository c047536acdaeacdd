"""The examples of the chosen checkpoint are one click each, and it can read them."""

import json

from glassformer.frame import source_box
from glassformer.frame.source_box import EXAMPLE_CHARACTERS
from glassformer.runs import loading
from glassformer.state import session
from tests.pages.conftest import STEP, check
from tests.pages.reading import opened


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


def test_empty_and_repeated_examples_are_left_out_and_a_long_one_is_cut_on_its_button(open_page, spoil, monkeypatch):
    long = "ba lo " * 20
    folder = spoil("card.json", json.dumps({"title": "Own", "examples": ["  ", "ba", "", "ba", long]}).encode())
    monkeypatch.setenv(loading.ENVIRONMENT, str(folder.parent))
    test = open_page(STEP, model=folder.name)
    first, second = offered(test)
    assert (first, len(second), second[-1]) == ("ba", EXAMPLE_CHARACTERS, "…")
    assert test.text_input(key=session.SOURCE).value == "ba"
    check(test.menu_button(key=source_box.EXAMPLES).click_index(1).run())
    assert test.text_input(key=session.SOURCE).value == long
