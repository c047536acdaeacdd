"""Every link of a lesson's step opens a page that there is, and reads back without a note."""

from contextlib import suppress

import pytest

from glassformer.extensions.lessons.library import lessons
from glassformer.extensions.lessons.library.lesson import QuestionNotApplicable
from glassformer.extensions.lessons.library.posing import opening_link, pose
from glassformer.state import view
from glassformer.state.link import RUN, Link, read_link, write_link
from tests.extensions.lessons.library.posed import NAMES, STEPS, case, in_turn
from tests.pages.conftest import PAGES
from transformer.errors import QueryError

KNOWN = {*RUN, *view.parameters(), "with", "ref", "b"}


@pytest.mark.parametrize("which", range(len(STEPS)), ids=lambda which: f"{STEPS[which][0].name}-{STEPS[which][1]}")
def test_a_link_reads_back_without_a_note(which):
    _, _, step = STEPS[which]
    assert step.page in PAGES
    if step.on and step.on not in NAMES:
        return
    name, sentence, posed = next(posed_somewhere(step, which))  # the first checkpoint on which it can be posed
    own = write_link(Link(model=name, source=sentence))
    for parameters in (posed.link(), posed.then()):
        link, notes = read_link({key: [value] for key, value in (own | parameters).items()})
        assert not notes, (parameters, notes)
        assert link.source == sentence
        assert set(parameters) <= KNOWN, "an unknown parameter is passed over without a note"
        assert read_link({key: [value] for key, value in write_link(link).items()}) == (link, ())


@pytest.mark.parametrize("name", [*NAMES, "llama", "bert"])
@pytest.mark.parametrize("opening", [one.opening for one in lessons().values()], ids=lessons())
def test_the_link_of_an_opening_reads_back_without_a_note(opening, name):
    """Also of a model of one stack, if the opening can be made there."""
    assert opening.page in PAGES
    with suppress(QuestionNotApplicable):
        found = opening_link(opening, case(name, "abc" if name not in NAMES else in_turn(name, 0, each=1)[0]))
        assert not read_link({key: [value] for key, value in found.items()})[1]
        assert set(found) <= KNOWN


def posed_somewhere(step, which):
    """A step with what it was posed to: on the smallest checkpoint if it can be."""
    for name in [step.on] if step.on else ("reverse", "en-fr", "zh-en"):
        for sentence in in_turn(name, which, each=3):
            with suppress(QuestionNotApplicable, QueryError):
                yield name, sentence, pose(step, case(name, sentence))
