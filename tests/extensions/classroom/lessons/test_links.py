"""Every link of a lesson's step opens a page that there is, and reads back without a note."""

import pytest

from glassformer.extensions.lessons.library.case import QuestionNotApplicable
from glassformer.extensions.lessons.library.posing import pose
from glassformer.state import view
from glassformer.state.link import RUN, Link, read_link, write_link
from tests.extensions.lessons.library.posed import IN_TURN, NAMES, STEPS, case, in_turn
from tests.pages.conftest import PAGES
from transformer.errors import QueryError

KNOWN = {*RUN, *view.parameters(), "with", "ref", "b"}


@pytest.mark.parametrize(("which", "name"), [one for one in IN_TURN if one.values[1] in NAMES])
def test_a_link_reads_back_without_a_note(which, name):
    _, _, step = STEPS[which]
    assert step.page in PAGES
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
