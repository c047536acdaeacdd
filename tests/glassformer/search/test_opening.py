"""A click on a search's tree opens the output that it stands for, and many draws are those of their seeds."""

from types import SimpleNamespace

import pytest

from glassformer.search.search_panels import Draws, SamplingRequest
from glassformer.search.tree_panel import opens
from glassformer.server.model_runner import ModelRunner
from glassformer.state import session
from tests.glassformer.waiting import WAIT
from tests.transformer.tiny import tiny_config
from transformer import Beam, Greedy, Sampling, load
from transformer.analysis.sampled_outputs import draws
from transformer.analysis.search_tree import search_tree


@pytest.fixture(scope="module")
def found(checkpoint_folder):
    checkpoint = load(checkpoint_folder)
    query = checkpoint.query("ba lo mi ta", max_new=6, decoding=Beam(size=3))
    return search_tree(checkpoint, query), query


@pytest.fixture
def opened(monkeypatch):
    """What was shown."""
    shown = []
    monkeypatch.setattr(session, "go_to_output", lambda *what: shown.append(what))
    return shown


def page(query, decoding):
    trace = SimpleNamespace(query=SimpleNamespace(decoding=decoding, forced=query.forced))
    return SimpleNamespace(slot="", trace=trace, checkpoint=SimpleNamespace(config=tiny_config()))


def test_a_mark_on_the_way_to_a_result_opens_the_best_such_result_there_and_what_was_dropped_is_forced(found, opened):
    tree, query = found
    go = opens(page(query, query.decoding), tree)
    ways = tree.ways_to(tree.results)
    assert set(ways.values()) == set(range(len(tree.results)))
    there = {place: ("", (), result) for place, result in ways.items()}
    there |= {place: ("", tree.ids(place), 0) for one in tree.rounds for place in one.dropped}
    for place, shown in there.items():
        go(place)
        assert opened.pop() == (*shown, tree.nodes[place].step)


def test_where_the_run_decodes_otherwise_all_is_forced_and_a_place_that_there_is_not_opens_nothing(found, opened):
    tree, query = found
    opens(page(query, query.decoding), tree)(len(tree.nodes))
    assert not opened
    opens(page(query, Greedy()), tree)(tree.results[1])
    assert opened == [("", tree.ids(tree.results[1]), 0, tree.nodes[tree.results[1]].step)]


def test_all_draws_come_and_are_those_of_their_seeds(checkpoint_folder):
    checkpoint, jobs = load(checkpoint_folder), Draws(ModelRunner)
    query = checkpoint.query("ba lo mi ta", max_new=4, decoding=Sampling(temperature=1.2))
    asked = SamplingRequest("me", query, 20, 5)
    job = jobs.start(asked, checkpoint)
    assert job.over.wait(WAIT)
    assert job.seen.state == "done"
    assert job.seen.so_far == tuple(draws(checkpoint, query, range(5, 25)))
    assert jobs.start(asked, checkpoint) is jobs.find(asked) is job
