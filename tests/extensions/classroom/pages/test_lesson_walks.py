"""What answers a question is in nothing that a page sends until it is answered, through whole lessons."""

import pytest
from streamlit.runtime.forward_msg_queue import ForwardMsgQueue

from glassformer.extensions.lessons.library import Case, lessons, pose
from glassformer.runs.loading import SHIPPED
from glassformer.shared.drawing import plain
from tests.browser.lesson_walks import WALKS, answer_of
from tests.extensions.classroom.pages.lesson_numbers import covered, sent_of
from tests.extensions.classroom.pages.test_lessons import answer, ways
from tests.pages.conftest import MAIN, PAGES, ROOT, check
from transformer import load
from transformer.i18n import say

NEXT, ALL = say("Next", about="lesson"), say("All lessons")


@pytest.fixture
def told(monkeypatch):
    """Every message that the server would send to the browser, from now on."""
    messages, enqueue = [], ForwardMsgQueue.enqueue

    def note(queue, message):
        messages.append(message.SerializeToString())
        enqueue(queue, message)

    monkeypatch.setattr(ForwardMsgQueue, "enqueue", note)
    return messages


def go(test, page, parameters):
    """Follow a link to a page."""
    script = PAGES[page]
    test.switch_page(str(script.relative_to(ROOT)))
    test.query_params.clear()
    for name, value in parameters.items():
        test.query_params[name] = value
    return check(test.run())


# Two lessons, in one language each.
ONCE = {"one-weight-en", "masks-zh"}


@pytest.mark.parametrize(
    "walk", [pytest.param(one, id=str(one), marks=[pytest.mark.deep] * (str(one) not in ONCE)) for one in WALKS]
)
def test_what_a_lesson_covers_is_sent_with_the_answer_and_not_before(open_page, told, walk):
    checkpoint = load(SHIPPED / walk.model)
    case = Case(checkpoint=checkpoint, trace=checkpoint.run(walk.sentence))
    steps = lessons()[walk.lesson].steps
    test = open_page(MAIN, lang=walk.language)
    page, parameters = steps[0].page, {"model": walk.model, "src": walk.sentence, "lesson": f"{walk.lesson}.1"}
    for n, step in enumerate(steps, 1):
        since = len(told)
        go(test, page, parameters | {"lang": walk.language})
        right = n % 2 == 1
        given = answer_of(pose(step, case), right=right)
        posed = pose(step, Case(checkpoint=checkpoint, trace=case.trace, given=given))
        reveal, rows = plain(walk.said(posed.reveal)).encode(), covered(walk.lesson, n, case, posed)
        before = told[since:]
        assert plain(walk.said(posed.question)).encode() in b"".join(before), n
        assert reveal not in b"".join(before), n
        assert not [row for row in rows if sent_of(before, row)], n
        answer(test, **{"choice" if step.ask.form == "choice" else "typed": given})
        assert posed.is_right(given) == right, n
        for text in (posed.reveal, posed.misled(given) or posed.reveal):
            assert plain(walk.said(text)).encode() in b"".join(told), n
        assert not rows or [row for row in rows if sent_of(told, row)], n
        links = {str(label): there for label, there in ways(test).items()}
        if n < len(steps):
            page, parameters = links[walk.said(NEXT)]
            assert parameters["lesson"] == f"{walk.lesson}.{n + 1}"
    assert walk.said(ALL) in links
