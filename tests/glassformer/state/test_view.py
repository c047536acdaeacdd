"""Each page and extension reads its own fields of the view, and no name in an address means two things."""

import pytest

from glassformer.masks import MasksLook
from glassformer.state import global_params, language
from glassformer.state import view as module
from glassformer.state.fields import Look, flag, place
from glassformer.state.global_params import AddressPart, Guidance
from glassformer.state.link import Link, address_words, read_link, write_link
from glassformer.state.view import ORDER, View, all_fields, parameters
from tests.glassformer.state.test_link import OF_A_RUN
from transformer.extensions import provided


@pytest.fixture
def declare(monkeypatch):
    """Have only these looks beside those of pages, as if the extensions were others."""

    def set_(*looks):
        monkeypatch.setattr(module, "provided", lambda name: looks if name == "looks" else ())
        all_fields.cache_clear()

    yield set_
    monkeypatch.undo()
    all_fields.cache_clear()


def test_a_page_reads_its_own_fields_and_equal_views_are_equal_however_they_came_about():
    view = View(layer=1).but(mask="cross", layer=2, with_beam=True)
    assert (view.layer, view.of(MasksLook).mask, view.of(MasksLook).pads) == (2, "cross", MasksLook.pads)
    assert (view.get("layer"), view.get("mask"), view.get("with_beam"), view.get("term")) == (2, "cross", True, "")
    one, other = View().but(mask="cross", at=3), View().but(at=3).but(pads=9, mask="cross").but(pads=4)
    assert (one, hash(one)) == (other, hash(other))
    assert one.but(mask="decoder", at=None) == View()


def test_addresses_keep_their_order():
    names = module.parameters()
    assert [name for name in ORDER.split() if name in names] == [name for name in names if name in ORDER.split()]
    words = address_words()
    assert len(words) == len(set(words))


@pytest.mark.parametrize("two", [{"mask": flag("own_name")}, {"own_name": flag("mask")}, {"step": place("one", 9)}])
def test_two_looks_never_share_a_name(declare, two):
    name, declared = next(iter(two.items()))
    kind = bool if declared.default is False else int
    declare(type("Second", (Look,), {"__annotations__": {name: kind}, **two}))
    with pytest.raises(TypeError, match="several looks declare the"):
        all_fields()


def test_fields_of_an_extension_that_is_gone_are_unknown(declare):
    declare()
    assert read_link({"corpus": ("search",), "mask": ("cross",)}) == (Link(view=View().but(mask="cross")), ())
    assert View().but(corpus_panel="search") == View()
    assert write_link(Link(view=View().but(corpus_panel="search", term="piece"))) == {"term": "piece"}


NAMES = (language.PARAMETER, language.PRESENT, *(name for part in provided("address") for name in part.names))
OF_A_LINK = (*OF_A_RUN.split(), "job", *parameters())


def test_no_name_stands_for_two_things_and_a_link_does_not_see_what_stands_beside_it():
    assert not {*NAMES} & {*OF_A_LINK}
    assert len({*NAMES}) == len(NAMES) >= 2
    link, notes = read_link(dict.fromkeys(NAMES, ("one",)))
    assert write_link(link) == write_link(Link())
    assert not notes


def part(name, **guidance):
    found = AddressPart()
    found.names, found.guidance = (name,), lambda: Guidance(**guidance)
    found.beside = lambda parameters: {name: "1"}
    return found


def test_each_part_may_say_who_leads_and_without_extensions_nobody_does(monkeypatch):
    parts = (part("one", leads=True, bare={"model": "a"}), part("two", is_set=True, types=False))
    monkeypatch.setattr(global_params, "provided", lambda _: parts)
    assert global_params.guidance() == Guidance(leads=True, is_set=True, types=False, bare={"model": "a"})
    assert global_params.without(dict.fromkeys(("one", "two", "src"), ("x",))) == {"src": ("x",)}
    monkeypatch.setattr(global_params, "provided", lambda _: ())
    assert global_params.guidance() == Guidance()
    assert global_params.beside({"src": "a"}) == {"src": "a"}
