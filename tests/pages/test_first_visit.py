"""The Translate page runs a sentence in the visitor's language, and each block of the model swaps its picture."""

from urllib.parse import parse_qsl

import pytest

from glassformer.frame.source_box import OFFER, UNDO
from glassformer.runs import loading
from glassformer.state import session
from glassformer.step.step_panels import stack_blocks
from tests.pages.conftest import MAIN, PAGES, check
from tests.pages.reading import address, figure, keys_of, opened, payload, type_source, view
from transformer.model.anatomy import anatomy


def links(test):
    """Each link of the page itself: its page, its parameters."""
    found = [element.proto for element in test.main.get("page_link")]
    return [(one.page, dict(parse_qsl(one.query_string, keep_blank_values=True))) for one in found]


def blocks_of(checkpoint):
    return [block for stack in anatomy(checkpoint.config).stacks for block in stack_blocks(stack)]


@pytest.fixture
def start(open_page):
    """The first page with an address."""
    return lambda **parameters: open_page(MAIN, **parameters)


def test_the_bare_address_shows_the_default_model_with_its_first_example(start):
    test = start()
    checkpoint = loading.open_checkpoint(next(iter(loading.usable().values())))
    assert test.text_input(key=session.SOURCE).value == checkpoint.card.first_example()
    assert address(test) == {}
    assert {"candidates", "cross_map", "stepper"} <= keys_of(test)


def test_each_block_has_a_picture_and_leads_to_its_page_with_the_sentence(start, open_page):
    model, source = "reverse", "a&b"
    test = start(model=model, src=source)
    pictures = set()
    for block in blocks_of(opened(model)):
        check(test.button(key=f"block_{block.name}").click().run())
        assert address(test).get("show") == block.name
        key = block.picture.partition(":")[2]
        assert key in keys_of(test)
        pictures.add(figure(test, key)["layout"]["title"]["text"])
        page, parameters = links(test)[-1]
        assert page == block.page
        there = open_page(PAGES[page], **parameters)
        assert (there.session_state[session.MODEL], there.session_state[session.SOURCE]) == (model, source)
        assert {name: view(there).get(name) for name in block.fields} == block.fields
    assert len(pictures) >= 8  # of eleven: a model's two sides may have the same title


@pytest.mark.parametrize("stack", ["decoder", "encoder"])
def test_a_model_of_one_stack_has_its_own_blocks(start, one_stack, monkeypatch, stack):
    monkeypatch.setenv(loading.ENVIRONMENT, str(one_stack))
    test = start(model=f"{stack} alone", src="ba lo mi")
    named = {button.key for button in test.button if str(button.key).startswith("block_")}
    assert f"block_{stack}" in named
    assert not named & {"block_cross", f"block_{'encoder' if stack == 'decoder' else 'decoder'}"}
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


def test_what_an_address_says_is_the_same_for_everybody(start, open_page, browser_asks):
    """A sentence or a hash without a checkpoint says what it always said."""
    browser_asks("en")
    assert standing(start(src="I like tea."))[0] == "zh-en"
    assert standing(start(model="reverse"))[0] == "reverse"
    assert standing(start(rev="0123456789"))[0] == "zh-en"


def test_a_typed_sentence_switches_by_itself_and_undo_goes_back(open_page):
    test = open_page(PAGES["step"])
    type_source(test, "I like tea.")
    assert standing(test) == ("en-fr", "I like tea.")
    check(test.button(key=UNDO).click().run())
    assert standing(test) == ("zh-en", "I like tea.")
    assert not [button for button in test.button if button.key == UNDO]
    check(test.button(key=OFFER).click().run())  # what was undone is offered
    assert standing(test) == ("en-fr", "I like tea.")
    type_source(test, "她喜欢茶。")
    assert standing(test) == ("zh-en", "她喜欢茶。")
    type_source(test, "她喜欢水。")
    assert not [button for button in test.button if button.key == UNDO]
