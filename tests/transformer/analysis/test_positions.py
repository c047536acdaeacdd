"""A table of positions is measured term by term, and what turns or biases do to scores as the model does it."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.transformer.tiny import DECODER, random_ids, tiny_config, tiny_model
from transformer.analysis import positions as study
from transformer.errors import QueryError
from transformer.model.attention_features import Rotary
from transformer.model.attention_positions import StackOrder
from transformer.model.positions import sinusoidal_table
from transformer.model.rotary import rotate, rotation
from transformer.model.taps import Recorder, tap_of


def random_table(n, d, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


@given(st.integers(3, 40), st.integers(1, 33), st.integers(0, 5000))
def test_the_formula_is_the_papers_for_odd_and_even_widths(n, d, first):
    angles = [[p / 10_000 ** (2 * (j // 2) / d) for j in range(d)] for p in range(first, first + n)]
    expected = [[math.cos(a) if j % 2 else math.sin(a) for j, a in enumerate(row)] for row in angles]
    np.testing.assert_allclose(study.formula(n, d, first=first), expected, atol=1e-9)
    np.testing.assert_allclose(study.wavelengths(d), [2 * math.pi * 10_000 ** (2 * i / d) for i in range(-(-d // 2))])


def test_the_difference_from_the_formula_is_that_of_the_worst_value():
    table = sinusoidal_table(2500, 6).numpy().astype(np.float64)
    assert study.difference_from_formula(table) < 1e-6
    table[2400, 5] += 0.25
    assert study.difference_from_formula(table) == pytest.approx(0.25)


def test_similarity_is_the_dot_product_the_cosine_has_no_lengths_and_by_distance_counts_every_pair_once():
    table = random_table(9, 5)
    table[4] = 0
    dots = [[sum(p * q) for q in table] for p in table]
    lengths = np.outer(*[np.linalg.norm(table, axis=1)] * 2)
    np.testing.assert_allclose(study.similarity(table), dots, atol=1e-12)
    np.testing.assert_allclose(study.similarity(table, cosine=True), dots / np.where(lengths, lengths, 1), atol=1e-12)
    found = study.by_distance(np.array([[5.0, 1, 2], [1, 6, 4], [2, 4, 7]]))
    np.testing.assert_allclose([found.mean, found.low, found.high], [[6, 2.5, 2], [5, 1, 2], [7, 4, 2]])
    assert found.spread == 3


def test_the_rotation_is_the_matrix_of_two_by_two_blocks():
    table, k, d = random_table(6, 7), 3, 7
    matrix = np.zeros((6, 6))
    for i in range(3):
        cos, sin = (turn(k / 10_000 ** (2 * i / d)) for turn in (math.cos, math.sin))
        matrix[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = [[cos, sin], [-sin, cos]]
    expected = table[:, :6] @ matrix.T
    np.testing.assert_allclose(study.rotate(table, k), expected)
    np.testing.assert_allclose(study.rotation_errors(table, k), np.abs(expected[:-k] - table[k:, :6]).max(axis=1))
    assert study.rotation_errors(study.formula(40, 7), k).max() < 1e-6
    assert not study.rotation_errors(study.formula(5, 1), 1).any()  # a lone sine has nothing to turn with


def test_errors_of_a_linear_map_are_what_torch_finds_too():
    table, k = random_table(40, 5, seed=2), 4
    fit = study.fit_shift(table, k)
    inputs, outputs = torch.tensor(table[:-k]), torch.tensor(table[k:])
    made = inputs @ torch.linalg.lstsq(inputs[::2], outputs[::2]).solution
    rest = outputs[1::2]
    np.testing.assert_allclose(fit.predicted, made.numpy(), atol=1e-9)
    assert fit.fitted_error == pytest.approx(float((made - outputs)[::2].norm() / outputs[::2].norm()))
    assert fit.held_out_error == pytest.approx(float((made - outputs)[1::2].norm() / rest.norm()))
    assert fit.constant_error == pytest.approx(float((outputs[::2].mean(0) - rest).norm() / rest.norm()))
    for shift in (0, -1, 9, 100):
        with pytest.raises(ValueError, match="1 to 8"):
            study.fit_shift(random_table(10, 4), shift)


KINDS = {
    "plain": {},
    "a share": {"rotary": Rotary(share=0.5)},
    "two bases": {"rotary": Rotary(base=1e6, local_base=1e4), "windows": (3, 0, 2), "unplaced_layers": (1,)},
    "linear": {"rotary": Rotary(scaling="linear", factor=4.0)},
    "llama3": {"rotary": Rotary(scaling="llama3", factor=8.0, original_len=32, fast=4.0)},
    "yarn": {"rotary": Rotary(scaling="yarn", factor=4.0, original_len=32)},
}


def turnings(kind):
    config = tiny_config(**DECODER, positions="rotary", **({"d_head": 8} | KINDS[kind]))
    return config, study.turnings(config, "decoder")


@pytest.mark.parametrize("kind", KINDS)
def test_every_layer_turns_as_is_shown(kind):
    config, found = turnings(kind)
    orders = StackOrder(config, n_layers=3, causal=True)(9, offset=0, like=torch.zeros(1, dtype=torch.float64))
    assert sorted(layer for one in found for layer in one.layers) == [0, 1, 2]
    for one, layer in [(some, layer) for some in found for layer in some.layers]:
        if (turn := orders[layer].rotation) is None:
            assert one.n_pairs == 0
        else:
            np.testing.assert_allclose(turn[0].numpy(), np.cos(one.angles(9)) * one.size, atol=1e-12)
            np.testing.assert_allclose(turn[1].numpy(), np.sin(one.angles(9)) * one.size, atol=1e-12)


def test_layers_that_turn_alike_are_named_together_and_an_even_product_is_that_of_equal_numbers():
    _, (near, nothing) = turnings("two bases")
    assert (near.layers, near.base, near.window) == ((0, 2), 1e4, True)
    assert (nothing.layers, nothing.n_pairs, nothing.window) == ((1,), 0, False)
    _, (one,) = turnings("llama3")
    assert (one.layers, one.scaled) == ((0, 1, 2), True)
    assert (one.speeds <= one.unscaled).all()
    np.testing.assert_allclose(one.wavelengths * one.speeds, 2 * np.pi)
    with pytest.raises(ValueError, match="no rotary positions"):
        study.turnings(tiny_config(**DECODER), "decoder")
    unit, distances = np.ones(8) / np.sqrt(8), np.arange(-30, 31)
    found = study.even_product(one.speeds, distances)
    assert found[30] == found.max() == 1
    np.testing.assert_allclose(found, study.product_by_distance(unit, unit, one.speeds, distances))


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_the_curve_of_a_product_is_what_the_model_computes(share):
    """Query and key of the model are moved to every distance that the text has, and the model's scores are there."""
    model = tiny_model(**DECODER, positions="rotary", d_head=8, rotary=Rotary(base=100.0, share=share))
    sites = [f"decoder.1.self_attn.{name}" for name in ("queries", "keys", "projected_keys")]
    recorder = Recorder(sites)
    model.decode(random_ids(1, 7), tap=tap_of(recorder))
    q, k, unturned = (recorder.values[site][0, 2] for site in sites)
    (one,) = study.turnings(model.config, "decoder")
    for place in range(7):
        turned = rotate(unturned[None, None, 2:3], rotation(one.speeds, one.size, torch.tensor([place]), like=k))
        curve = study.product_by_distance(q[5].numpy(), k[2].numpy(), one.speeds, np.array([place - 2]))
        np.testing.assert_allclose(curve, q[5] @ turned[0, 0, 0], atol=1e-12)
    assert study.moved_together(q[5].numpy(), k[2].numpy(), one, distance=-5, n=200) < 1e-5


