"""What answers a question is in nothing that a page sends until it is answered, through whole lessons."""

import base64
import re
from dataclasses import replace

import numpy as np
import pytest
from streamlit.runtime.forward_msg_queue import ForwardMsgQueue

from glassformer.components.packing import FINE_LEVELS
from glassformer.extensions.lessons.library import Case, lessons, pose
from glassformer.extensions.lessons.library.subjects.weights_questions import walk_of
from glassformer.runs.loading import SHIPPED
from glassformer.shared.drawing import plain
from tests.browser.lesson_walks import WALKS, answer_of
from tests.extensions.classroom.pages.test_lessons import answer, ways
from tests.pages.conftest import MAIN, PAGES, ROOT, check
from transformer import load
from transformer.analysis.mask_checks import check_causality, check_padding
from transformer.analysis.one_weight import without_parameters
from transformer.i18n import say

NEXT, ALL = say("Next", about="lesson"), say("All lessons")
DIGITS = 7  # the beginning of however many digits a number is written with
NEAR = 1e-4  # a share of a number: another thread's sums differ in the last bits, and a step of 1/65,535 rounds


def sent_of(frames, row):
    """Whether frames hold two neighbours of a row of numbers side by side, or one of them with all its digits."""
    told, row = b"".join(frames), np.asarray(row, dtype=np.float64)
    telling = (np.abs(row) >= 0.001) & (row != np.round(row))  # zeros and ones say nothing
    if any(f"{value:.8f}"[:DIGITS].encode() in told for value in row[telling]):
        return True
    with np.errstate(all="ignore"):  # letters that are no numbers may be any
        for found in rows_in(told):
            alike = (np.abs(found[:, None] - row) <= NEAR * np.abs(row)) & telling  # [found, row]
            if (alike[:-1, :-1] & alike[1:, 1:]).any():
                return True
    return False


def rows_in(told):
    """Every row of numbers that stands in what was sent, as text or as bytes in base64; some are steps of shares."""
    yield np.array([float(one) for one in re.findall(rb"-?[0-9]+[.][0-9]{4,}", told)])
    for letters in re.findall(rb"[A-Za-z0-9+/]{12,}", told):  # without the signs that fill up
        whole = base64.b64decode(letters + b"=" * (-len(letters) % 4)) if len(letters) % 4 != 1 else b""
        for kind, unit in (("<f8", 1), ("<f4", 1), ("<u2", FINE_LEVELS)):
            n_bytes = len(whole) // np.dtype(kind).itemsize * np.dtype(kind).itemsize
            yield np.frombuffer(whole[:n_bytes], dtype=kind).astype(np.float64) / unit


# ---------------------------------------------------------------- rows of numbers that each step covers


def _one_piece(n, case):
    trace = case.trace
    written = [float(np.exp(trace.log_probs[t, i])) for t, i in enumerate(trace.tgt_ids)]
    return [[float(one) for one in trace.entropies()], written] if n <= 3 else []


def _one_weight(n, case):
    if n < 5 or n > 6:
        found = walk_of(case)
        return [found.weights, found.dots]
    kind, ids = case.picked["kind"], case.trace.src_ids
    if n == 5:
        return [case.trace.maps(kind)[case.picked["layer"] - 1, case.picked["head"] - 1].ravel()]
    unlearned, _ = without_parameters(case.checkpoint.model, kind, ids, ids, case.trace.mask(kind))
    return [case.trace.maps(kind).mean(axis=(0, 1)).ravel(), unlearned.ravel()]


def _masks(n, case):
    model, read, picked = case.checkpoint.model, (case.trace.src_ids, case.trace.read_ids), case.picked
    if n in (2, 3):
        at, other = picked["place"] - 1, picked["other_id"]
        return [check_causality(model, read[:1], read[1:], sentence=0, place=at, piece_id=other).taken]
    if n in (4, 5):
        return [check_padding(model, *read, n_pads=picked["pads"]).source.taken]
    if n in (6, 7):
        return [case.trace.maps("decoder")[0, picked["head"] - 1, picked["query"] - 1]]
    return []


COVERED = {"one-piece": _one_piece, "one-weight": _one_weight, "masks": _masks}


# ---------------------------------------------------------------- walks


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
    test.switch_page(str(PAGES[page].relative_to(ROOT)))
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
    steps, test = lessons()[walk.lesson].steps, open_page(MAIN, lang=walk.language)
    page, parameters = steps[0].page, {"model": walk.model, "src": walk.sentence, "lesson": f"{walk.lesson}.1"}
    for n, step in enumerate(steps, 1):
        since, right = len(told), n % 2 == 1
        go(test, page, parameters | {"lang": walk.language})
        given = answer_of(pose(step, case), right=right)
        posed = pose(step, replace(case, given=given))
        rows = COVERED[walk.lesson](n, replace(case, picked=posed.picked))
        question, reveal, misled = (
            plain(walk.said(text)).encode()
            for text in (posed.question, posed.reveal, posed.misled(given) or posed.reveal)
        )
        before = told[since:]
        assert question in b"".join(before), n
        assert reveal not in b"".join(before), n
        assert not any(sent_of(before, row) for row in rows), n
        answer(test, **{"choice" if step.ask.form == "choice" else "typed": given})
        assert posed.is_right(given) == right, n
        after = told[since:]
        assert all(text in b"".join(after) for text in (reveal, misled)), n
        assert not rows or any(sent_of(after, row) for row in rows), n
        links = {str(label): there for label, there in ways(test).items()}
        if n < len(steps):
            page, parameters = links[walk.said(NEXT)]
            assert parameters["lesson"] == f"{walk.lesson}.{n + 1}"
    assert walk.said(ALL) in links
