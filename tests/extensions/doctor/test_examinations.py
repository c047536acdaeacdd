"""Examinations are never in the way of who waits for a model, and one that goes wrong is a finding, not a hang.

That they run in their order, are shared and are stopped is in `tests/glassformer/server/test_jobs.py`.
"""

import threading
import time
from dataclasses import replace

import pytest

from glassformer.extensions.doctor import examinations as module
from glassformer.extensions.doctor.examinations import ExaminationRequest, Examinations
from glassformer.extensions.doctor.library.context import DoctorTest
from glassformer.extensions.doctor.library.findings import DoctorTestResult
from glassformer.server.model_runner import BusyError
from tests.glassformer.waiting import until
from transformer.analysis.losses import Samples
from transformer.i18n import say

SECONDS = 120.0


def made(name, measure):
    return DoctorTest("wiring", say("The test"), name=name, look=measure)


def well(patient):
    return DoctorTestResult(verdict="well", said=say("All is well."))


class Gate:
    """A test that stands still until it is let go."""

    def __init__(self):
        self.reached, self.opened, self.begun = threading.Event(), threading.Event(), []

    def __call__(self, patient):
        self.begun.append(patient.seed)
        self.reached.set()
        while not self.opened.is_set():
            patient.pause()
            time.sleep(0.001)
        return well(patient)


def over(examinations, asked, visitor="a"):
    """What becomes of an examination."""
    return examinations.look(asked, visitor, patience=SECONDS)


@pytest.fixture
def gate():
    found = Gate()
    yield found
    found.opened.set()


def idle():
    return False


def test_too_many_are_refused_in_a_sentence(reverse, gate):
    examinations = Examinations(is_busy=idle, tests=[made("gate", gate)], most_waiting=2)
    for seed in range(2):
        examinations.examine(ExaminationRequest.of(reverse, seed=seed), reverse, "a")
    with pytest.raises(BusyError, match="2 examinations are waiting"):
        examinations.examine(ExaminationRequest.of(reverse, seed=2), reverse, "b")
    assert examinations.examine(ExaminationRequest.of(reverse, seed=1), reverse, "b").is_under_way, (
        "one that is there has room"
    )


def test_a_test_that_raises_is_not_testable_and_the_others_go_on(reverse, caplog, monkeypatch):
    def raises(patient):
        raise ZeroDivisionError("private/path")

    examinations = Examinations(is_busy=idle, tests=[made("raises", raises), made("after", well)])
    asked = ExaminationRequest.of(reverse)
    examinations.examine(asked, reverse, "a")
    first, second = over(examinations, asked).result.findings
    assert (first.verdict, second.verdict) == ("not_applicable", "well")
    assert "private" not in first.measured.said
    assert "ZeroDivisionError" in caplog.text
    monkeypatch.setattr(module, "MOST_SECONDS", -1.0)  # what takes too long says what it did not test
    asked = ExaminationRequest.of(reverse, seed=1)
    examinations.examine(asked, reverse, "a")
    assert all("was not tested" in one.measured.said for one in over(examinations, asked).result.findings)


def test_it_waits_while_somebody_waits_for_the_model(reverse):
    busy = threading.Event()
    busy.set()
    examinations = Examinations(is_busy=busy.is_set, tests=[made("one", well)])
    asked = ExaminationRequest.of(reverse)
    examinations.examine(asked, reverse, "a")
    until(lambda: examinations.look(asked, "a").so_far)
    time.sleep(0.1)
    assert not examinations.look(asked, "a").so_far.findings
    busy.clear()
    assert over(examinations, asked).state == "done"


def test_a_model_that_was_put_away_meanwhile_is_a_failure_not_a_wait_for_ever(reverse, gate):
    class Put:
        """Stands for a checkpoint that nothing else holds."""

    examinations = Examinations(is_busy=idle, tests=[made("gate", gate)])
    examinations.examine(ExaminationRequest.of(reverse), reverse, "a")
    assert gate.reached.wait(SECONDS)
    asked = ExaminationRequest("gone", "0", ())
    examinations.examine(asked, Put(), "a")
    gate.opened.set()
    assert over(examinations, asked).state == "failed"


def test_another_name_card_text_seed_or_loss_is_another_examination(reverse):
    one = ExaminationRequest.of(reverse)
    others = [
        ExaminationRequest.of(reverse, seed=1),
        ExaminationRequest.of(reverse, Samples(("ab",))),
        ExaminationRequest.of(reverse, reported=1.0),
        ExaminationRequest.of(replace(reverse, name="b")),
        ExaminationRequest.of(replace(reverse, card=replace(reverse.card, examples=("ab",)))),
    ]
    assert len({one, *others}) == 6
    assert ExaminationRequest.of(reverse) == one


def test_when_the_process_ends_so_does_the_thread(reverse, gate):
    examinations = Examinations(is_busy=idle, tests=[made("gate", gate)])
    asked = [ExaminationRequest.of(reverse, seed=seed) for seed in range(2)]
    for one in asked:
        examinations.examine(one, reverse, "a")
    assert gate.reached.wait(SECONDS)
    examinations.end(SECONDS)
    assert [examinations.look(one, "a") for one in asked] == [None, None]
    assert gate.begun == [0]
