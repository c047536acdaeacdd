"""The start page runs a sentence in the visitor's language, and each block shows it and leads to its page."""

import html
import re
from dataclasses import replace
from urllib.parse import parse_qsl

import numpy as np
import pytest

from glassformer.frame.source_box import OFFER, UNDO
from glassformer.runs import loading
from glassformer.start.diagram import lanes
from glassformer.state import session
from glassformer.state.link import Link
from glassformer.state.view import View
from tests.pages.conftest import MAIN, PAGES, check
from tests.pages.reading import address, opened, type_source, view
from transformer.i18n.sentence import hundredths
from transformer.model.anatomy import anatomy


def links(test):
    """Each link of the page itself: its label, its page, its parameters."""
    found = [element.proto for element in test.main.get("page_link")]
    return [(one.label, one.page, dict(parse_qsl(one.query_string, keep_blank_values=True))) for one in found]


def session_query(test, checkpoint):
    """What the page ran."""
    link = Link(source=test.session_state[session.SOURCE])
    return replace(link, max_new=min(link.max_new, checkpoint.config.max_len)).query(checkpoint.content_hash)


def said(test):
    return "\n".join(element.value for element in test.main.markdown)


@pytest.fixture
def start(open_page):
    """The start page with an address."""
    return lambda **parameters: open_page(MAIN, **parameters)


def test_the_bare_address_shows_the_default_model_with_its_first_example(start):
    test = start()
    assert test.title[0].value == "Glassformer"
    checkpoint = loading.open_checkpoint(next(iter(loading.usable().values())))
    assert test.text_input(key=session.SOURCE).value == checkpoint.card.first_example()
    assert address(test) == {}
    charts = [drawn for drawn in test.get("bidi_component") if drawn.key not in ("presenter", "glossary_marks")]
    assert not charts  # so that no browser fetches Plotly for it


@pytest.mark.parametrize("model", ["en-fr", "reverse"])
def test_each_block_opens_its_page_with_the_sentence_kept(start, open_page, model):
    source = {"en-fr": "Hello & goodbye.", "reverse": "abc"}[model]
    test = start(model=model, src=source)
    blocks = [block for lane in lanes(anatomy(opened(model).config))
              for block in lane.blocks]  # fmt: skip
    drawn = links(test)[: len(blocks)]
    assert [label for label, _, _ in drawn] == [str(block.does) for block in blocks]
    for block, (_, page, parameters) in zip(blocks, drawn, strict=True):
        assert page == block.page
        there = open_page(PAGES[page], **parameters)
        assert there.session_state[session.SOURCE] == source
        assert there.session_state[session.MODEL] == model
        looked_at = {name: view(there).get(name) for name in block.fields}
        assert looked_at == block.fields


def test_the_first_example_of_another_language_is_one_click(start):
    test = start()
    (button,) = [button for button in test.button if button.label.startswith("English to French")]
    check(button.click().run())
    assert (test.session_state[session.MODEL], test.session_state[session.SOURCE]) == ("en-fr", "I like coffee.")
    assert address(test)["model"] == "en-fr"
    assert any("I like drinking coffee" in button.label for button in test.button)  # what the Chinese one means


@pytest.mark.parametrize("stack", ["decoder", "encoder"])
def test_a_model_of_one_stack_has_its_own_diagram(start, one_stack, monkeypatch, stack):
    monkeypatch.setenv(loading.ENVIRONMENT, str(one_stack))
    test = start(model=f"{stack} alone", src="ba lo mi")
    pages = [page for _, page, _ in links(test)]
    assert ("step" in pages) == (stack == "decoder")
    kinds = {parameters.get("kind", View.kind) for _, page, parameters in links(test)[:-2] if page == "attention"}
    assert kinds == {stack}


# ------------------------------------------------------------------------ each block shows the sentence itself


def thumbnails(test):
    """The pictures in the blocks, in order, as they are sent."""
    return [element.proto.body for element in test.main.get("html") if "gf-thumb" in element.proto.body]


def shades(picture, columns):
    found = [float(shade) for shade in re.findall(r"--v:([\d.]+)", picture)]
    return np.array(found).reshape(-1, columns)


@pytest.mark.parametrize("model", ["zh-en", "reverse"])
def test_every_block_shows_what_it_did_with_the_sentence(start, model):
    source = {"zh-en": "你好。", "reverse": "abc"}[model]
    test = start(model=model, src=source)
    checkpoint = opened(model)
    blocks = [block for lane in lanes(anatomy(checkpoint.config)) for block in lane.blocks]
    drawn = dict(zip([(block.page, block.name, place) for place, block in enumerate(blocks)], thumbnails(test),
                     strict=True))  # fmt: skip
    trace = loading.runner().trace(checkpoint, session_query(test, checkpoint))
    (cross,) = [picture for (_, name, _), picture in drawn.items() if name == "cross_attn"]
    weights = trace.maps("cross").mean(axis=(0, 1))[:10, :10]
    assert np.abs(shades(cross, weights.shape[1]) - weights / weights.max()).max() < 0.006
    (mask,) = [picture for (_, name, _), picture in drawn.items() if name == "mask"]
    n = min(trace.n_steps, 10)
    assert mask.count("gf-closed") == n * (n - 1) // 2
    (bars,) = [picture for (_, name, _), picture in drawn.items() if name == "output"]
    at_rest = bars.rpartition("gf-at-rest")[2]
    best = trace.step(trace.n_steps - 1, top_k=3).candidates[:3]  # the whole output is written, so its last step
    assert re.findall(r"<b>(.+?)</b>", at_rest) == [html.escape(hundredths(one.probability)) for one in best]
    assert ">0.00<" not in bars


def test_another_sentence_has_other_pictures_and_pieces_are_text(start):
    one, other = (thumbnails(start(model="reverse", src=source)) for source in ("abc", "<b>&"))
    assert all(a != b for a, b in zip(one[2:4], other[2:4], strict=True))
    assert "<b>&" not in "".join(other)


def test_in_class_no_picture_gives_the_output_away(start):
    test = start(model="reverse", src="abcd", guess=1, step=2)
    whole, guessing = thumbnails(start(model="reverse", src="abcd")), thumbnails(test)
    assert "gf-bars" in "".join(whole)
    assert "gf-bars" not in "".join(guessing)
    assert "gf-passing" not in "".join(guessing)
    (mask,) = [picture for picture in guessing if "gf-closed" in picture]
    assert mask.count("<i") == 4  # the two rows up to step 2


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
