"""What is measured of feed-forward neurons, against sums written out and against the model's own logits."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.transformer.tiny import random_ids, tiny_model
from transformer.analysis import neurons
from transformer.model.norms import LayerNorm
from transformer.model.taps import Recorder, tap_of

RANDOM = np.random.default_rng(0)


def recorded(model):
    """One sentence through the model: its sites without the batch axis, and its logits."""
    target = random_ids(1, 5, vocab=19, seed=1)
    target[:, 0] = 2
    recorder = Recorder(("decoder.*",))
    logits = model(random_ids(1, 6), target, tap=tap_of(recorder))[0].numpy()
    return {site: value[0].numpy() for site, value in recorder.values.items()}, logits


def centred(logits):
    return logits - logits.mean(-1, keepdims=True)


def test_after_a_relu_only_0_is_silent_and_after_a_gelu_what_is_near():
    values = np.array([[0.0, -0.0, 1e-9], [0.009, -0.009, 0.011]])
    assert neurons.silent(values, "relu").tolist() == [[True, True, False], [False, False, False]]
    assert neurons.silent(values, "gelu").tolist() == [[True, True, True], [True, True, False]]


@given(st.integers(1, 6), st.integers(1, 40), st.integers(0, 99), st.floats(0.01, 100))
def test_a_histogram_counts_every_number_once(n_tokens, width, seed, size):
    values = (size * np.random.default_rng(seed).normal(size=(n_tokens, width))).astype(np.float32)
    found = neurons.histogram(values, n_tokens - 1)
    assert found.everywhere.sum() == pytest.approx(1)
    assert found.here.sum() == pytest.approx(1)
    assert np.abs(found.edges).min() < 1e-9 * size
    assert found.edges[0] <= values.min() + 1e-5 * size
    assert found.edges[-1] >= values.max()
    assert 2 <= len(found.edges) <= neurons.N_BINS + 3
    middle = len(found.edges) // 2
    low, high = found.edges[middle - 1], found.edges[middle]
    inside = sum(low <= x < high for x in values.ravel().astype(float))
    assert found.everywhere[middle - 1] * values.size == pytest.approx(inside, abs=1.01)  # the last bin is closed


@pytest.mark.parametrize("values", [np.zeros((2, 3)), np.full((1, 4), 2.5), np.full((2, 2), np.nan)])
def test_a_histogram_of_one_number_or_none_has_bins(values):
    found = neurons.histogram(values.astype(np.float32), 0)
    assert len(found.edges) >= 2
    assert found.here.sum() == pytest.approx(np.isfinite(values[0]).mean())


def test_the_curves_are_the_functions_of_the_papers():
    x = np.array([-2.0, -0.5, 0.0, 0.75, 3.0])
    values, slopes = neurons.curve("relu", x)
    np.testing.assert_array_equal(values, [0, 0, 0, 0.75, 3])
    np.testing.assert_array_equal(slopes, [0, 0, 0, 1, 1])
    values, slopes = neurons.curve("gelu", x)
    phi = [0.5 * (1 + math.erf(point / math.sqrt(2))) for point in x]
    np.testing.assert_allclose(values, x * phi, atol=1e-12)
    density = np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)
    np.testing.assert_allclose(slopes, phi + x * density, atol=1e-12)


def test_the_most_active_come_first_and_columns_go_by_token():
    activation = np.array([[0.0, 5.0, 1.0, 0.0, 3.0], [4.0, 0.0, 2.0, 0.5, 0.0]])
    assert neurons.most_active(activation[0], 3).tolist() == [1, 4, 2]
    assert neurons.most_active_anywhere(activation, 4).tolist() == [1, 4, 0, 2]
    assert neurons.most_active(np.zeros(4), 2).tolist() == [0, 1]


@pytest.mark.parametrize(
    "changes", [{}, {"norm": "post", "final_norm": False}, {"tie_output": False}, {"norm": "post"}]
)
def test_in_the_last_layer_all_direct_effects_together_are_the_logits(changes):
    model = tiny_model(**changes)
    found, logits = recorded(model)
    layer, token = model.config.n_decoder_layers - 1, 3
    ffn = model.decoder.layers[layer].ffn
    active = found[f"decoder.{layer}.ffn.activation"][token]
    rest = found[f"decoder.{layer}.ffn.residual"][token] - ffn.down_proj.weight.numpy() @ active
    names = neurons.effect_sites(model.config, layer)
    last = model.decoder.layers[layer].ffn_residual.norm
    norms = ([last] if model.config.norm == "post" else []) + (
        [model.decoder.final_norm] if model.config.final_norm else []
    )
    assert len(names) == len(norms)
    shift = np.zeros(model.config.d_model)
    for norm, name in zip(norms, names, strict=True):
        rest = neurons.through_norm(norm, rest, found[name][token])
        shift = neurons.through_norm(norm, shift, found[name][token]) + norm.bias.numpy()
    total = centred(model.output_weight.numpy() @ (rest + shift))
    for neuron in range(model.config.d_ff):
        total = total + active[neuron] * neurons.direct_effect(model, layer, neuron, found, token=token)
    np.testing.assert_allclose(total, centred(logits[token]), atol=1e-9)


@pytest.mark.parametrize("changes", [{}, {"norm": "post", "final_norm": False}])
def test_the_direct_effect_of_an_early_layer_passes_every_norm_after_it(changes):
    model = tiny_model(**changes)
    found, _ = recorded(model)
    neuron, token = 7, 2
    vector = model.decoder.layers[0].ffn.down_proj.weight[:, neuron]
    norms = [(model.decoder.final_norm, "decoder.2.output")]
    if model.config.norm == "post":
        layers = model.decoder.layers
        norms = [(layers[0].ffn_residual.norm, "decoder.0.ffn.residual")]
        for after in (1, 2):
            for part in ("self_attn", "cross_attn", "ffn"):
                norms.append((getattr(layers[after], f"{part}_residual").norm, f"decoder.{after}.{part}.residual"))
    for norm, name in norms:
        whole = torch.tensor(found[name][token])
        deviation = torch.sqrt(((whole - whole.mean()) ** 2).mean() + norm.eps)
        vector = norm.weight * (vector - vector.mean()) / deviation
    expected = centred((model.output_weight @ vector).numpy())
    np.testing.assert_allclose(neurons.direct_effect(model, 0, neuron, found, token=token), expected, atol=1e-10)


def test_a_part_through_a_norm_and_the_rest_through_it_are_the_norm():
    norm = LayerNorm(6).double()
    with torch.no_grad():
        norm.weight.copy_(torch.tensor(RANDOM.normal(size=6)))
    norm.requires_grad_(False)
    part, rest = RANDOM.normal(size=(2, 6))
    whole = part + rest
    together = neurons.through_norm(norm, part, whole) + neurons.through_norm(norm, rest, whole)
    np.testing.assert_allclose(together, norm(torch.tensor(whole)).numpy(), atol=1e-12)


@pytest.mark.parametrize(("size", "n_raised", "n_lowered"), [(30, 4, 4), (5, 3, 2), (1, 1, 0)])
def test_the_strongest_are_in_one_list_each(size, n_raised, n_lowered):
    effect = RANDOM.normal(size=size)
    found = neurons.strongest(effect, 4)
    order = sorted(range(size), key=lambda i: -effect[i])
    assert found.raised.tolist() == order[:n_raised]
    assert found.lowered.tolist() == order[::-1][:n_lowered]
    np.testing.assert_array_equal(found.raised_by, effect[found.raised])
    np.testing.assert_array_equal(found.lowered_by, effect[found.lowered])
