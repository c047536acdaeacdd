import pytest
import torch
import torch.nn.functional as F

from tests.transformer.tiny import tiny_config
from transformer.model.feed_forward import FeedForward
from transformer.model.layers import Residual
from transformer.model.norms import make_norm


def double(x):
    return 2 * x


def test_the_norm_is_its_formula():
    norm = make_norm(tiny_config(norm_eps=0.01)).double()
    x = torch.randn(2, 3, 12, dtype=torch.float64)
    centred = x - x.mean(dim=-1, keepdim=True)
    expected = centred / (centred.pow(2).mean(dim=-1, keepdim=True) + 0.01).sqrt()
    assert torch.allclose(norm(x), expected, atol=1e-12)
    assert make_norm(tiny_config(bias=False)).bias is None


@pytest.mark.parametrize("place", ["pre", "post"])
def test_where_the_norm_stands(place):
    residual = Residual(tiny_config(norm=place)).eval()
    x = torch.randn(2, 3, 12)
    expected = x + 2 * residual.norm(x) if place == "pre" else residual.norm(3 * x)
    assert torch.allclose(residual(x, double), expected, atol=1e-6)


@pytest.mark.parametrize("name", ["relu", "gelu"])
def test_feed_forward_is_two_maps_with_a_non_linearity_between(name):
    ffn = FeedForward(tiny_config(activation=name))
    x = torch.randn(2, 3, 12)
    function = {"relu": F.relu, "gelu": F.gelu}[name]
    hidden = function(x @ ffn.up_proj.weight.T + ffn.up_proj.bias)
    expected = hidden @ ffn.down_proj.weight.T + ffn.down_proj.bias
    assert torch.allclose(ffn(x), expected, atol=1e-6)


def test_each_token_is_fed_forward_by_itself():
    ffn = FeedForward(tiny_config()).double()
    x = torch.randn(2, 3, 12, dtype=torch.float64)
    assert torch.allclose(ffn(x)[1, 2], ffn(x[1:, 2:])[0, 0], atol=1e-14)


def test_dropout_acts_on_a_sub_layers_output_only():
    residual = Residual(tiny_config(dropout=0.5)).train()
    x = torch.randn(4, 50, 12)
    torch.manual_seed(0)
    added = residual(x, torch.ones_like) - x
    assert set(added.round(decimals=4).unique().tolist()) == {0.0, 2.0}
