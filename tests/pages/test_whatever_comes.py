"""A page says the same whatever comes while somebody guesses, and at each step where nothing of it asks for one."""

import json
import re
from base64 import b64decode
from dataclasses import dataclass, replace

import numpy as np
import pytest

from glassformer.runs import loading
from glassformer.runs.picture import PAGES, declare_all
from glassformer.state.link import Link, write_link
from glassformer.state.view import View
from tests.pages.conftest import PAGES as SCRIPTS
from tests.pages.reading import opened
from tests.pages.transcript import at_rest
from tests.transformer.featured import featured
from tests.transformer.one_stack import alone

declare_all()

STEP = 2  # that is guessed
OTHERS = {"corpus", "doctor"}  # which show no run
SOURCES = {"reverse": "abcdef", "decoder alone": "ba lo mi", "rotary": "ba lo mi"}
DAILY = {"head", "ffn", "sentence", "masks", "checks"}  # parts of which a decoder alone has menus of its own
PARTS = [
    (page, part, side)
    for path, page in PAGES.items()
    if path not in OTHERS
    for part in page.parts.values()
    for side in (("source", "target") if path in ("inside", "positions") else ("target",))
]
TABLES = ("arrow_data_frame", "dataframe")
# The browser covers what is still to come of the stepper's run; the others are names of the run.
NAMES = ("run", "run_id", "revision", "step_revision", "file", "sentence")
PACKED = r"""["']dtype["']:\s*["'](\w+)["'],\s*["']bdata["']:\s*["']([^"']*)["']"""
NUMBER = r"-?\d+\.\d{4,}(?:e[-+]?\d+)?"
ROUNDING = "[0-9.]+ × 10⁻[⁰¹²³⁴⁵⁶⁷⁸⁹]+"  # by how much single precision was off
WRITTEN = r'(id|form_id|fragment_id|element_id|url|hash)\s*:\s*"[^"]*"'


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("models")
    featured("rotary", made)
    alone("decoder", made)
    return str(made)


@pytest.fixture
def show(open_page, folder, monkeypatch):
    """A function that opens a part of a page: all its elements."""
    monkeypatch.setenv(loading.ENVIRONMENT, folder)

    def one(page, part, model, view, **asked):
        view = view.but(**{page.panel: part.name}) if part.name else view
        link = Link(model=model, source=SOURCES[model], view=view, **asked)
        return list(elements(open_page(SCRIPTS[page.path], **write_link(link))._tree))

    return one


def elements(found):
    children = getattr(found, "children", None)
    if children is None:
        yield found
    for child in (children or {}).values():
        yield from elements(child)


def payload(element):
    return json.loads(element.proto.json)[0] if element.type == "bidi_component" else {}


# ---------------------------------------------------------------- guessing


def each(parts, *models, deep):
    """Try each part with each model; those that are not tried daily are marked as deep."""
    cases = [
        pytest.param(page, part, side, model, id=f"{page.path}-{part.name}-{side}-{model}", marks=marks)
        for page, part, side in parts
        for model in models
        for marks in ([pytest.mark.deep] * deep(page.path, part.name, side, model),)
    ]
    return pytest.mark.parametrize(("page", "part", "side", "model"), cases)


def seldom_guessed(_, part, side, model):
    return side == "source" or (model != "reverse" and part not in DAILY)


def seldom_stepped(page, _, side, model):
    return (model == "rotary") != (page == "positions")


@dataclass(frozen=True)
class Sent:
    """Equal but for rounding: an output of another length is summed in another order on some processors."""

    text: str  # without its numbers
    numbers: np.ndarray

    def __eq__(self, other):
        same = self.text == other.text and self.numbers.shape == other.numbers.shape
        return same and np.allclose(self.numbers, other.numbers, rtol=1e-5, atol=2e-5, equal_nan=True)

    __hash__ = None


def sent(element):
    """All that the browser gets of an element, but for names of the run."""
    if data := payload(element):
        text = re.sub(rf"forced=[\d.]+|{WRITTEN}", "", repr({key: data[key] for key in data if key not in NAMES}))
    elif element.type in TABLES:
        text = repr(element.value.to_dict())
    else:
        text = re.sub(rf"forced=[\d.]+|{WRITTEN}", "", str(element.proto))
    packed = [np.frombuffer(b64decode(data), kind).astype(float) for kind, data in re.findall(PACKED, text)]
    text = re.sub(PACKED, "packed", text)
    written = [float(number) for number in re.findall(NUMBER, text)]
    return Sent(re.sub(f"{NUMBER}|{ROUNDING}", "#", text), np.concatenate([*packed, written]))


def two_outputs(show, page, part, side, model, *, guess):
    """What a page shows of two outputs that part at the piece to be guessed."""
    own = opened(model).run(SOURCES[model]).tgt_ids
    view = View().but(step=STEP, guess=guess, side=side, words=True, hide_special=True)
    for forced in (own[: STEP + 1], (*own[:STEP], 10)):
        yield [*map(sent, show(page, part, model, view, forced=forced))]


@each(PARTS, "reverse", "decoder alone", deep=seldom_guessed)
def test_nothing_says_what_comes(show, page, part, side, model):
    one, other = two_outputs(show, page, part, side, model, guess=True)
    assert one == other


@pytest.mark.parametrize("name", ["overview", "flow", "walk", "table"])
def test_what_is_not_to_be_guessed_is_seen(show, name):
    page = PAGES["attention"]
    one, other = two_outputs(show, page, page.parts[name], "target", "reverse", guess=False)
    assert one != other


# ---------------------------------------------------------------- steps


def said(element):
    """What an element says; charts and the stepper follow by themselves, and progress is of work in the background."""
    if data := payload(element):
        return "" if {"figure", "asks", "stops"} & set(data) else json.dumps(data)
    return "progress:" if element.type == "progress" else re.sub(rf"gf-at-step.*|{WRITTEN}", "", str(element.proto))


STILL = [one for one in PARTS if not one[1].asks]


@each(STILL, "reverse", "rotary", deep=seldom_stepped)
def test_nothing_but_pictures_changes_with_the_step(show, page, part, side, model):
    asks = []

    def at(step):
        shown = show(page, part, model, replace(View().but(side=side), step=step))
        asks.extend(data["asks"] for element in shown if "asks" in (data := payload(element)))
        return [*filter(None, map(said, shown))]

    first, later = (at_rest(lambda step=step: at(step)) for step in (1, 2))
    assert not any(asks)
    assert not asks or first == later
