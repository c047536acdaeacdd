"""Given maps are drawn whole, or one of them, with their labels and what their mask closes."""

import numpy as np
import pytest

from glassformer import charts
from transformer import given_maps

TOKENS = ["a", "b", "c"]


@pytest.fixture
def attention():
    weights = np.tril(np.random.default_rng(0).random((2, 4, 3, 3)))
    return given_maps(decoder=weights / weights.sum(-1, keepdims=True), target=TOKENS).of("decoder")


def drawn(figure):
    return np.array(next(trace for trace in figure.data if trace.type == "heatmap").z, float)


def test_all_heads_of_all_layers_are_one_figure(attention):
    figure = charts.all_heads(attention)
    assert drawn(figure).shape == (2 * 3, 4 * 3)
    assert "2 layers × 4 heads" in figure.layout.title.text
    assert "mine" in charts.all_heads(attention, title="mine").layout.title.text


def test_one_map_is_a_head_or_a_mean_of_them_and_says_which(attention):
    for layer, head, expected, name in (
        (1, 2, attention.weights[1, 2], "layer 2, head 3"),
        (1, None, attention.weights[1].mean(0), "layer 2, mean of its 4 heads"),
        (None, None, attention.weights.mean((0, 1)), "mean of all 2 layers × 4 heads"),
    ):
        figure = charts.one_map(attention, layer=layer, head=head)
        lower = np.tril_indices(3)
        np.testing.assert_allclose(drawn(figure)[lower], expected[lower], atol=1e-6)
        assert np.isnan(drawn(figure)[0, 1])  # closed by the mask: not 0
        assert name in figure.layout.title.text
    for wrong in ({"layer": 2}, {"layer": 0, "head": 4}, {"layer": -1}, {"head": 0}):
        with pytest.raises(ValueError, match="give"):
            charts.one_map(attention, **wrong)
