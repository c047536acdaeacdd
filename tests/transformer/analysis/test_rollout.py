import numpy as np
import pytest

from transformer.analysis.rollout import cross_rollout, self_rollout


def maps_of(n_layers, n_queries, n_keys, *, causal=False, seed=0, n_heads=3):
    weights = np.random.default_rng(seed).random((n_layers, n_heads, n_queries, n_keys)) + 0.01
    weights *= np.tri(n_queries, n_keys) if causal else 1
    return weights / weights.sum(axis=-1, keepdims=True)


def identities(n_layers, n):
    return np.broadcast_to(np.eye(n), (n_layers, 2, n, n))


def test_self_rollout_is_the_product_of_half_attention_half_identity():
    maps = maps_of(2, 3, 3)
    first, second = (0.5 * maps[layer].mean(axis=0) + 0.5 * np.eye(3) for layer in range(2))
    np.testing.assert_allclose(self_rollout(maps), second @ first, atol=1e-12)
    assert not np.allclose(self_rollout(maps), first @ second)


def test_one_layer_that_looks_at_itself_only_changes_nothing():
    np.testing.assert_allclose(self_rollout(identities(1, 4)), np.eye(4))
    np.testing.assert_allclose(self_rollout(identities(5, 4)), np.eye(4))


def test_rows_sum_to_1():
    encoder, decoder, cross = maps_of(3, 5, 5), maps_of(4, 6, 6, causal=True), maps_of(4, 6, 5)
    np.testing.assert_allclose(self_rollout(decoder).sum(axis=1), 1)
    for depth in range(1, 5):
        np.testing.assert_allclose(cross_rollout(encoder, decoder[:depth], cross[:depth]).sum(axis=1), 1)


def test_what_cannot_see_the_future_cannot_after_any_layers():
    rolled = self_rollout(maps_of(4, 6, 6, causal=True))
    assert not np.triu(rolled, 1).any()
    assert (rolled[np.tril_indices(6)] > 0).all()


def test_later_rows_do_not_change_earlier_ones():
    encoder, decoder, cross = maps_of(2, 4, 4), maps_of(2, 6, 6, causal=True), maps_of(2, 6, 4)
    whole = cross_rollout(encoder, decoder, cross)
    np.testing.assert_allclose(cross_rollout(encoder, decoder[:, :, :3, :3], cross[:, :, :3]), whole[:3])


def test_where_tokens_do_not_mix_one_layer_of_cross_attention_is_its_mean():
    cross = maps_of(1, 4, 5)
    np.testing.assert_allclose(cross_rollout(identities(2, 5), identities(1, 4), cross), cross[0].mean(axis=0))


def test_source_and_output_together_sum_to_1_as_one_joint_mixing():
    """The definition once more, over output and source side by side as one square matrix."""
    encoder, decoder, cross = maps_of(2, 4, 4), maps_of(3, 5, 5, causal=True, seed=1), maps_of(3, 5, 4, seed=2)
    source = np.eye(4)
    for layer in encoder:
        source = (layer.mean(axis=0) + np.eye(4)) / 2 @ source
    joint = np.hstack([np.eye(5), np.zeros((5, 4))])  # shares of [output, source]
    for layer, reading in zip(decoder, cross, strict=True):
        joint = (layer.mean(axis=0) + np.eye(5)) / 2 @ joint
        joint = joint / 2 + np.hstack([np.zeros((5, 5)), reading.mean(axis=0) @ source]) / 2
    np.testing.assert_allclose(joint.sum(axis=1), 1)
    np.testing.assert_allclose(joint[:, 5:].sum(axis=1), 1 - 0.5**3)
    np.testing.assert_allclose(cross_rollout(encoder, decoder, cross), joint[:, 5:] / (1 - 0.5**3))
    np.testing.assert_allclose(self_rollout(decoder), joint[:, :5] / 0.5**3)


def test_rounded_weights_still_give_rows_of_1():
    maps = maps_of(6, 8, 8).astype(np.float16)
    np.testing.assert_allclose(self_rollout(maps).sum(axis=1), 1, atol=1e-12)


@pytest.mark.parametrize("shape", [(0, 2, 3, 3), (1, 2, 3, 4), (2, 3, 3)])
def test_what_is_no_stack_of_self_attention_is_refused(shape):
    with pytest.raises(ValueError, match="rollout needs self-attention"):
        self_rollout(np.ones(shape))


def test_layers_that_do_not_match_are_refused():
    with pytest.raises(ValueError, match="give as many"):
        cross_rollout(maps_of(1, 3, 3), maps_of(2, 4, 4), maps_of(1, 4, 3))
