"""Temperature, top-k and top-p are shown as sampling applies them, with how unsure a step was."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from transformer import Sampling, run
from transformer.analysis.sampling_stages import entropy_of_best, entropy_of_smoothed, other_share, reshaped, spread
from transformer.runs.distribution import sampling_distribution


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
