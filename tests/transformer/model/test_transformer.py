"""The model is torch's own Transformer, and a call leaves it as it was."""

import pytest
import torch
from torch import nn

from tests.transformer.tiny import joined, padded_source, random_ids, target_ids, tiny_config, tiny_model
from transformer.model.cache import KVCache
from transformer.model.taps import Recorder, Replacer, tap_of
from transformer.model.transformer import Transformer

EVERYTHING = ("*",)


def attention_parameters(prefix, attention, bias):
    """One attention under the names of torch's own."""
    for kind in ("weight", "bias") if bias else ("weight",):
        yield f"{prefix}.in_proj_{kind}", joined(attention, kind)
        yield f"{prefix}.out_proj.{kind}", getattr(attention.out_proj, kind)


def layer_parameters(prefix, layer, bias):
    residuals = [layer.self_attn_residual, layer.ffn_residual]
    yield from attention_parameters(f"{prefix}.self_attn", layer.self_attn, bias)
    if hasattr(layer, "cross_attn"):
        yield from attention_parameters(f"{prefix}.multihead_attn", layer.cross_attn, bias)
        residuals.insert(1, layer.cross_attn_residual)
    modules = {"linear1": layer.ffn.up_proj, "linear2": layer.ffn.down_proj}
    modules |= {f"norm{i}": residual.norm for i, residual in enumerate(residuals, start=1)}
    for name, module in modules.items():
        yield from ((f"{prefix}.{name}.{kind}", value) for kind, value in module.named_parameters())


def reference(model: Transformer) -> nn.Transformer:
    """torch's own Transformer with the same parameters."""
    config = model.config
    torchs = nn.Transformer(
        config.d_model,
        config.n_heads,
        config.n_encoder_layers,
        config.n_decoder_layers,
        config.d_ff,
        dropout=0.0,
        activation=config.activation,
        layer_norm_eps=config.norm_eps,
        batch_first=True,
        norm_first=config.norm == "pre",
        bias=config.bias,
        dtype=torch.float64,
    )
    state = {}
    for name in ("encoder", "decoder"):
        stack = getattr(model, name)
        for i, layer in enumerate(stack.layers):
            state |= dict(layer_parameters(f"{name}.layers.{i}", layer, config.bias))
        if config.final_norm:
            state |= {f"{name}.norm.{kind}": value for kind, value in stack.final_norm.named_parameters()}
        else:
            getattr(torchs, name).norm = None
    torchs.load_state_dict(state)
    return torchs.train()  # in evaluation mode it leaves its own equations for a faster path


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")  # a faster path of torch's that is not wanted here
@pytest.mark.parametrize(
    ("norm", "activation", "bias", "final_norm"),
    [
        ("pre", "relu", True, True),
        ("pre", "gelu", False, False),
        ("post", "gelu", True, False),
        ("post", "relu", False, True),
    ],
)
def test_the_model_equals_torchs_own(norm, activation, bias, final_norm):
    model = tiny_model(
        norm=norm, activation=activation, bias=bias, final_norm=final_norm, output_bias=bias, norm_eps=1e-3
    )
    src, tgt = padded_source(), target_ids()
    padding = src == 0
    embedded = [
        table[ids] * 12**0.5 + side.embedding.positions.table[: ids.size(1)]
        for ids, table, side in ((src, model.src_table, model.encoder), (tgt, model.target_table, model.decoder))
    ]
    hidden = reference(model)(
        *embedded,
        tgt_mask=torch.ones(5, 5).triu(diagonal=1).bool(),
        src_key_padding_mask=padding,
        memory_key_padding_mask=padding,
    )
    expected = hidden @ model.tgt_table.T + (model.output_bias if bias else 0.0)
    assert torch.allclose(model(src, tgt), expected, rtol=0, atol=1e-10)
    tapped = model(src, tgt, tap=tap_of(Recorder(EVERYTHING)))
    assert torch.allclose(tapped, expected, rtol=0, atol=1e-10)


def test_a_source_of_nothing_but_padding_gives_numbers():
    for tap in (tap_of(), tap_of(Recorder(EVERYTHING))):
        assert tiny_model()(torch.zeros(1, 4, dtype=torch.long), target_ids()[:1], tap=tap).isfinite().all()


def test_a_model_that_starts_with_its_padding_id_reads_its_start():
    """Marian's models do; the start must not be hidden as padding would be."""
    model, src = tiny_model(decoder_start_id=0), padded_source()
    tgt = target_ids()
    tgt[:, 0] = 0
    assert model.target_mask(tgt)[..., 0].all()
    expected = tiny_model()  # the same parameters; id 2 is given the vector of id 0
    expected.tgt_table[2] = expected.tgt_table[0]
    hidden = model.decode(tgt, model.encode(src), model.source_mask(src))
    other = expected.decode(target_ids(), expected.encode(src), expected.source_mask(src))
    assert torch.allclose(hidden, other, atol=1e-12)


def test_a_call_leaves_the_model_as_it_was():
    model, src, tgt = tiny_model(), padded_source(), target_ids()
    attributes = {name: dict(vars(module)) for name, module in model.named_modules()}
    values = {name: tensor.clone() for name, tensor in (*model.named_parameters(), *model.named_buffers())}
    tap = tap_of(Recorder(EVERYTHING), Replacer({"*.weights": torch.zeros_like}))
    model(src, tgt, tap=tap)
    model.decode(tgt[:, :1], model.encode(src), model.source_mask(src), cache=KVCache(3), tap=tap)
    for name, module in model.named_modules():
        now = vars(module)
        assert now.keys() == attributes[name].keys()
        assert all(now[key] is value for key, value in attributes[name].items()), name
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        assert torch.equal(tensor, values[name]), name


def test_first_values_are_of_a_sane_size():
    torch.manual_seed(0)
    model = Transformer(tiny_config(d_model=64, n_heads=4, src_vocab_size=200, tgt_vocab_size=200))
    assert float(model.src_table.detach().norm(dim=1).mean()) == pytest.approx(1.0, abs=0.1)
    logits = model.eval()(random_ids(4, 8), random_ids(4, 8))
    assert 0.3 < float(logits.detach().std()) < 3.0
    assert all(bool((p == 0).all()) for name, p in model.named_parameters() if name.endswith("proj.bias"))