RELATIVE = {"positions": "relative", "relative_buckets": 8, "relative_distance": 12}
ALIBI = {**DECODER, "positions": "alibi"}


@pytest.mark.parametrize("stack", ["decoder", "encoder"])
@pytest.mark.parametrize("features", [{"positions": "alibi"}, RELATIVE])
def test_the_curve_of_a_bias_is_what_the_model_adds_to_its_scores(stack, features):
    model, n = tiny_model(**features), 15
    recorder = Recorder(["*.self_attn.bias", "*.self_attn.scores", "*.self_attn.queries", "*.self_attn.keys"])
    model(random_ids(1, n), random_ids(1, n), tap=tap_of(recorder))
    found = study.distance_bias(model, stack, most=n - 1)
    place = {int(distance): column for column, distance in enumerate(found.distances)}
    cells = [(q, k) for q in range(n) for k in range(q + 1 if stack == "decoder" else n)]
    for layer in range(2):
        added, scores, q, k = (
            recorder.values[f"{stack}.{layer}.self_attn.{name}"][0].numpy()
            for name in ("bias", "scores", "queries", "keys")
        )
        expected = [added[:, query, key] for query, key in cells]
        np.testing.assert_allclose([found.bias[:, place[k - q]] for q, k in cells], expected, atol=1e-6)
        np.testing.assert_allclose(scores - q @ k.swapaxes(-1, -2) / q.shape[-1] ** 0.5, added, atol=1e-6)


def test_alibi_falls_in_straight_lines_and_buckets_in_steps():
    alibi = study.distance_bias(tiny_model(**ALIBI), "decoder", most=9)
    np.testing.assert_allclose(alibi.bias, alibi.slopes[:, None] * alibi.distances, atol=1e-6)
    steps = study.distance_bias(tiny_model(**RELATIVE), "encoder", most=9)
    changes = steps.distances[:-1][np.abs(np.diff(steps.bias, axis=1)).max(axis=0) > 1e-9] + 0.5
    assert (alibi.edges(), steps.edges()) == ((), tuple(changes))
    with pytest.raises(ValueError, match="add nothing to scores"):
        study.distance_bias(tiny_model(), "decoder", most=3)
    with pytest.raises(QueryError, match="no encoder"):
        study.distance_bias(tiny_model(**ALIBI), "encoder", most=3)


def test_spreads_tell_content_from_distance():
    n, bias = 6, -np.abs(np.subtract.outer(np.arange(6.0), np.arange(6.0)))[None, None]
    causal = np.tri(n, dtype=bool)
    only_bias = study.spreads(np.broadcast_to(bias, (2, 3, n, n)).copy(), bias, causal)
    np.testing.assert_allclose(only_bias.content, 0, atol=1e-12)
    np.testing.assert_allclose(only_bias.bias, np.mean([np.std(bias[0, 0, row, : row + 1]) for row in range(1, n)]))
    content = random_table(36, 6).reshape(2, 3, n, n)
    both = study.spreads(content + bias, bias, np.stack([causal, np.ones((n, n), bool)]))
    np.testing.assert_allclose(both.content[1, 2], np.std(content[1, 2], axis=-1).mean())
    assert study.spreads(content[..., :1, :1], bias[..., :1, :1], causal[:1, :1]).content.max() == 0
