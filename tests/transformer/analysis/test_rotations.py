"""Rotary positions: what is shown is what the model turns by, and a product depends on the distance alone."""

import numpy as np
import pytest
import torch

from tests.transformer.tiny import DECODER, random_ids, tiny_config, tiny_model
from transformer.analysis.rotations import even_product, moved_together, product_by_distance, turnings
from transformer.model.attention_features import Rotary
from transformer.model.attention_positions import StackOrder
from transformer.model.taps import Recorder, tap_of

LONG = Rotary(scaling="llama3", factor=8.0, original_len=32, fast=4.0)
KINDS = {
    "plain": {},
    "a share": {"rotary": Rotary(share=0.5)},
    "two bases": {"rotary": Rotary(base=1e6, local_base=1e4), "windows": (3, 0, 2), "unplaced_layers": (1,)},
    "linear": {"rotary": Rotary(scaling="linear", factor=4.0)},
    "llama3": {"rotary": LONG},
    "yarn": {"rotary": Rotary(scaling="yarn", factor=4.0, original_len=32)},
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_layer_turns_as_is_shown(kind):
    config = tiny_config(**DECODER, positions="rotary", **({"d_head": 8} | KINDS[kind]))
    orders = StackOrder(config, n_layers=3, causal=True)(9, offset=0, like=torch.zeros(1, dtype=torch.float64))
    found = turnings(config, "decoder")
    assert sorted(layer for one in found for layer in one.layers) == [0, 1, 2]
    for one in found:
        for layer in one.layers:
            turn = orders[layer].rotation
            if turn is None:
                assert one.n_pairs == 0
                continue
            angles = one.angles(9)
            np.testing.assert_allclose(turn[0].numpy(), np.cos(angles) * one.size, atol=1e-12)
            np.testing.assert_allclose(turn[1].numpy(), np.sin(angles) * one.size, atol=1e-12)


def test_layers_that_turn_alike_are_named_together():
    config = tiny_config(**DECODER, positions="rotary", d_head=8, **KINDS["two bases"])
    near, nothing = turnings(config, "decoder")
    assert (near.layers, near.base, near.window) == ((0, 2), 1e4, True)
    assert (nothing.layers, nothing.n_pairs, nothing.window) == ((1,), 0, False)
    (one,) = turnings(tiny_config(**DECODER, positions="rotary", d_head=8), "decoder")
    assert one.layers == (0, 1, 2)
    assert not one.scaled


def test_a_scaling_slows_pairs_down_and_the_wavelength_says_so():
    for kind, slowed in (("linear", 4), ("llama3", 3), ("yarn", 3)):
        config = tiny_config(**DECODER, positions="rotary", d_head=8, **KINDS[kind])
        (one,) = turnings(config, "decoder")
        assert one.scaled
        assert (one.speeds <= one.unscaled).all()
        assert (one.speeds < one.unscaled).sum() >= slowed - 1
        np.testing.assert_allclose(one.wavelengths * one.speeds, 2 * np.pi)


def test_only_rotary_positions_turn():
    with pytest.raises(ValueError, match="no rotary positions"):
        turnings(tiny_config(**DECODER), "decoder")


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_the_curve_of_a_product_is_what_the_model_computes(share):
    """Query and key of the model are moved to every distance that the text has, and the model's scores are there."""
    model = tiny_model(**DECODER, positions="rotary", d_head=8, rotary=Rotary(base=100.0, share=share))
    recorder = Recorder(["decoder.1.self_attn.queries", "decoder.1.self_attn.keys"])
    ids = random_ids(1, 7)
    model.decode(ids, tap=tap_of(recorder))
    q, k = (recorder.values[f"decoder.1.self_attn.{name}"][0, 2].numpy() for name in ("queries", "keys"))
    (one,) = turnings(model.config, "decoder")
    cos, sin = np.cos(one.angles(7)), np.sin(one.angles(7))
    n = one.n_pairs
    back = np.concatenate(  # the key of token 2 as it was before it was turned
        [k[2, :n] * cos[2] + k[2, n : 2 * n] * sin[2], k[2, n : 2 * n] * cos[2] - k[2, :n] * sin[2], k[2, 2 * n :]]
    )
    for place in range(7):
        first, second = back[:n], back[n : 2 * n]
        turned = np.concatenate(
            [first * cos[place] - second * sin[place], second * cos[place] + first * sin[place], back[2 * n :]]
        )
        curve = product_by_distance(q[5], k[2], one.speeds, np.array([place - 2]))
        np.testing.assert_allclose(curve, q[5] @ turned, atol=1e-12)
    assert product_by_distance(q[5], k[2], one.speeds, np.array(0)) == pytest.approx(q[5] @ k[2])


def test_a_product_depends_on_the_distance_alone():
    (one,) = turnings(tiny_config(**DECODER, positions="rotary", d_head=8), "decoder")
    q, k = np.random.default_rng(0).normal(size=(2, 8))
    for distance in (-5, 0, 3):
        assert moved_together(q, k, one, distance=distance, n=200) < 1e-5
    products = product_by_distance(q, k, one.speeds, np.arange(-20, 21))
    assert np.ptp(products) > 0.1  # and it does depend on that


def test_an_even_product_is_1_at_home_and_the_same_to_both_sides():
    (one,) = turnings(tiny_config(**DECODER, positions="rotary", d_head=8), "decoder")
    found = even_product(one.speeds, np.arange(-30, 31))
    assert found[30] == 1
    assert found.max() == 1
    np.testing.assert_allclose(found, found[::-1])
    unit = np.ones(8) / np.sqrt(8)
    np.testing.assert_allclose(found, product_by_distance(unit, unit, one.speeds, np.arange(-30, 31)))
