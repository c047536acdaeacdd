"""Many draws in the background: the same as in the foreground, cancelled within a step, and others go first."""

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


def jobs_of(runner, **more):
    return Draws(lambda: runner, **more)


@pytest.fixture
def jobs():
    return jobs_of(ModelRunner())


def wanted(checkpoint, n=20, visitor="me", **more):
    query = checkpoint.query("ba lo mi ta", max_new=4, decoding=Sampling(temperature=1.2))
    return SamplingRequest(visitor, query, n, 5)


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


def test_another_visitor_goes_first_meanwhile_and_cancels_for_himself_only(checkpoint, held):
    reached, go_on = held
    runner = ModelRunner()
    jobs = jobs_of(runner)
    job = jobs.start(wanted(checkpoint), checkpoint)
    assert reached.wait(SECONDS)
    found = []
    query = checkpoint.query("ba lo")
    other = threading.Thread(target=lambda: found.append(runner.trace(checkpoint, query)))
    other.start()
    while not runner.is_busy or len(runner._under_way) < 2:
        pass
    before = len(job.seen.so_far)
    go_on.set()
    other.join(SECONDS)
    assert found[0].query == query
    assert before == 3
    assert jobs.find(wanted(checkpoint, visitor="you")) is None
    assert over(job).state == "done"


def test_a_failure_is_said(checkpoint, jobs):
    asked = wanted(checkpoint)
    bad = SamplingRequest("me", checkpoint.query("ba", decoding=Sampling(), forced=(9_999,)), 20, 0)
    found = over(jobs.start(bad, checkpoint))
    assert found.state == "failed"
    assert "9,999" in str(found.problem) or "9999" in str(found.problem)
    assert over(jobs.start(asked, checkpoint)).state == "done"


def test_too_many_at_once_are_refused(checkpoint, held):
    reached, go_on = held
    jobs = jobs_of(ModelRunner(), most=1)
    job = jobs.start(wanted(checkpoint), checkpoint)
    assert reached.wait(SECONDS)
    with pytest.raises(BusyError):
        jobs.start(wanted(checkpoint, visitor="you"), checkpoint)
    go_on.set()
    assert over(job).state == "done"
    jobs.start(wanted(checkpoint, visitor="you"), checkpoint)
    assert jobs.find(wanted(checkpoint)) is None
