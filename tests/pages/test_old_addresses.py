"""Addresses that people have copied open the same view as ever.

`old_addresses.json` is a kept list: what version 3f90e77 made of each address, run by its own code. It is not written
anew when the app changes; an address may be added.
"""

import dataclasses
import json
from pathlib import Path
from urllib.parse import parse_qs, urlencode

import pytest

from tests.pages.conftest import ROOT
from ui.state.link import read_link, write_link
from ui.state.view import NAMES

OLD = json.loads(Path(__file__).with_name("old_addresses.json").read_text(encoding="utf-8"))
REQUEST = ("model", "rev", "src", "how", "beam", "lp", "temp", "k", "p", "seed", "max", "forced", "result", "with")
TOLD = ("the link", "asked for", "was chosen", "version of")  # of a note on an address
TOGETHER = ("Mean", "All")  # what a choice of a layer or a head once called all of them, on one page or another


def plain(record):
    """What a record says that is not its default, as JSON has it."""
    said = {}
    for field in dataclasses.fields(record):
        own = None if field.default_factory is dataclasses.MISSING else field.default_factory()
        value = getattr(record, field.name)
        if value != (own if field.default is dataclasses.MISSING else field.default):
            record_in_it = dataclasses.is_dataclass(value)
            said[field.name] = {"is": type(value).__name__, **plain(value)} if record_in_it else value
    return said


def shown(test):
    """What every control shows, by its key; of a choice the label."""
    found = {
        element.key: None if element.value is None else element.format_func(element.value)
        for element in (*test.segmented_control, *test.selectbox, *test.select_slider)
    }
    found |= {element.key: [element.format_func(one) for one in element.value] for element in test.multiselect}
    for element in (*test.toggle, *test.slider, *test.number_input, *test.text_input):
        found[element.key] = element.value
    together = [key for key in ("layer", "head") if found.get(key) in TOGETHER]
    return {key: value for key, value in found.items() if key not in together}


def test_no_parameter_was_given_up():
    names = {name for one in OLD for name in parse_qs(one["address"], keep_blank_values=True)}
    assert names <= {*REQUEST, *NAMES}
    assert (len(OLD), len(names)) >= (42, 48)  # all that there were


@pytest.mark.parametrize("old", OLD, ids=lambda old: f"{old['page']}?{old['address']}"[:60])
def test_an_old_address_says_what_it_said(old):
    link, notes = read_link(parse_qs(old["address"], keep_blank_values=True))
    assert json.loads(json.dumps(plain(link))) == old["link"]
    assert list(notes) == old["notes"]
    assert parse_qs(urlencode(write_link(link)), keep_blank_values=True) == parse_qs(
        old["written"], keep_blank_values=True
    )


@pytest.mark.parametrize("old", OLD, ids=lambda old: f"{old['page']}?{old['address']}"[:60])
def test_an_old_address_opens_what_it_opened(open_page, old):
    folder = "debug" if old["page"] == "checkpoints" else "explore"
    parameters = parse_qs(old["address"], keep_blank_values=True)
    test = open_page(ROOT / "pages" / folder / f"{old['page']}.py", **{k: v[0] for k, v in parameters.items()})
    assert shown(test) == old["shown"]
    assert [said.value for said in test.info if any(word in said.value for word in TOLD)] == old["told"]
    assert sorted(element.key for element in test.get("bidi_component")) == old["components"]
    assert ("url_meant" in test.session_state) == (old["meant"] is not None)
    assert old["meant"] is None or test.session_state["url_meant"] == old["meant"]
