"""Every term of the glossary has one meaning, and leads to a place that there is."""

import re
from collections import Counter
from dataclasses import replace

import pytest

from glassformer.glossary import glossary_page
from glassformer.glossary.glossary_page import APART, PLACES, TERMS
from glassformer.runs import loading
from glassformer.state.link import Link, read_link, write_link
from glassformer.state.view import View, all_fields
from tests.pages.conftest import PAGES
from transformer.i18n import Sentence, said
from transformer.runs.interventions import parse


def forms(term):
    names = re.split(r"\s*\(([^)]+)\)", term.name) + term.also.split("|")
    return {name.strip().lower() for name in names if name.strip()}


def test_every_term_has_one_meaning():
    assert len(TERMS) > 150
    counted = Counter(form for term in TERMS for form in forms(term))
    assert [form for form, times in counted.items() if times > 1] == []
    assert not set(APART.lower().split("|")) & set(counted)


def test_a_term_is_sentences_and_words_that_make_an_everyday_word_one_are_terms():
    known = {form for term in TERMS for form in forms(term)}
    for term in TERMS:
        assert term.text.endswith("."), term.id
        told = [text for text in (term.name, term.text, term.also, term.among) if text]
        assert all(isinstance(text, Sentence) and "⟦" in said(text, "qps") for text in told), term.id
        assert "||" not in f"{term.also}{term.among}", term.id
        assert {*filter(None, term.among.split("|"))} <= known, term.id
    assert {term.seen for term in TERMS} == set(PLACES)
    assert write_link(Link(view=View().but(term="W_O"))) == {"term": "W_O"}


THERE = {name: place for name, place in PLACES.items() if place.page in PAGES and glossary_page.is_there(place)}


@pytest.mark.parametrize("place", THERE.values(), ids=list(THERE))
def test_a_place_is_a_page_and_its_address_opens_it(place):
    assert set(place.fields) <= {*all_fields()}
    checkpoint = loading.open_checkpoint(loading.usable()["reverse"])
    link = Link(model="reverse", source="a b", view=View().but(term="piece", step=2, query=3))
    written = write_link(glossary_page.leads_to(checkpoint, place, link))
    opened, notes = read_link({name: (value,) for name, value in written.items()})
    if not place.has(checkpoint.config):  # a model that has it, with its own example
        there = loading.open_checkpoint(loading.usable()[place.shown_by])
        assert place.has(there.config)
        assert (notes, opened) == ((), Link(model=place.shown_by, view=View().but(**place.fields)))
        link, checkpoint = Link(model=there.name, source=there.card.first_example()), there
        assert glossary_page.leads_to(there, place, link).view == link.view.but(**place.fields)
        return
    assert (notes, opened.model, opened.source) == ((), "reverse", "a b")
    assert opened.view == link.view.but(**({"term": "", "query": None} | place.fields))
    assert (opened.decoding, opened.interventions) == (place.decoding or link.decoding, parse(place.changes))
    if place.changes:
        assert checkpoint.run(replace(opened.query(checkpoint.content_hash), source="ab")).n_steps
