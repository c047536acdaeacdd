"""Every term of the glossary has one meaning, one Chinese word in all sentences, and a place that there is."""

import re
from collections import Counter
from dataclasses import replace
from functools import cache

import pytest

from glassformer.glossary import glossary_page
from glassformer.glossary.glossary_page import APART, PLACES, TERMS
from glassformer.runs import loading
from glassformer.state.link import Link, read_link, write_link
from glassformer.state.view import View, all_fields
from tests.pages.conftest import PAGES
from tools.catalogues import CATALOGUES, read
from transformer.i18n import Sentence, said
from transformer.runs.interventions import parse


def forms(term):
    names = re.split(r"\s*\(([^)]+)\)", term.name) + term.also.split("|")
    return {name.strip().lower() for name in names if name.strip()}


def test_every_term_has_one_meaning_is_sentences_and_words_that_make_an_everyday_word_one_are_terms():
    assert len(TERMS) > 150
    counted = Counter(form for term in TERMS for form in forms(term))
    assert [form for form, times in counted.items() if times > 1] == []
    assert not set(APART.lower().split("|")) & set(counted)
    for term in TERMS:
        assert term.text.endswith("."), term.id
        told = [text for text in (term.name, term.text, term.also, term.among) if text]
        assert all(isinstance(text, Sentence) and "⟦" in said(text, "qps") for text in told), term.id
        assert "||" not in f"{term.also}{term.among}", term.id
        assert {*filter(None, term.among.split("|"))} <= set(counted), term.id
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


CHINESE = "zh"
# Chinese that a sentence may have instead: a short form, or the word for another meaning of the English one.
INSTEAD = {
    "activation": "激活函数|激活修补",
    "ALiBi": "ALiBi",
    "bit": "位",
    "branch": "支路",
    "layer": "LayerNorm",
    "lesson": "节课",
    "leak": "泄漏",
    "output so far": "已生成的输出",
    "token id": "编号",
    "rank": "秩|排第|第|排名|排序",
    "reference": "参考",
    "shift": "增减|错开|移",
    "sinusoid": "正弦",
    "source": "源",
    "target": "目标",
}
# Words that are so often no terms, or have so many Chinese ones, that looking for them finds nothing.
EVERYDAY = {"memory", "room", "token", "value"}
# Beginnings of sentences in which a word is a name in code, or in which Chinese does without it.
LEFT_OUT = (
    "Each line joins a query to a key it attends to. Its colour shows the head",
    "Elhage et al. (2021), “Handling Layer Normalization”.",
    "Length ‖head · W_O‖",
    "**Not tested: whether the model does its task.**",
    "From the next vote on, bars show the choices",
    "Lists the tensors whose names contain all of these words",
    "The unchanged model has a mean loss of",
    "decoding: found {found}, expected Greedy, Beam or Sampling.",
    "q comes from the output so far, k and v from the memory (the encoder's last vectors).",
    "the tokenizers library cannot use it",
    "the tokenizers library could not load it",
    "{file}: reading it needs the tokenizers library",
    "{file} has no epoch column",
    "{label}: expected a section named model, with encoder and decoder inside",
    "has no column that can be plotted; found {found}, expected at least one of {expected}",
    "in the header, tensor {tensor} must have the keys dtype, shape and data_offsets and no others",
    "{word}: write it as WORD=VALUE, for example layer=3",
)
CODE = re.compile(r"`[^`]*`|\{[^}]*\}|\[[^\]]*\]|--[\w-]+|\w+\.\w+|Shift\+Enter|^\w+: ")


def alternatives(term):
    """All that a term may be called in Chinese."""
    name, also = said(term.name, CHINESE), said(term.also, CHINESE) if term.also else ""
    forms = [*re.split(r"\s*[(（]([^)）]+)[)）]", name), *also.split("|"), *INSTEAD.get(term.id, "").split("|")]
    return [form.lower() for form in forms if form]


def english(term):
    """Finds a term in an English text, in both numbers."""
    name = re.split(r"\s*\(", str(term.name))[0]
    return re.compile(rf"(?<![\w-]){re.escape(name)}(?:s|es)?(?![\w-])", re.IGNORECASE)


@cache
def without_code(text):
    return CODE.sub("", text)


def lacking(term, pairs):
    """Sentences with a term whose Chinese has another word for it, or none."""
    wanted, found, name = alternatives(term), english(term), re.split(r"\s*\(", str(term.name))[0].lower()
    return [
        f"{source} — {chinese}"
        for source, chinese in pairs
        if name in (text := without_code(source)).lower()
        and found.search(text)
        and not any(form in chinese.lower() for form in wanted)
    ]


@pytest.fixture(scope="module")
def pairs():
    """English and Chinese of all sentences but code and the words of the glossary themselves."""
    texts = [
        tuple(text if isinstance(text, str) else text[-1] for text in (one.id, one.string))
        for one in read(CATALOGUES / CHINESE)
        if one.id and one.context != "glossary"
    ]
    return [(source, chinese) for source, chinese in texts if "\n" not in source and " = " not in source]


def test_a_term_has_one_chinese_word(pairs):
    these = [pair for pair in pairs if not pair[0].startswith(LEFT_OUT)]
    assert {term.id: wrong for term in TERMS if term.id not in EVERYDAY and (wrong := lacking(term, these))} == {}


def test_every_exception_is_one(pairs):
    for beginning in LEFT_OUT:
        these = [pair for pair in pairs if pair[0].startswith(beginning)]
        assert any(lacking(term, these) for term in TERMS if term.id not in EVERYDAY), beginning


def test_another_word_is_found():
    (mask,) = [term for term in TERMS if term.id == "mask"]
    assert lacking(mask, [("A mask closes keys.", "遮罩关掉键。"), ("`mask` is read.", "读 `mask`。")])
    assert lacking(mask, [("Masks close keys.", "掩码关掉键。"), ("The unmasked key.", "没有遮住的键。")]) == []
