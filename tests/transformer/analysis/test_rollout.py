"""Rollout mixes output and source as one square matrix does, and its rows sum to 1."""

import numpy as np
import pytest

from transformer.analysis.rollout import cross_rollout, self_rollout


def maps_of(*shape, causal=False):
    weights = np.random.default_rng(sum(shape)).random((shape[0], 3, *shape[1:])) + 0.01
    weights *= np.tri(*shape[1:]) if causal else 1
    return weights / weights.sum(axis=-1, keepdims=True)


def test_source_and_output_together_sum_to_1_as_one_joint_mixing():
    """The definition once more, over output and source side by side as one square matrix."""
    encoder, decoder, cross = maps_of(2, 4, 4), maps_of(3, 5, 5, causal=True), maps_of(3, 5, 4)
    source = np.eye(4)
    for layer in encoder:
        source = (layer.mean(axis=0) + np.eye(4)) / 2 @ source
    joint = np.hstack([np.eye(5), np.zeros((5, 4))])  # shares of [output, source]
    for layer, reading in zip(decoder, cross, strict=True):
        joint = (layer.mean(axis=0) + np.eye(5)) / 2 @ joint
        joint = joint / 2 + np.hstack([np.zeros((5, 5)), reading.mean(axis=0) @ source]) / 2
    np.testing.assert_allclose(joint.sum(axis=1), 1)
    np.testing.assert_allclose(cross_rollout(encoder, decoder, cross), joint[:, 5:] / (1 - 0.5**3))
    np.testing.assert_allclose(self_rollout(decoder), joint[:, :5] / 0.5**3)
    np.testing.assert_allclose(self_rollout(maps_of(6, 8, 8).astype(np.float16)).sum(axis=1), 1, atol=1e-12)
    for shape in ((0, 2, 3, 3), (1, 2, 3, 4), (2, 3, 3)):
        with pytest.raises(ValueError, match="rollout needs self-attention"):
            self_rollout(np.ones(shape))
    with pytest.raises(ValueError, match="give as many"):
        cross_rollout(maps_of(1, 3, 3), maps_of(2, 4, 4), maps_of(1, 4, 3))
