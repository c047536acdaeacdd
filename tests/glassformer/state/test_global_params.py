"""What stands in an address beside a link takes no name that a link has."""

from glassformer.state import global_params, language
from glassformer.state.global_params import AddressPart, Guidance
from glassformer.state.link import Link, read_link, write_link
from glassformer.state.view import parameters
from tests.glassformer.state.test_link import OF_A_RUN
from transformer.extensions import provided

NAMES = (language.PARAMETER, language.PRESENT, *(name for part in provided("address") for name in part.names))
OF_A_LINK = (*OF_A_RUN.split(), "job", *parameters())


def test_no_name_stands_for_two_things_and_a_link_does_not_see_what_stands_beside_it():
    assert not {*NAMES} & {*OF_A_LINK}
    assert len({*NAMES}) == len(NAMES) >= 2
    link, notes = read_link(dict.fromkeys(NAMES, ("one",)))
    assert write_link(link) == write_link(Link())
    assert not notes


class Part(AddressPart):
    def __init__(self, name, **guidance):
        self.names, self._guidance = (name,), Guidance(**guidance)

    def beside(self, parameters):
        return dict.fromkeys(self.names, "1")

    def guidance(self):
        return self._guidance


def test_each_part_may_say_who_leads_and_without_extensions_nobody_does(monkeypatch):
    parts = (Part("one", leads=True, bare={"model": "a"}), Part("two", is_set=True, types=False))
    monkeypatch.setattr(global_params, "provided", lambda _: parts)
    assert global_params.guidance() == Guidance(leads=True, is_set=True, types=False, bare={"model": "a"})
    assert global_params.without(dict.fromkeys(("one", "two", "src"), ("x",))) == {"src": ("x",)}
    monkeypatch.setattr(global_params, "provided", lambda _: ())
    assert global_params.guidance() == Guidance()
    assert global_params.beside({"src": "a"}) == {"src": "a"}
