"""Languages are folders with a catalogue, and what is asked for is met as closely as there is."""

import json

import pytest
from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo

from transformer.i18n import catalogue, languages, name_of, negotiated, said, say, say_n
from transformer.i18n.catalogue import browser_words


@pytest.fixture
def polish(tmp_path, monkeypatch):
    """A language with three plural forms."""
    made = Catalog(locale="pl")
    made.add("Step {n} looks at {what}.", "Na {what} patrzy krok {n}.")
    made.add(("{n} token", "{n} tokens"), ("{n} kawałek", "{n} kawałki", "{n} kawałków"))
    made.add("Key", "Klucz")
    made.add("Key", "Klawisz", context="on a keyboard")
    made.add("Layer {n}", "Warstwa {number}")
    made.add("Save", "Zapisz")
    folder = tmp_path / "pl"
    folder.mkdir()
    with (folder / "messages.mo").open("wb") as file:
        write_mo(file, made)
    (tmp_path / "browser.json").write_text(json.dumps([["Save"], ["{n} token", "{n} tokens"]]))
    monkeypatch.setattr(catalogue, "FOLDER", tmp_path)
    _forget()
    yield "pl"
    _forget()


def _forget():
    for cached in (catalogue.languages, catalogue._catalogue, browser_words):
        cached.cache_clear()


def test_a_language_has_its_own_order_plurals_and_words_of_several_meanings(polish):
    assert said(say("Step {n} looks at {what}.", n=3, what="kot"), polish) == "Na kot patrzy krok 3."
    forms = {1: "1 kawałek", 3: "3 kawałki", 5: "5 kawałków", 22: "22 kawałki"}
    assert {n: said(say_n("{n} token", "{n} tokens", n), polish) for n in forms} == forms
    assert said(say("Key"), polish) == "Klucz"
    assert said(say("Key", about="on a keyboard"), polish) == "Klawisz"


def test_what_is_not_translated_or_not_well_stays_english(polish):
    assert said(say("Never seen {n}", n=1), polish) == "Never seen 1"
    assert said(say("Layer {n}", n=1), polish) == "Layer 1"
    assert said(say(""), polish) == ""


def test_the_scripts_get_their_words(polish):
    assert browser_words(polish) == {"Save": "Zapisz", "{n} token": ["{n} kawałek", "{n} kawałki", "{n} kawałków"]}
    assert browser_words("qps") == {"Save": "⟦Saavee⟧", "{n} token": ["⟦{n} tookeen⟧", "⟦{n} tookeens⟧"]}
    assert browser_words("en") == {}


def test_a_tag_is_met_as_closely_as_there_is_and_any_other_asks_for_nothing(polish):
    assert {negotiated(wanted) for wanted in ("PL", "pl_PL", "pl-Latn-PL", " pl ")} == {"pl"}
    assert {negotiated(wanted) for wanted in (None, "", "xx", "../../etc", "p")} == {None}


def test_a_broader_tag_finds_the_one_that_begins_like_it(polish, tmp_path):
    (tmp_path / "zh-Hans").mkdir()
    (tmp_path / "zh-Hans" / "messages.mo").write_bytes((tmp_path / "pl" / "messages.mo").read_bytes())
    catalogue.languages.cache_clear()
    assert negotiated("zh-TW") == negotiated("zh") == "zh-Hans"
    assert languages() == ("en", "pl", "zh-Hans")


def test_a_language_is_named_in_itself():
    assert name_of("en") == "English"
    assert name_of("zh") == "中文"
