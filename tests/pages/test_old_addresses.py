"""Addresses that people have copied open the same view as ever.

`old_addresses.json` is a kept list: what version 3f90e77 made of each address, run by its own code. It is not written
anew when the app changes; an address may be added. What was renamed, given another default or drawn elsewhere since
was put into the words of today, one by one.
"""

import dataclasses
import json
from pathlib import Path
from urllib.parse import parse_qs, urlencode

import pytest

from glassformer.state.link import read_link, write_link
from glassformer.state.view import parameters
from tests.pages.conftest import PAGES
from tests.pages.reading import controls, keys_of

OLD = json.loads(Path(__file__).with_name("old_addresses.json").read_text(encoding="utf-8"))
REQUEST = ("model", "rev", "src", "how", "beam", "lp", "temp", "k", "p", "seed", "max", "forced", "result", "with")
TOLD = ("the link", "was requested", "can be shifted", "was chosen", "version of")  # of a note on an address
EACH = pytest.mark.parametrize("old", OLD, ids=lambda old: f"{old['page']}?{old['address']}"[:60])


def parsed(query):
    return parse_qs(query, keep_blank_values=True)


def plain(record):
    """What a record says that is not its default, as JSON has it."""
    said = {}
    for field in dataclasses.fields(record):
        own = None if field.default_factory is dataclasses.MISSING else field.default_factory()
        value = getattr(record, field.name)
        if field.name == "looks":  # of pages; once they were fields of the view itself
            said |= {name: own for look in value for name, own in plain(look).items()}
        elif value != (own if field.default is dataclasses.MISSING else field.default):
            record_in_it = dataclasses.is_dataclass(value)
            said[field.name] = {"is": type(value).__name__, **plain(value)} if record_in_it else value
    return said


def shown(control):
    """What a control shows; of a choice the label."""
    label = getattr(control, "format_func", lambda value: value)
    if isinstance(control.value, list):
        return [label(one) for one in control.value]
    return None if control.value is None else label(control.value)


def test_no_parameter_was_given_up():
    names = {name for one in OLD for name in parsed(one["address"])}
    assert names <= {*REQUEST, *parameters()}
    assert (len(OLD), len(names)) >= (42, 48)  # all that there were


@EACH
def test_an_old_address_says_what_it_said(old):
    link, notes = read_link(parsed(old["address"]))
    assert json.loads(json.dumps(plain(link))) == old["link"]
    assert list(notes) == old["notes"]
    assert parsed(urlencode(write_link(link))) == parsed(old["written"])


@EACH
def test_an_old_address_opens_what_it_opened(open_page, old):
    test = open_page(PAGES[old["page"]], **{name: value[0] for name, value in parsed(old["address"]).items()})
    assert {key: shown(one) for key, one in controls(test).items()} == old["shown"]
    told = [said.value for said in test.info if any(word in said.value for word in TOLD)]
    assert [sorted(one.split("  \n")) for one in told] == [sorted(one.split("  \n")) for one in old["told"]]
    assert sorted(keys_of(test)) == old["components"]
    if old["page"] != "checkpoints":  # which said nothing in the address then
        there = "url_meant" in test.session_state
        assert (test.session_state["url_meant"] if there else None) == old["meant"]
