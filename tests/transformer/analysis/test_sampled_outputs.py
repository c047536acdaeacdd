"""Each of many draws is a run of its own, and an output's probability is what its steps say."""

from dataclasses import replace

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


@pytest.fixture(scope="module", params=["pair", "decoder"])
def checkpoint(request):
    return request.getfixturevalue(request.param)


@pytest.mark.parametrize(
    ("how", "n", "settings"),
    [
        (Sampling(), MOST_TOGETHER + 2, {}),  # more than are decoded together
        (Sampling(temperature=0.4, top_k=6), 8, {}),
        (Sampling(temperature=1.6, top_p=0.7), 8, {"forced": (7, 5)}),
        (Sampling(), 9, {"interventions": (SilentHead("decoder", 0, 0),)}),
    ],
    ids=str,
)
def test_each_draw_is_the_run_with_its_seed_also_where_it_is_forced_or_changed(checkpoint, how, n, settings):
    query, pauses = checkpoint.query(TEXT, max_new=5, decoding=how, **settings), []
    found = list(draws(checkpoint, query, range(n), pause=lambda: pauses.append(1)))
    assert [one.seed for one in found] == list(range(n))
    for one in found:
        trace = run(checkpoint, replace(query, decoding=replace(how, seed=one.seed)))
        assert (one.ids, one.text) == (trace.tgt_ids, trace.output_text)
        assert one.ended == (trace.stop_reason == "end of sentence")
        own = [float(trace.log_probs[t, i]) for t, i in enumerate(one.ids)][len(settings.get("forced", ())) :]
        assert one.log_prob == pytest.approx(sum(own), abs=1e-5)
        assert one.log_drawn == pytest.approx(log_drawn(trace), abs=1e-5)
    assert pauses
    with pytest.raises(QueryError, match="but the decoding is Greedy"):
        list(draws(checkpoint, replace(query, decoding=Greedy()), [0]))


def test_outcomes_count_all_draws_and_the_probabilities_of_all_outputs_make_one(checkpoint):
    """With three pieces to draw from and two to write, every output there is can be listed."""
    end = checkpoint.config.eos_id
    two = changed(checkpoint, banned_ids=tuple(set(range(checkpoint.config.tgt_vocab_size)) - {5, 7, end}))
    every = outcomes(list(draws(two, two.query(TEXT, max_new=2, decoding=Sampling(temperature=5.0)), range(200))))
    assert {one.ids for one in every} == {(end,), *((a, b) for a in (5, 7) for b in (5, 7, end))}
    assert sum(one.drawn for one in every) == pytest.approx(1, abs=1e-5)
    assert sum(one.frequency for one in every) == pytest.approx(1)
    assert sorted(seed for one in every for seed in one.seeds) == list(range(200))
    assert [len(one.seeds) for one in every] == sorted((len(one.seeds) for one in every), reverse=True)
    for one in every:
        assert one.drawn > one.own  # the model gives the banned pieces something
        # Five standard deviations: chance goes as far once in two million.
        assert abs(one.frequency - one.drawn) < 5 * (one.drawn * (1 - one.drawn) / 200) ** 0.5


@given(st.integers(0, 200), st.integers(1, 200))
def test_the_interval_holds_the_share_and_is_where_the_score_is_1_96(count, whole):
    share = min(count, whole) / whole
    low, high = interval(min(count, whole), whole)
    assert 0 <= low <= share + 1e-12
    assert share - 1e-12 <= high <= 1
    for end in (low, high):
        if 1e-9 < end < 1 - 1e-9:  # Wilson's definition: the share lies 1.96 standard errors away
            assert abs(share - end) == pytest.approx(1.959964 * (end * (1 - end) / whole) ** 0.5, rel=1e-6)
