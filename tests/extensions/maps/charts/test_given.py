"""Given maps are drawn whole, or one of them, with their labels and what their mask closes."""

import numpy as np
import pytest

from glassformer import charts
from glassformer.charts.grid import pooled
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


def test_attributions_have_zero_in_the_middle_of_their_colours():
    numbers = np.random.default_rng(1).normal(size=(2, 2, 3, 3)).astype(np.float32)
    signed = given_maps(encoder=numbers, source=TOKENS, signed=True).of("encoder")
    most = float(np.abs(numbers).max())
    whole = charts.all_heads(signed)
    (cells,) = [trace for trace in whole.data if trace.type == "heatmap"]
    rows = numbers.transpose(0, 2, 1, 3).reshape(6, 6)
    np.testing.assert_allclose(np.array(cells.z, float), (rows / most + 1) / 2, atol=0.5 / 250 + 1e-6)
    told = np.array([[cell[2] for cell in row] for row in cells.customdata], float)
    np.testing.assert_allclose(told, rows, atol=most / 250 + 1e-6)
    assert cells.colorbar.ticktext[0] == f"{most:.3g}"
    one = next(trace for trace in charts.one_map(signed, layer=0, head=1).data if trace.type == "heatmap")
    assert one.zmin == -one.zmax
    assert np.array(one.z, float).min() < 0


def test_merged_cells_of_attributions_are_those_furthest_from_zero():
    numbers = np.array([[1.0, -3.0, 0.5], [0.0, 2.0, -0.1], [0.0, 0.0, 0.0]], np.float32)[None, None]
    allowed = np.ones((3, 3), bool)
    allowed[0, 1] = False
    merged = pooled(numbers, allowed, 2, signed=True)
    np.testing.assert_array_equal(merged.weights[0, 0], [[2.0, 0.5], [0.0, 0.0]])
    np.testing.assert_array_equal(pooled(numbers, allowed | True, 2, signed=True).weights[0, 0, 0], [-3.0, 0.5])


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
