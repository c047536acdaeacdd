"""Attention is seen whoever wrote it, with the weights of the code, its outputs and the model unchanged."""

import numpy as np
import pytest
import torch
from torch import nn

import transformer
from tests.extensions.capture.codes import ATTENTIONS, OF_ONE_TEXT, Annotated, D, Fused, H, Kept, OneStack, Translator
from transformer.errors import MapsError

SRC = torch.tensor([[3, 5, 7, 2, 9], [4, 6, 2, 0, 0]])
TGT = torch.tensor([[1, 8, 4, 11], [1, 3, 0, 0]])


def check_kept(seen, model):
    """Each attention has what its code kept, in the order of the modules."""
    outer = [one for name, one in model.named_modules() if isinstance(one, Kept) and ".heads." not in name]
    for found, own in zip(seen.attentions, outer, strict=True):
        assert np.abs(found.weights - own.kept.detach().numpy()).max() < 1e-6


def kinds_of(seen):
    return [one.kind for one in seen.attentions]


BOTH = ["encoder", "encoder", "decoder", "cross", "decoder", "cross"]


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
    assert kinds_of(seen) == BOTH
    check_kept(seen, model)
    maps = seen.maps(source=["a", "b", "c", "d", "e"], target=["w", "x", "y", "z"])
    assert maps.kinds == ("encoder", "decoder", "cross")
    assert maps.of("cross").queries == ("w", "x", "y", "z")
    assert not maps.mask("decoder")[0, 1]
    assert not seen.maps(item=1).mask("encoder")[:, 3:].any()


@pytest.mark.parametrize("n_tokens", [H, 5])  # as many queries as heads, or more
@pytest.mark.parametrize("attention", OF_ONE_TEXT)
def test_a_decoder_alone(attention, n_tokens):
    model = OneStack(attention).eval()
    with transformer.capture(model) as seen, torch.no_grad():
        model(SRC[:, :n_tokens])
    assert kinds_of(seen) == ["decoder", "decoder"]
    check_kept(seen, model)


class Experts(nn.Module):
    """A softmax that chooses among experts, and one over classes: no attention."""

    def __init__(self):
        super().__init__()
        self.gate, self.experts, self.out = nn.Linear(D, 5), nn.Parameter(torch.randn(5, D, D)), nn.Linear(D, 7)

    def forward(self, x):
        each = torch.einsum("btd,edf->btef", x, self.experts)
        return self.out(torch.einsum("bte,btef->btf", self.gate(x).softmax(-1), each)).softmax(-1)


def test_other_softmaxes_are_no_attention():
    with transformer.capture(Experts()) as seen:
        pass
    assert str(seen) == "No attention was seen."
    model = Experts()
    with transformer.capture(model) as seen:
        model(torch.randn(2, 3, D))
    assert seen.attentions == []
    with pytest.raises(MapsError, match="no attention was seen"):
        seen.maps()


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("training", [False, True])
def test_torchs_own_encoder_also_where_it_is_one_operation(norm_first, padded, training):
    layer = nn.TransformerEncoderLayer(D, 4, 32, dropout=0.0, batch_first=True, norm_first=norm_first)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=not norm_first).train(training)
    x = torch.randn(2, 5, D)
    closed = torch.tensor([[False] * 5, [False] * 3 + [True] * 2]) if padded else None
    with torch.no_grad():
        before = model(x, src_key_padding_mask=closed)
        with transformer.capture(model) as seen:
            after = model(x, src_key_padding_mask=closed)
        assert torch.equal(before, after)
        first = model.layers[0]
        read = first.norm1(x) if norm_first else x
        own = first.self_attn(read, read, read, key_padding_mask=closed, average_attn_weights=False)[1]
    assert kinds_of(seen) == ["encoder", "encoder"]
    rows = slice(None) if not padded else slice(3)  # of padding nothing is computed where that is left out
    assert np.abs(seen.attentions[0].weights[:, :, rows] - own.numpy()[:, :, rows]).max() < 1e-6
    if padded:
        assert seen.attentions[0].closed[1, :, :3, 3:].all()


def test_torchs_own_transformer():
    model = nn.Transformer(D, 4, 2, 2, 32, batch_first=True).eval()
    mask = nn.Transformer.generate_square_subsequent_mask(4)
    with transformer.capture(model) as seen:
        model(torch.randn(2, 6, D), torch.randn(2, 4, D), tgt_mask=mask)
    assert kinds_of(seen) == BOTH
    assert [one.weights.shape[1:] for one in seen.of("cross")] == [(4, 4, 6)] * 2
    assert seen.of("decoder")[0].closed[0, 0, 0].tolist() == [False, True, True, True]


@pytest.mark.parametrize("how", ["eager", "sdpa"])
def test_a_model_of_transformers(how):
    library = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = library.MarianConfig(
        vocab_size=31, d_model=D, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=20, decoder_ffn_dim=20, max_position_embeddings=16, pad_token_id=0,
        decoder_start_token_id=0, attn_implementation=how,
    )  # fmt: skip
    model = library.MarianMTModel(config).eval()
    ids = {"input_ids": SRC, "attention_mask": (SRC != 0).long(), "decoder_input_ids": TGT}
    with transformer.capture(model) as seen, torch.no_grad():
        model(**ids)
    model.set_attn_implementation("eager")
    with torch.no_grad():
        own = model(**ids, output_attentions=True)
    for kind in ("encoder", "decoder", "cross"):
        assert len(seen.of(kind)) == 2
        for one, their in zip(seen.of(kind), own[f"{kind}_attentions"], strict=True):
            assert np.abs(one.weights[0] - their[0].numpy()).max() < 1e-6


def test_each_call_of_a_decoding_is_kept():
    model = Translator(ATTENTIONS[0]).eval()
    with transformer.capture(model) as seen, torch.no_grad():
        for n in range(1, 4):
            model(SRC[:1], TGT[:1, :n])
    assert [one.weights.shape[2] for one in seen.attentions if one.kind == "cross"] == [1, 1, 2, 2, 3, 3]
    assert seen.maps().maps("cross").shape == (2, 4, 3, 5)
    assert seen.maps(call=0).maps("cross").shape == (2, 4, 1, 5)


def test_what_was_compiled_is_said():
    model = Translator(ATTENTIONS[0]).eval()
    with transformer.capture(torch.compile(model, backend="eager")) as seen:
        pass
    assert "compiled" in str(seen)


def test_after_an_error_nothing_is_left():
    model = Translator(ATTENTIONS[0]).eval()
    with pytest.raises(IndexError), transformer.capture(model):
        model(SRC + 100, TGT)
    with transformer.capture(model) as seen:
        model(SRC, TGT)
    assert [one.path for one in seen.attentions][:1] == ["a.0.self_attention"]


@pytest.mark.parametrize("attention", [Annotated, Fused])
def test_one_tensor_may_be_both_texts(attention):
    model = Translator(attention).eval()
    with transformer.capture(model) as seen, torch.no_grad():
        model(SRC, SRC)
    assert kinds_of(seen) == BOTH
