"""Where nothing asks for a step the server draws none: no text, table or control of such a page is of the step."""

import json
import re
import time
from dataclasses import replace
from functools import partial

import pytest

from glassformer.runs import loading
from glassformer.runs.picture import PAGES, declare_all
from glassformer.state.link import Link, write_link
from glassformer.state.view import View
from tests.pages.conftest import PAGES as SCRIPTS
from tests.pages.transcript import looked_for_jobs
from tests.transformer.featured import featured

declare_all()

OTHERS = {"corpus", "doctor"}  # which show no run
PARTS = [
    (page, part, side)
    for path, page in PAGES.items()
    for part in page.parts.values()
    if path not in OTHERS and not part.asks
    for side in (("source", "target") if path in ("inside", "positions") else ("source",))
]
MODELS = {"reverse": "glass", "rotary": "ba lo mi"}


@pytest.fixture(scope="module")
def rotary(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rotary")
    featured("rotary", folder)
    return str(folder)


def shown(test):
    """All that a page says but for its charts and the stepper, which follow by themselves."""
    return [text for element in elements(test._tree) if (text := seen(element))]


def at_rest(opened):
    """A page once its work in the background, if it has any, is done: it shows the same when it is opened again."""
    with looked_for_jobs() as looked:
        test = opened()
    before = None if looked else shown(test)
    for _ in range(600):
        now = shown(test)
        if now == before and all(element.type != "progress" for element in elements(test._tree)):
            return test
        before = now
        time.sleep(0.02)
        test = opened()
    raise AssertionError("the page's work does not end")


def elements(found):
    children = getattr(found, "children", None)
    if children is None:
        yield found
    for child in (children or {}).values():
        yield from elements(child)


def payload(element):
    return json.loads(element.proto.json)[0] if element.type == "bidi_component" else {}


def seen(element):
    if sent := payload(element):
        return "" if {"figure", "asks", "stops"} & set(sent) else json.dumps(sent)
    if element.type == "progress":
        return ""  # of work that goes on by itself
    return re.sub(r'gf-at-step.*|(id|form_id|fragment_id|element_id|url|hash)\s*:\s*"[^"]*"', "", str(element.proto))


EACH = [
    pytest.param(*one, model, id=f"{one[0].path}-{one[1].name}-{one[2]}-{model}", marks=marks)
    for one in PARTS
    for model in MODELS
    for marks in ([pytest.mark.deep] * ((model == "rotary") != (one[0].path == "positions")),)
]


@pytest.mark.parametrize(("page", "part", "side", "model"), EACH)
def test_nothing_but_pictures_changes_with_the_step(open_page, rotary, monkeypatch, page, part, side, model):
    monkeypatch.setenv(loading.ENVIRONMENT, rotary)
    script = SCRIPTS[page.path]
    view = View().but(side=side, **{page.panel: part.name} if part.name else {})
    links = [Link(model=model, source=MODELS[model], view=replace(view, step=step)) for step in (1, 2)]
    first, later = (at_rest(partial(open_page, script, **write_link(link))) for link in links)
    asks = [told["asks"] for element in elements(first._tree) if "asks" in (told := payload(element))]
    assert not any(asks)
    assert not asks or shown(first) == shown(later)
