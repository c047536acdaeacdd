"""Each of many draws is a run of its own, and an output's probability is what its steps say."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.transformer.made_up_changes import SilentHead
from tests.transformer.runs.test_wrapping import changed
from transformer import Greedy, Sampling, run
from transformer.analysis.sampled_outputs import draws, interval, log_drawn, outcomes
from transformer.errors import QueryError
from transformer.runs.query import MOST_TOGETHER

pytestmark = pytest.mark.usefixtures("one_thread")

TEXT = "ba lo mi ta"
HOW = [Sampling(), Sampling(temperature=0.4, top_k=6), Sampling(temperature=1.6, top_p=0.7)]
COUNTS = [MOST_TOGETHER + 2, 8, 8]  # more than are decoded together


@pytest.fixture(scope="module", params=["pair", "decoder"])
def checkpoint(request):
    return request.getfixturevalue(request.param)


def query(checkpoint, how, **settings):
    return checkpoint.query(TEXT, max_new=5, decoding=how, **settings)


def with_seed(how, seed):
    return Sampling(temperature=how.temperature, top_k=how.top_k, top_p=how.top_p, seed=seed)


@pytest.mark.parametrize(("how", "n"), list(zip(HOW, COUNTS, strict=True)), ids=str)
def test_each_draw_is_the_run_with_its_seed(checkpoint, how, n):
    found = list(draws(checkpoint, query(checkpoint, how), range(n)))
    assert [one.seed for one in found] == list(range(n))
    for one in found:
        trace = run(checkpoint, query(checkpoint, with_seed(how, one.seed)))
        assert (one.ids, one.text) == (trace.tgt_ids, trace.output_text)
        assert one.ended == (trace.stop_reason == "end of sentence")
        assert one.log_prob == pytest.approx(trace.log_prob, abs=1e-5)
        assert one.log_drawn == pytest.approx(log_drawn(trace), abs=1e-5)


@pytest.mark.parametrize("settings", [{"forced": (7, 5)}, {"interventions": (SilentHead("decoder", 0, 0),)}], ids=str)
def test_forced_and_changed_draws_are_those_of_runs(checkpoint, settings):
    pauses = []
    for one in draws(checkpoint, query(checkpoint, HOW[0], **settings), range(9), pause=lambda: pauses.append(1)):
        trace = run(checkpoint, query(checkpoint, with_seed(HOW[0], one.seed), **settings))
        assert one.ids == trace.tgt_ids
        n_forced = len(settings.get("forced", ()))
        own = [trace.log_probs[t, i] for t, i in enumerate(one.ids)][n_forced:]
        assert one.log_prob == pytest.approx(sum(map(float, own)), abs=1e-5)
    assert pauses
    with pytest.raises(QueryError, match="but the decoding is Greedy"):
        list(draws(checkpoint, query(checkpoint, Greedy()), [0]))


def test_outcomes_count_all_draws_and_the_probabilities_of_all_outputs_make_one(checkpoint):
    """With three pieces to draw from and two to write, every output there is can be listed."""
    config = checkpoint.config
    end = config.eos_id
    others = [i for i in range(config.tgt_vocab_size) if i not in (5, 7, end)]
    two = changed(checkpoint, banned_ids=tuple(others))
    found = list(draws(two, two.query(TEXT, max_new=2, decoding=Sampling(temperature=5.0)), range(200)))
    every = outcomes(found)
    assert {one.ids for one in every} == {(end,), *((a, b) for a in (5, 7) for b in (5, 7, end))}
    assert sum(one.drawn for one in every) == pytest.approx(1, abs=1e-5)
    assert sum(one.frequency for one in every) == pytest.approx(1)
    assert sorted(seed for one in every for seed in one.seeds) == list(range(200))
    assert [len(one.seeds) for one in every] == sorted((len(one.seeds) for one in every), reverse=True)
    assert all(one.drawn > one.own for one in every)  # the model gives the banned pieces something
    # Five standard deviations: chance goes as far once in two million.
    assert all(abs(one.frequency - one.drawn) < 5 * (one.drawn * (1 - one.drawn) / 200) ** 0.5 for one in every)


@given(st.integers(0, 200), st.integers(1, 200))
def test_the_interval_holds_the_share_and_is_where_the_score_is_1_96(count, whole):
    count = min(count, whole)
    low, high = interval(count, whole)
    assert 0 <= low <= count / whole + 1e-12
    assert count / whole - 1e-12 <= high <= 1
    for end in (low, high):
        if 1e-9 < end < 1 - 1e-9:  # Wilson's definition: the share lies 1.96 standard errors away
            assert abs(count / whole - end) == pytest.approx(1.959964 * np.sqrt(end * (1 - end) / whole), rel=1e-6)
