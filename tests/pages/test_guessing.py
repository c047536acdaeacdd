"""While somebody guesses, a page is the same whatever comes: no text, menu, table or picture says more of it."""

import re

import pytest

from glassformer.runs import loading
from glassformer.runs.picture import PAGES, declare_all
from glassformer.state.link import Link, write_link
from glassformer.state.view import View
from tests.pages.conftest import PAGES as SCRIPTS
from tests.pages.reading import opened
from tests.pages.test_steps_alone import OTHERS, elements, payload

declare_all()

STEP = 2  # that is guessed
MODELS = {"reverse": "abcdef", "decoder alone": "ba lo mi"}
DAILY = {"head", "ffn", "sentence", "masks", "checks"}  # parts of which a decoder alone has menus of its own
PARTS = [
    pytest.param(page, part, side, model, id=f"{path}-{part.name}-{side}-{model}", marks=marks)
    for path, page in PAGES.items()
    if path not in OTHERS
    for part in page.parts.values()
    for side in (("source", "target") if path in ("inside", "positions") else ("target",))
    for model in MODELS
    for marks in ([pytest.mark.deep] * (side == "source" or (model != "reverse" and part.name not in DAILY)),)
]
TABLES = ("arrow_data_frame", "dataframe")
# The browser covers what is still to come of the stepper's run; the others are names of the run.
NAMES = ("run", "run_id", "revision", "step_revision", "file", "sentence")
WRITTEN = re.compile(r'forced=[\d.]+|(id|form_id|fragment_id|element_id|url|hash)\s*:\s*"[^"]*"')


def sent(element):
    """All that the browser gets of an element, but for names of the run."""
    if data := payload(element):
        return WRITTEN.sub("", repr({name: value for name, value in data.items() if name not in NAMES}))
    if element.type in TABLES:
        return repr(element.value.to_dict())
    return WRITTEN.sub("", str(element.proto))


def shown(open_page, page, part, side, model, *, guess=True):
    """What a page shows of two outputs that part at the piece to be guessed."""
    told = {"step": STEP, "guess": guess, "side": side, "words": True, "hide_special": True}
    view = View().but(**told, **{page.panel: part.name} if part.name else {})
    own = opened(model).run(MODELS[model]).tgt_ids
    for forced in (own[: STEP + 1], (*own[:STEP], 10)):
        link = Link(model=model, source=MODELS[model], forced=forced, view=view)
        test = open_page(SCRIPTS[page.path], **write_link(link))
        yield [sent(element) for element in elements(test._tree)]


@pytest.mark.parametrize(("page", "part", "side", "model"), PARTS)
def test_nothing_says_what_comes(open_page, one_stack, monkeypatch, page, part, side, model):
    monkeypatch.setenv(loading.ENVIRONMENT, str(one_stack))
    one, other = shown(open_page, page, part, side, model)
    assert one == other


@pytest.mark.parametrize("name", ["overview", "flow", "walk", "table"])
def test_what_is_not_to_be_guessed_is_seen(open_page, name):
    page = PAGES["attention"]
    one, other = shown(open_page, page, page.parts[name], "target", "reverse", guess=False)
    assert one != other
