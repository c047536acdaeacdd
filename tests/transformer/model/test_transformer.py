"""The model is torch's own Transformer, and a call leaves it as it was."""

import pytest
import torch
from torch import nn

from tests.transformer.tiny import joined, padded_source, random_ids, target_ids, tiny_config, tiny_model
from transformer.model.cache import KVCache
from transformer.model.taps import Recorder, Replacer, tap_of
from transformer.model.transformer import Transformer

EVERYTHING = ("*",)


def parameters(name, stack, config):
    """The parameters of a stack under the names of torch's own."""
    for i, layer in enumerate(stack.layers):
        attentions = {"self_attn": layer.self_attn, "multihead_attn": getattr(layer, "cross_attn", None)}
        norms = [getattr(layer, f"{part}_residual", None) for part in ("self_attn", "cross_attn", "ffn")]
        modules = {f"norm{n}": one.norm for n, one in enumerate(filter(None, norms), start=1)}
        modules |= {"linear1": layer.ffn.up_proj, "linear2": layer.ffn.down_proj}
        for theirs, attention in attentions.items():
            for kind in ("weight", "bias")[: (1 + config.bias) * (attention is not None)]:
                yield f"{name}.layers.{i}.{theirs}.in_proj_{kind}", joined(attention, kind)
                modules[f"{theirs}.out_proj"] = attention.out_proj
        for theirs, module in modules.items():
            yield from ((f"{name}.layers.{i}.{theirs}.{kind}", value) for kind, value in module.named_parameters())
    if config.final_norm:
        yield from ((f"{name}.norm.{kind}", value) for kind, value in stack.final_norm.named_parameters())


def reference(model: Transformer) -> nn.Transformer:
    """torch's own Transformer with the same parameters."""
    c = model.config
    torchs = nn.Transformer(
        *(c.d_model, c.n_heads, c.n_encoder_layers, c.n_decoder_layers, c.d_ff),
        **{"dropout": 0.0, "activation": c.activation, "layer_norm_eps": c.norm_eps, "bias": c.bias},
        **{"batch_first": True, "norm_first": c.norm == "pre", "dtype": torch.float64},
    )
    for name in () if c.final_norm else ("encoder", "decoder"):
        getattr(torchs, name).norm = None
    stacks = {"encoder": model.encoder, "decoder": model.decoder}
    torchs.load_state_dict({name: one for stack in stacks.items() for name, one in parameters(*stack, c)})
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
    masks = {"src_key_padding_mask": padding, "memory_key_padding_mask": padding}
    hidden = reference(model)(*embedded, tgt_mask=torch.ones(5, 5).triu(diagonal=1).bool(), **masks)
    expected = hidden @ model.tgt_table.T + (model.output_bias if bias else 0.0)
    for tap in (tap_of(), tap_of(Recorder(EVERYTHING))):
        assert torch.allclose(model(src, tgt, tap=tap), expected, rtol=0, atol=1e-10)
        nothing = torch.zeros(1, 4, dtype=torch.long)  # a source of padding alone
        assert model(nothing, tgt[:1], tap=tap).isfinite().all()


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
        assert vars(module).keys() == attributes[name].keys()
        assert all(vars(module)[key] is value for key, value in attributes[name].items()), name
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        assert torch.equal(tensor, values[name]), name


def test_first_values_are_of_a_sane_size():
    torch.manual_seed(0)
    model = Transformer(tiny_config(d_model=64, n_heads=4, src_vocab_size=200, tgt_vocab_size=200))
    assert float(model.src_table.detach().norm(dim=1).mean()) == pytest.approx(1.0, abs=0.1)
    logits = model.eval()(random_ids(4, 8), random_ids(4, 8))
    assert 0.3 < float(logits.detach().std()) < 3.0
    assert all(bool((p == 0).all()) for name, p in model.named_parameters() if name.endswith("proj.bias"))
