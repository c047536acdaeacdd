"""Each of many draws is a run of its own, and temperature, top-k and top-p are shown as sampling applies them."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.transformer.made_up_changes import SilentHead
from tests.transformer.runs.test_wrapping import changed
from transformer import Greedy, Sampling, run
from transformer.analysis.sampled_outputs import draws, interval, log_drawn, outcomes
from transformer.errors import QueryError
from transformer.runs.distribution import (
    entropy_of_best,
    entropy_of_smoothed,
    other_share,
    reshaped,
    sampling_distribution,
    spread,
)
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


def test_what_is_drawn_from_is_that_of_the_run(checkpoint):
    how = Sampling(temperature=1.3, top_k=9, top_p=0.8, seed=2)
    trace = run(checkpoint, checkpoint.query("ba lo mi ta", max_new=6, decoding=how))
    for t in range(trace.n_steps):
        found = reshaped(trace.log_probs[t], trace.scores_at(t), trace.query.decoding)
        for one in trace.step(t).candidates:
            assert found.cut[one.id] == one.sampling_probability
            assert found.raw[one.id] == pytest.approx(one.probability)


@given(st.floats(0.05, 5.0), st.integers(0, 60), st.floats(0.01, 1.0), st.integers(0, 99))
def test_each_is_the_distribution_of_the_library_and_the_best_stays(temperature, k, p, seed):
    log_probs = (torch.randn(50, generator=torch.Generator().manual_seed(seed)) * 3).log_softmax(-1)
    found = reshaped(log_probs.numpy(), log_probs.numpy(), Sampling(temperature=temperature, top_k=k, top_p=p))
    for one, top_k, top_p in ((found.tempered, 0, 1.0), (found.by_k, k, 1.0), (found.cut, k, p)):
        expected = sampling_distribution(log_probs, Sampling(temperature=temperature, top_k=top_k, top_p=top_p))
        assert np.array_equal(one, expected.numpy())
        assert one[found.raw.argmax()] == one.max()


def test_a_spread_certain_and_even_and_the_tail_of_label_smoothing_which_misleads_the_entropy_only():
    found = spread(np.array([0.5, 0.25, 0.25, 0.0], np.float32))
    assert (found.entropy, found.left, found.best, found.top) == (1.5, 3, 0, 0.5)
    assert spread(np.array([0.0, 1.0], np.float32)).entropy == 0
    certain = np.where(np.arange(40) == 3, 0.0, -np.inf).astype(np.float32)[None]
    even = np.full((1, 40), -np.log(40), dtype=np.float32)
    for measure, most in ((other_share, 1 - 1 / 40), (entropy_of_best, np.log2(10))):
        assert str(measure(certain)[0]) == "0.0"
        assert measure(even) == pytest.approx(most, rel=1e-6)
    assert entropy_of_best(np.log([[0.5, 0.25, 0.25]])) == pytest.approx(1.5)  # fewer than ten
    probs = np.full((1, 5000), 0.1 / 5000)
    probs[0, 7] += 0.9
    entropy = -(probs * np.log2(probs)).sum()
    assert (entropy_of_smoothed(0.1, 5000), entropy_of_smoothed(0.0, 5000)) == (pytest.approx(entropy), 0.0)
    assert entropy_of_best(np.log(probs))[0] < 0.01 < entropy
    assert other_share(np.log(probs)) == pytest.approx(0.1, rel=1e-3)
