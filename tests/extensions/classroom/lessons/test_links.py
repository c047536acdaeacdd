"""The links of all lessons: each reads back without a note, opens a page that there is, and names its charts."""

import ast
import re
from functools import cache

import pytest

from glassformer.extensions.lessons.library.case import QuestionNotApplicable
from glassformer.extensions.lessons.library.posing import pose
from glassformer.state import view
from glassformer.state.link import RUN, Link, read_link, write_link
from tests.extensions.lessons.library.posed import NAMES, STEPS, case, in_turn
from tests.pages.conftest import PAGES
from tests.source_code import ROOT
from transformer.errors import QueryError

IDS = [f"{lesson.name}-{n}" for lesson, n, _ in STEPS]
FIXED = {"*", "part"}  # words of `glassformer.shared.cover_box` that are no keys


@cache
def texts_in_ui():
    """Whole texts in the code of the interface, and those before the first value of an f-string."""
    whole, begun = set(), set()
    for file in (ROOT / "glassformer").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr) and node.values and isinstance(node.values[0], ast.Constant):
                begun.add(str(node.values[0].value))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                whole.add(node.value)
    return whole, {one for one in begun if re.fullmatch(r"[a-z_]{4,}_", one)}


KNOWN = {*RUN, *view.parameters(), "with", "ref", "b"}


@pytest.mark.parametrize("which", range(len(STEPS)), ids=IDS)
def test_a_step_opens_a_page_and_names_charts_that_there_are(which):
    _, _, step = STEPS[which]
    assert step.page in PAGES
    whole, begun = texts_in_ui()
    for key in (*step.cover, *step.look):
        assert key in FIXED or key in whole or any(key.startswith(one) for one in begun), key


# Each step with one checkpoint in turn whenever tests run, or with the one that it is about.
ONE = [pytest.param(n, name, id=f"{IDS[n]}-{name}", marks=[pytest.mark.deep] * (NAMES[n % 3] != name != step.on))
       for n, (_, _, step) in enumerate(STEPS) for name in NAMES if step.on in ("", name)]  # fmt: skip


@pytest.mark.parametrize(("which", "name"), ONE)
def test_a_link_reads_back_without_a_note(which, name):
    _, _, step = STEPS[which]
    for sentence in in_turn(name, which, each=1):
        try:
            posed = pose(step, case(name, sentence))
        except (QuestionNotApplicable, QueryError):
            continue
        own = write_link(Link(model=name, source=sentence))
        for parameters in (posed.link(), posed.then()):
            link, notes = read_link({key: [value] for key, value in (own | parameters).items()})
            assert not notes, (parameters, notes)
            assert link.source == sentence
            assert set(parameters) <= KNOWN, "an unknown parameter is passed over without a note"
            assert read_link({key: [value] for key, value in write_link(link).items()}) == (link, ())
