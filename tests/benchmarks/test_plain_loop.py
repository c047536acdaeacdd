"""The plain loop that training is compared with computes what our trainer computes, so that speeds are comparable."""

from dataclasses import replace

import pytest
import torch

from benchmarks.plain_loop import PlainTrainer, PlainTransformer
from benchmarks.training import CONFIG, RATE, batches
from glassformer.extensions.training.library.data import make_batch
from glassformer.extensions.training.library.loop import Trainer
from glassformer.extensions.training.library.settings import TrainSettings
from transformer.model.layers import DecoderLayer
from transformer.model.transformer import Transformer


def copy_parameters(ours, plain):
    """Give the peer the parameters of our model (pre-norm, final norm, biases, tied output)."""
    state = {"src_embedding.weight": ours.src_table, "tgt_embedding.weight": ours.target_table}
    for side in ("encoder", "decoder"):
        stack = getattr(ours, side)
        for i, layer in enumerate(stack.layers):
            state |= dict(_layer_parameters(f"transformer.{side}.layers.{i}", layer))
        state |= {f"transformer.{side}.norm.{kind}": value for kind, value in stack.final_norm.named_parameters()}
    plain.load_state_dict({name: value.detach() for name, value in state.items()})


def _layer_parameters(prefix, layer):
    attentions = {"self_attn": layer.self_attn}
    residuals = [layer.self_attn_residual, layer.ffn_residual]
    if isinstance(layer, DecoderLayer):
        attentions["multihead_attn"] = layer.cross_attn
        residuals.insert(1, layer.cross_attn_residual)
    for name, attention in attentions.items():
        for kind in ("weight", "bias"):
            parts = (attention.q_proj, attention.k_proj, attention.v_proj)
            yield f"{prefix}.{name}.in_proj_{kind}", torch.cat([getattr(part, kind) for part in parts])
            yield f"{prefix}.{name}.out_proj.{kind}", getattr(attention.out_proj, kind)
    modules = {"linear1": layer.ffn.up_proj, "linear2": layer.ffn.down_proj}
    modules |= {f"norm{i}": residual.norm for i, residual in enumerate(residuals, start=1)}
    for name, module in modules.items():
        yield from ((f"{prefix}.{name}.{kind}", value) for kind, value in module.named_parameters())


def test_with_equal_parameters_both_have_the_same_losses_before_and_after_a_step():
    config = replace(CONFIG, dropout=0.0, d_model=32, d_head=8, d_ff=64)
    torch.manual_seed(1)
    model, peer = Transformer(config), PlainTransformer(config)
    copy_parameters(model, peer)
    assert sum(p.numel() for p in model.parameters()) == sum(p.numel() for p in peer.parameters())
    ours, plain = Trainer(model, batches(), TrainSettings(precision="fp32")), PlainTrainer(peer, bf16=False)
    batch = make_batch(batches().epoch(0)[0][:40], config)
    for _ in range(2):
        assert plain.step(batch, RATE) == pytest.approx(float(ours.learn([batch], [1.0], RATE)), abs=1e-4)
