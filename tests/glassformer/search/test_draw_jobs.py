"""Many draws in the background are those of their seeds, and can be cancelled within a step and begun again."""

import threading

import pytest

from glassformer.search import search_panels
from glassformer.search.search_panels import Draws, SamplingRequest
from glassformer.server.model_runner import BusyError, ModelRunner
from transformer import Sampling, load
from transformer.analysis.sampled_outputs import draws

SECONDS = 30


@pytest.fixture(scope="module")
def checkpoint(checkpoint_folder):
    return load(checkpoint_folder)


@pytest.fixture
def jobs():
    return Draws(ModelRunner)


def wanted(checkpoint, visitor="me"):
    query = checkpoint.query("ba lo mi ta", max_new=4, decoding=Sampling(temperature=1.2))
    return SamplingRequest(visitor, query, 20, 5)


def over(job):
    assert job.over.wait(SECONDS)
    return job.seen


def test_all_draws_come_and_are_those_of_their_seeds(checkpoint, jobs):
    asked = wanted(checkpoint)
    found = over(jobs.start(asked, checkpoint))
    assert found.state == "done"
    assert found.so_far == tuple(draws(checkpoint, asked.query, range(5, 25)))
    assert jobs.start(asked, checkpoint) is jobs.find(asked)  # nothing is drawn twice


@pytest.fixture
def held(monkeypatch):
    """Draws stop in front of the fourth until they may go on."""
    reached, go_on = threading.Event(), threading.Event()
    own = draws

    def slow(checkpoint, query, seeds, *, pause):
        for n, one in enumerate(own(checkpoint, query, seeds, pause=pause)):
            if n == 3:
                reached.set()
                assert go_on.wait(SECONDS)
                pause()
            yield one

    monkeypatch.setattr(search_panels, "draws", slow)
    return reached, go_on


def test_a_cancelled_job_keeps_what_is_there_and_can_begin_again(checkpoint, jobs, held):
    reached, go_on = held
    asked = wanted(checkpoint)
    job = jobs.start(asked, checkpoint)
    assert reached.wait(SECONDS)
    assert job.seen.state == "running"
    jobs.withdraw(asked)
    go_on.set()
    found = over(job)
    assert found.state == "cancelled"
    assert len(found.so_far) == 3
    again = jobs.start(asked, checkpoint)
    assert again is not job
    assert over(again).state == "done"


def test_a_failure_is_said_and_too_many_at_once_are_refused(checkpoint, held):
    reached, go_on = held
    jobs = Draws(ModelRunner, most=1)
    bad = SamplingRequest("me", checkpoint.query("ba", decoding=Sampling(), forced=(9_999,)), 20, 0)
    found = over(jobs.start(bad, checkpoint))
    assert (found.state, "9999" in str(found.problem).replace(",", "")) == ("failed", True)
    job = jobs.start(wanted(checkpoint), checkpoint)
    assert reached.wait(SECONDS)
    with pytest.raises(BusyError):
        jobs.start(wanted(checkpoint, visitor="you"), checkpoint)
    go_on.set()
    assert over(job).state == "done"
