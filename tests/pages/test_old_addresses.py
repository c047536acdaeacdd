"""Addresses that people have copied open the same view as ever.

`old_addresses.json` is a kept list: what version 3f90e77 made of each address, run by its own code. It is not written
anew when the app changes; an address may be added. Its sentences alone were put into the words of today, one by one.
"""

import dataclasses
import json
import re
from pathlib import Path
from urllib.parse import parse_qs, urlencode

import pytest

from glassformer.state.link import read_link, write_link
from glassformer.state.view import parameters
from tests.pages.conftest import PAGES
from tests.pages.reading import keys_of

RENUMBERED = "3: e"  # was "2: e": the Positions page counted tokens from 0, while its address said 3
OLD = json.loads(Path(__file__).with_name("old_addresses.json").read_text(encoding="utf-8"))
REQUEST = ("model", "rev", "src", "how", "beam", "lp", "temp", "k", "p", "seed", "max", "forced", "result", "with")
TOLD = ("the link", "was requested", "can be shifted", "was chosen", "version of")  # of a note on an address
# What a choice of a layer or a head calls all of them, on one page or another, now or once.
TOGETHER = ("Mean", "All", "All layers", "All heads")
BEGINNINGS = ("Layer ", "Head ", "Query ", "Key ", "Token ")  # menus without a label above say what they are
RENAMED = {"Cross-attention": "Cross", "Rollout through the layers": "Rollout", ("lens_colour", "Rank"): "Place"}
NEW = {
    "unsure": "All tokens",
    "apart": True,
    "language_choice": "English",
    "effect_at": "Whole output",
}  # controls that there were not then, at their defaults
MAPS = ("mask_bool", "mask_additive")
# en-fr and zh-en, which learned what people type first
RETRAINED = {"ce6defeb299d": "c49be4e6dd4c", "e18eeb55f0a0": "3332c75edb4d"}
DECODING = {"how", "guess", "max_new", "beam", "length_penalty", "temperature", "top_k", "top_p", "seed"}
KEYS = {"one_layer": "layer", "one_head": "head"}


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
    for look in said.pop("looks", ()):  # a page's own fields, which stood among the others then
        said |= plain(look)
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
    found = {KEYS.get(key, key): as_once(key, value) for key, value in found.items()}
    together = [key for key in ("layer", "head") if found.get(key) in TOGETHER]
    return {key: value for key, value in found.items() if key not in together}


def as_once(key, value):
    """What a control shows, as it was called once."""
    if not isinstance(value, str):
        return value
    for beginning in BEGINNINGS:
        value = value.removeprefix(beginning).removesuffix(" positions")
    return RENAMED.get((key, value), RENAMED.get(value, value))


def opened_now(old):
    """What an address opens; what it names not of the Masks page is the page's own choice, which is another since."""
    as_text = json.dumps(old, ensure_ascii=False)
    for before, after in RETRAINED.items():
        as_text = as_text.replace(before, after)
    now = json.loads(re.sub(r"(“none”\\*, which is not a valid choice\\*; )source is", r"\1decoder is", as_text))
    names = parse_qs(old["address"])
    if now["link"].get("view", {}).get("mask") == "decoder":
        del now["link"]["view"]["mask"]
    if (now["meant"] or {}).get("mask") == "decoder":
        del now["meant"]["mask"]
    now["written"] = now["written"].replace("&mask=decoder", "")
    if (
        "mask_companion_0" in now["shown"] and "with=" not in old["address"]
    ):  # one sentence is padded to, instead of two
        now["shown"] |= {"mask_companion_0": "transformer", "mask_companion_1": ""}
    if "mask_key" in now["shown"] and not {"key", "query", "with"} & names.keys():
        now["shown"] |= {"mask_query": "7: a → </s>", "mask_key": "8: <pad>"}
    # Gone from sight: what was for nobody, or the same as another picture.
    gone = {"position_errors", "position_waves", "mask_own"}
    now["components"] = [key for key in now["components"] if key not in gone]
    if "head_table_map" in now["components"]:  # the head that is furthest from the mean is opened unasked since
        now["components"] = sorted({*now["components"], "head_table_rows"})
    # How a run is decoded can be chosen where that is looked at.
    if now["page"] != "step" or now["shown"].get("source") == "":
        now["shown"] = {key: value for key, value in now["shown"].items() if key not in DECODING}
    else:  # how unsure each step was is a block's picture, and a step's row is the framed one of the map
        gone = {"entropy", "cross_row"} - ({"entropy"} if "unsure=ten" in old["address"] else set())
        now["components"] = [key for key in now["components"] if key not in gone]
    if now["page"] == "checkpoints":  # its charts stand on a page of their own since
        now["components"] = []
    if "mask" in now["shown"] and names.get("mask", ["none"]) == ["none"]:
        now["shown"] |= {"mask": "Padding and causal", "mask_query": "7: . → </s>", "mask_key": "8: <pad>"}
        if "with=" in old["address"]:  # its sentences have no pads since the model learned more
            now["shown"] |= {"mask_query": "4: o → c", "mask_key": "5: c"}
    if now["page"] == "masks":  # one row and the checks unfold below the masks since
        part = now["shown"].pop("masks_panel")
        if now["shown"].pop("mask_attention", None):
            now["shown"]["mask"] = "Padding and causal"
        if part != "The masks":
            now["components"] = sorted({*now["components"], *MAPS, *(["mask_batch"] * (part == "One row"))})
        if part == "Checks":
            now["shown"] |= {"mask": "Padding and causal", "mask_query": "6: b → a", "mask_key": "7: a"}
    return now


def test_no_parameter_was_given_up():
    names = {name for one in OLD for name in parse_qs(one["address"], keep_blank_values=True)}
    assert names <= {*REQUEST, *parameters()}
    assert (len(OLD), len(names)) >= (42, 48)  # all that there were


@pytest.mark.parametrize("old", OLD, ids=lambda old: f"{old['page']}?{old['address']}"[:60])
def test_an_old_address_says_what_it_said(old):
    old = opened_now(old)
    link, notes = read_link(parse_qs(old["address"], keep_blank_values=True))
    assert json.loads(json.dumps(plain(link))) == old["link"]
    assert list(notes) == old["notes"]
    assert parse_qs(urlencode(write_link(link)), keep_blank_values=True) == parse_qs(
        old["written"], keep_blank_values=True
    )


@pytest.mark.parametrize("old", OLD, ids=lambda old: f"{old['page']}?{old['address']}"[:60])
def test_an_old_address_opens_what_it_opened(open_page, old):
    old = opened_now(old)
    parameters = parse_qs(old["address"], keep_blank_values=True)
    test = open_page(PAGES[old["page"]], **{k: v[0] for k, v in parameters.items()})
    now = {key: value for key, value in shown(test).items() if key not in NEW or value != NEW[key]}
    assert now == old["shown"] | {key: RENUMBERED for key in old["shown"] if old["shown"][key] == "2: e"}
    told = [said.value for said in test.info if any(word in said.value for word in TOLD)]
    assert [sorted(one.split("  \n")) for one in told] == [sorted(one.split("  \n")) for one in old["told"]]
    assert sorted(keys_of(test)) == old["components"]
    if old["page"] == "checkpoints":  # which said nothing in the address then
        return
    assert ("url_meant" in test.session_state) == (old["meant"] is not None)
    assert old["meant"] is None or test.session_state["url_meant"] == old["meant"]
