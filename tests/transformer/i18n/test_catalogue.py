"""Languages are folders with a catalogue, and what is asked for is met as closely as there is."""

import json
import shutil

import pytest
from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo

from transformer.i18n import catalogue, languages, name_of, negotiated, said, say, say_n
from transformer.i18n.catalogue import browser_words


@pytest.fixture
def polish(tmp_path, monkeypatch):
    """A folder with a language that has three plural forms."""
    made = Catalog(locale="pl")
    made.add("Step {n} looks at {what}.", "Na {what} patrzy krok {n}.")
    made.add(("{n} token", "{n} tokens"), ("{n} kawałek", "{n} kawałki", "{n} kawałków"))
    made.add("Key", "Klucz")
    made.add("Key", "Klawisz", context="on a keyboard")
    made.add("Layer {n}", "Warstwa {number}")
    made.add("Save", "Zapisz")
    (tmp_path / "pl").mkdir()
    with (tmp_path / "pl" / "messages.mo").open("wb") as file:
        write_mo(file, made)
    (tmp_path / "browser.json").write_text(json.dumps([["Save"], ["{n} token", "{n} tokens"]]))
    monkeypatch.setattr(catalogue, "FOLDER", tmp_path)
    cached = (catalogue.languages, catalogue._catalogue, browser_words)
    for one in cached:
        one.cache_clear()
    yield tmp_path
    for one in cached:
        one.cache_clear()


def test_a_language_has_its_own_order_plurals_and_words_of_several_meanings_and_so_have_the_scripts(polish):
    assert said(say("Step {n} looks at {what}.", n=3, what="kot"), "pl") == "Na kot patrzy krok 3."
    forms = {1: "1 kawałek", 3: "3 kawałki", 5: "5 kawałków", 22: "22 kawałki"}
    assert {n: said(say_n("{n} token", "{n} tokens", n), "pl") for n in forms} == forms
    assert [said(one, "pl") for one in (say("Key"), say("Key", about="on a keyboard"))] == ["Klucz", "Klawisz"]
    # What is not translated, or not well, stays English.
    unknown = (say("Never seen {n}", n=1), say("Layer {n}", n=1), say(""))
    assert [said(one, "pl") for one in unknown] == ["Never seen 1", "Layer 1", ""]
    assert browser_words("pl") == {"Save": "Zapisz", "{n} token": ["{n} kawałek", "{n} kawałki", "{n} kawałków"]}
    assert browser_words("qps") == {"Save": "⟦Saavee⟧", "{n} token": ["⟦{n} tookeen⟧", "⟦{n} tookeens⟧"]}
    assert browser_words("en") == {}


def test_a_tag_is_met_as_closely_as_there_is_and_any_other_asks_for_nothing(polish):
    assert {negotiated(wanted) for wanted in ("PL", "pl_PL", "pl-Latn-PL", " pl ")} == {"pl"}
    assert {negotiated(wanted) for wanted in (None, "", "xx", "../../etc", "p")} == {None}
    shutil.copytree(polish / "pl", polish / "zh-Hans")
    catalogue.languages.cache_clear()
    assert negotiated("zh-TW") == negotiated("zh") == "zh-Hans"  # a broader one finds what begins like it
    assert languages() == ("en", "pl", "zh-Hans")
    assert (name_of("en"), name_of("zh")) == ("English", "中文")
