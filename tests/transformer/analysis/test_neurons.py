"""What is measured of feed-forward neurons are sums written out, and the model's own logits."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.transformer.tiny import random_ids, tiny_model
from transformer.analysis import neurons
from transformer.model.taps import Recorder, tap_of


@given(st.integers(1, 6), st.integers(1, 40), st.integers(0, 99), st.sampled_from([0, 0.01, 100, np.nan]))
def test_a_histogram_counts_every_number_once(n_tokens, width, seed, size):
    values = (size * np.random.default_rng(seed).normal(size=(n_tokens, width))).astype(np.float32)
    found = neurons.histogram(values, n_tokens - 1)
    for counted in (found.everywhere, found.here):
        assert counted.sum() == pytest.approx(0.0 if np.isnan(size) else 1.0)
    assert 2 <= len(found.edges) <= neurons.N_BINS + 3
    if size > 0:
        assert np.abs(found.edges).min() < 1e-9 * size
        middle = len(found.edges) // 2
        low, high = found.edges[middle - 1 : middle + 1]
        inside = ((low <= values) & (values < high)).sum()
        assert found.everywhere[middle - 1] * values.size == pytest.approx(inside, abs=1.01)  # the last bin is closed


def test_the_direct_effect_of_an_early_layer_passes_every_norm_after_it():
    model, recorder = tiny_model(norm="post", final_norm=False), Recorder(("decoder.*",))
    model(random_ids(1, 6), random_ids(1, 5), tap=tap_of(recorder))
    found = {site: value[0].numpy() for site, value in recorder.values.items()}
    neuron, token, layers = 7, 2, model.decoder.layers
    parts = [(0, "ffn"), *((after, part) for after in (1, 2) for part in ("self_attn", "cross_attn", "ffn"))]
    vector = layers[0].ffn.down_proj.weight[:, neuron]
    for layer, part in parts:
        norm = getattr(layers[layer], f"{part}_residual").norm
        whole = torch.tensor(found[f"decoder.{layer}.{part}.residual"][token])
        vector = norm.weight * (vector - vector.mean()) / torch.sqrt(whole.var(correction=0) + norm.eps)
    expected = model.output_weight @ vector
    effect = neurons.direct_effect(model, 0, neuron, found, token=token)
    np.testing.assert_allclose(effect, expected - expected.mean(), atol=1e-10)


@pytest.mark.parametrize(("size", "n_raised", "n_lowered"), [(30, 4, 4), (5, 3, 2), (1, 1, 0)])
def test_the_strongest_are_in_one_list_each(size, n_raised, n_lowered):
    effect = np.random.default_rng(0).normal(size=size)
    found, order = neurons.strongest(effect, 4), np.argsort(-effect).tolist()
    assert (found.raised.tolist(), found.lowered.tolist()) == (order[:n_raised], order[::-1][:n_lowered])
    np.testing.assert_array_equal(found.raised_by, effect[found.raised])
    np.testing.assert_array_equal(found.lowered_by, effect[found.lowered])


def test_the_most_active_come_first_and_after_a_relu_only_0_is_silent():
    activation = np.array([[0.0, 5.0, 2.9, 0.0, 3.0], [4.0, 0.0, 2.9, 0.5, 0.0]])
    assert neurons.most_active(activation[0], 3).tolist() == [1, 4, 2]
    assert neurons.most_active_anywhere(activation, 3).tolist() == [1, 4, 0]
    near = np.array([0.0, -0.009, 0.011])
    assert neurons.silent(near, "relu").tolist() == [True, False, False]
    assert neurons.silent(near, "gelu").tolist() == [True, True, False]
    assert neurons.curve("relu", near)[1].tolist() == [0, 0, 1]
