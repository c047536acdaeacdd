"""Attention is seen whoever wrote it, with the weights of the code, its outputs and the model unchanged."""

import numpy as np
import pytest
import torch
from torch import nn

import transformer
from tests.extensions.capture.codes import ATTENTIONS, OF_ONE_TEXT, D, Kept, Layer, Translator

SRC = torch.tensor([[3, 5, 7, 2, 9], [4, 6, 2, 0, 0]])
TGT = torch.tensor([[1, 8, 4, 11], [1, 3, 0, 0]])


class OneStack(nn.Module):
    """Layers of self-attention under a causal mask."""

    def __init__(self, attention):
        super().__init__()
        self.embed, self.layers = nn.Embedding(23, D), nn.ModuleList(Layer(attention, False) for _ in range(2))

    def forward(self, ids):
        x, mask = self.embed(ids), torch.ones(ids.shape[1], ids.shape[1]).tril()[None, None]
        for layer in self.layers:
            x = layer(x, None, mask, None)
        return x


def kept_by(model):
    """What the code of each attention kept, in the order of the modules."""
    outer = [one for name, one in model.named_modules() if isinstance(one, Kept) and ".heads." not in name]
    return [one.kept.detach().numpy() for one in outer]


@pytest.mark.parametrize("attention", ATTENTIONS)
def test_weights_are_those_of_the_code(attention):
    torch.manual_seed(0)
    model = Translator(attention).eval()
    before = model(SRC, TGT)
    hooks = [len(one._forward_hooks) + len(one._forward_pre_hooks) for one in model.modules()]
    with transformer.capture(model) as seen:
        after = model(SRC, TGT)
    assert torch.equal(before, after)
    assert hooks == [len(one._forward_hooks) + len(one._forward_pre_hooks) for one in model.modules()]
    assert [one.kind for one in seen.attentions] == ["encoder", "encoder", "decoder", "cross", "decoder", "cross"]
    for found, own in zip(seen.attentions, kept_by(model), strict=True):
        assert np.abs(found.weights - own).max() < 1e-6
    maps = seen.maps(source=["a", "b", "c", "d", "e"], target=["w", "x", "y", "z"])
    assert maps.kinds == ("encoder", "decoder", "cross")
    assert maps.of("cross").queries == ("w", "x", "y", "z")
    assert not maps.mask("decoder")[0, 1]
    assert not seen.maps(item=1).mask("encoder")[:, 3:].any()


@pytest.mark.parametrize("attention", OF_ONE_TEXT)
def test_a_decoder_alone(attention):
    model = OneStack(attention).eval()
    with transformer.capture(model) as seen, torch.no_grad():
        model(SRC)
    assert [one.kind for one in seen.attentions] == ["decoder", "decoder"]
    for found, own in zip(seen.attentions, kept_by(model), strict=True):
        assert np.abs(found.weights - own).max() < 1e-6
