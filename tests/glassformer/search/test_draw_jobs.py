"""Many draws in the background are those of their seeds, and nothing is drawn twice."""

from glassformer.search.search_panels import Draws, SamplingRequest
from glassformer.server.model_runner import ModelRunner
from tests.glassformer.waiting import WAIT
from transformer import Sampling, load
from transformer.analysis.sampled_outputs import draws


def test_all_draws_come_and_are_those_of_their_seeds(checkpoint_folder):
    checkpoint, jobs = load(checkpoint_folder), Draws(ModelRunner)
    query = checkpoint.query("ba lo mi ta", max_new=4, decoding=Sampling(temperature=1.2))
    asked = SamplingRequest("me", query, 20, 5)
    job = jobs.start(asked, checkpoint)
    assert job.over.wait(WAIT)
    assert job.seen.state == "done"
    assert job.seen.so_far == tuple(draws(checkpoint, query, range(5, 25)))
    assert jobs.start(asked, checkpoint) is jobs.find(asked) is job
