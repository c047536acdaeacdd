"""The Translate page runs a sentence in the visitor's language, and each block of the model swaps its picture."""

from urllib.parse import parse_qsl

import pytest

from glassformer.frame.source_box import OFFER, UNDO
from glassformer.runs import loading
from glassformer.state import session
from glassformer.step.step_panels import stack_blocks
from tests.pages.conftest import MAIN, PAGES
from tests.pages.reading import address, keys_of, opened, payload, press, title, type_source, view
from transformer.model.anatomy import anatomy


@pytest.fixture
def start(open_page):
    """The first page with an address."""
    return lambda **parameters: open_page(MAIN, **parameters)


def test_each_block_has_a_picture_and_leads_to_its_page_with_the_sentence(start, open_page):
    model, source = "reverse", "a&b"
    test = start(model=model, src=source)
    pictures = set()
    blocks = [block for stack in anatomy(opened(model).config).stacks for block in stack_blocks(stack)]
    for block in blocks:
        press(test, f"block_{block.name}")
        assert address(test).get("show") == block.name
        key = block.picture.partition(":")[2]
        assert key in keys_of(test)
        pictures.add(title(test, key))
        link = test.main.get("page_link")[-1].proto
        assert link.page == block.page
        there = open_page(PAGES[link.page], **dict(parse_qsl(link.query_string, keep_blank_values=True)))
        assert standing(there) == (model, source)
        assert {name: view(there).get(name) for name in block.fields} == block.fields
    assert len(pictures) >= 8  # of eleven: a model's two sides may have the same title


@pytest.mark.parametrize(("stack", "other"), [("decoder", "encoder"), ("encoder", "decoder")])
def test_a_model_of_one_stack_has_its_own_blocks(start, one_stack, monkeypatch, stack, other):
    monkeypatch.setenv(loading.ENVIRONMENT, str(one_stack))
    test = start(model=f"{stack} alone", src="ba lo mi")
    named = {button.key for button in test.button if str(button.key).startswith("block_")}
    assert {f"block_{stack}", "block_cross", f"block_{other}"} & named == {f"block_{stack}"}
    assert "cross_map" in keys_of(test)


def test_in_class_nothing_that_is_still_to_come_is_said(start):
    whole, guessing = start(model="reverse", src="abcd"), start(model="reverse", src="abcd", guess=1, step=2)
    assert payload(whole, "stepper")["foretold"]
    assert not payload(guessing, "stepper")["foretold"]


# ------------------------------------------------------------------------ whose language decides, and who switches


def standing(test):
    return test.session_state[session.MODEL], test.session_state[session.SOURCE]


@pytest.fixture
def browser_asks(monkeypatch):
    """A function that says which language the browser asks for."""
    return lambda tag: monkeypatch.setattr("streamlit.runtime.context.ContextProxy.locale", property(lambda _: tag))


@pytest.mark.parametrize(("tag", "model"), [("en-GB", "en-fr"), ("zh-CN", "zh-en"), ("fr", "zh-en"), (None, "zh-en")])
def test_a_visitor_begins_with_a_sentence_of_his_language(start, browser_asks, tag, model):
    browser_asks(tag)
    test = start()
    assert standing(test) == (model, opened(model).card.first_example())
    assert address(test) == {}
    assert {"candidates", "cross_map", "stepper"} <= keys_of(test)


def test_what_an_address_says_is_the_same_for_everybody(start, browser_asks):
    """A sentence or a hash without a checkpoint says what it always said."""
    browser_asks("en")
    assert standing(start(src="I like tea."))[0] == "zh-en"
    assert standing(start(model="reverse"))[0] == "reverse"
    assert standing(start(rev="0123456789"))[0] == "zh-en"


def test_a_typed_sentence_switches_by_itself_and_undo_goes_back(open_page):
    test = open_page(PAGES["step"])
    assert standing(type_source(test, "I like tea.")) == ("en-fr", "I like tea.")
    assert standing(press(test, UNDO)) == ("zh-en", "I like tea.")
    assert UNDO not in {button.key for button in test.button}
    assert standing(press(test, OFFER)) == ("en-fr", "I like tea.")  # what was undone is offered
    assert standing(type_source(test, "她喜欢茶。")) == ("zh-en", "她喜欢茶。")
    type_source(test, "她喜欢水。")
    assert UNDO not in {button.key for button in test.button}
