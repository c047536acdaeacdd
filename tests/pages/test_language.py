"""The language of a session reaches pages, components and the address, and to change it loses no choice."""

import re

import pytest

from glassformer.frame import run_page
from glassformer.state import language, session
from tests.pages.conftest import MAIN, PAGES, check
from tests.pages.reading import address, choose, controls, payload, run_of, type_source


def test_another_language_comes_with_its_words_and_its_tag(reverse):
    test = reverse(src="abc", lang="qps")
    sent = payload(test, session.STEPPER)
    assert sent["lang"] == "en"  # what the pseudo-language is taken for
    assert sent["words"]["Next step"] == "⟦Neext steep·⟧"
    assert run_of(test)["stop_reason"] == "⟦Thee moodeel eendeed thee seenteencee.·⟧"


def test_the_address_keeps_the_language(reverse):
    test = type_source(reverse(src="abc", lang="qps"), "abcd")
    assert "qps" in address(test)["lang"]
    assert "abcd" in address(test)["src"]
    test.query_params.clear()  # as a browser comes to another page
    assert check(test.run()).title[0].value.startswith("⟦")


SIX = {"model": "reverse", "src": "abcdef"}
OF_PAGES = {
    "step": SIX | {"forced": "24.16", "step": "3", "do": "zero-cross.1.2", "unsure": "ten"},
    "attention": {"src": "我喜欢喝茶。", "panel": "flow", "kind": "encoder", "layer": "2", "heads": "1.3"},
    "masks": SIX | {"mask": "decoder", "masks": "one_row", "layer": "2", "head": "3"},
    "inside": SIX | {"inside": "stream", "norm": "2", "side": "target"},
    "search": SIX | {"how": "sampling", "search": "sampling", "try_temp": "2"},
    "positions": {"model": "zh-en", "positions": "shift", "shift": "3", "side": "target"},
}
EACH = [pytest.param(one, marks=[pytest.mark.deep] * (one not in ("step", "search", "inside"))) for one in OF_PAGES]


@pytest.mark.parametrize("name", EACH)
def test_switching_in_the_middle_of_a_branch_loses_nothing(open_page, name):
    """Widgets of choices send the label that they showed, which nobody knows in the other language."""
    test = open_page(PAGES[name], lang="en", **OF_PAGES[name])
    before = stated(test)
    for chosen in ("zh", "en", "zh"):
        choose(test, run_page.LANGUAGE, chosen)
        assert stated(test) == before
        assert test.session_state[language.CHOSEN] == chosen


def stated(test):
    """What a page is about: its address without the language, and the values of all that can be chosen."""
    said = {name: value for name, value in address(test).items() if name != "lang"}
    chosen = controls(test) | {one.key: one for one in test.radio}
    return said, {key: one.value for key, one in chosen.items() if key != run_page.LANGUAGE}


def test_pages_have_the_same_addresses_in_every_language(open_page):
    def addresses(language):
        (menu,) = [element.proto.body for element in open_page(MAIN, lang=language).sidebar.get("html")]
        return [path.partition("?")[0] for path in re.findall(r'href="([^"]*)"', menu)]

    assert addresses("zh") == addresses("en")
    assert len(addresses("en")) >= 9
