"""The language of a session reaches pages, components and the address; English adds nothing anywhere."""

import json
import re

import pytest

from tests.pages.conftest import CHECKPOINTS, MAIN, STEP, check
from tests.pages.reading import address, payload, run_of, type_source
from ui.frame import sidebar
from ui.state import language, session


@pytest.fixture
def two_languages(monkeypatch):
    for module in (sidebar, language):
        monkeypatch.setattr(module, "languages", lambda: ("en", "qps"))


def test_in_english_components_get_nothing_more(reverse):
    sent = payload(reverse(src="abc"), session.STEPPER)
    assert not {"lang", "words"} & set(sent)


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


def test_there_is_no_menu_for_one_language(reverse):
    assert not [box for box in reverse().sidebar.selectbox if box.key == sidebar.LANGUAGE]


@pytest.mark.parametrize("page", [STEP, CHECKPOINTS], ids=["step", "checkpoints"])
def test_a_language_that_is_chosen_is_spoken_and_choices_stay(open_page, two_languages, page):
    test = open_page(page, model="reverse", src="abc", how="beam")
    test.sidebar.selectbox(key=sidebar.LANGUAGE).set_value("qps")
    check(test.run())
    assert test.title[0].value.startswith("⟦")
    assert "qps" in address(test)["lang"]
    assert test.sidebar.selectbox(key=session.MODEL).value == "reverse"
    if page == STEP:
        assert test.session_state[session.HOW] == "beam"
    test.sidebar.selectbox(key=sidebar.LANGUAGE).set_value("en")
    check(test.run())
    assert "⟦" not in test.title[0].value
    assert json.dumps(address(test)).count("lang") == 1


def test_the_list_of_pages_is_spoken(open_page):
    test = open_page(MAIN, lang="qps")
    (menu,) = [element.proto.body for element in test.sidebar.get("html")]
    names = re.findall(r">([^<]+)</a>", menu)
    assert "⟦Steep throouugh deecoodiing·⟧" in names
    assert all(name.startswith("⟦") for name in names)
