"""Whole tiny models of the transformers library, in float64: its parameters under our names give its logits."""

import pytest
import torch
from transformers import BertConfig, BertForMaskedLM, GPT2Config, GPT2LMHeadModel

from transformer.model.config import ModelConfig
from transformer.model.transformer import Transformer

SIZES = {"d_model": 12, "n_heads": 3, "d_ff": 20, "src_vocab_size": 30, "tgt_vocab_size": 30, "max_len": 40}
ONE_STACK = {"shared_vocab": True, "positions": "learned", "scale_embedding": False, "append_source_eos": False}
IDS = torch.randint(4, 30, (2, 25), generator=torch.Generator().manual_seed(0))


def drawn(model):
    """Random norms, biases and all: none at 0 or 1, which would hide a mistake."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=0.1)
    return model.double().eval()


def filled(config, state):
    model = Transformer(config).double()
    model.load_state_dict(state)
    return model.requires_grad_(False).eval()


def test_gpt_2():
    theirs = drawn(
        GPT2LMHeadModel(GPT2Config(vocab_size=30, n_positions=40, n_embd=12, n_layer=2, n_head=3, n_inner=20))
    )
    state, own = theirs.transformer.state_dict(), {}
    own |= {"src_table": state["wte.weight"], "decoder.embedding.positions.table": state["wpe.weight"]}
    for i in range(2):
        there, here = f"h.{i}.", f"decoder.layers.{i}."
        for kind in ("weight", "bias"):
            parts = state[f"{there}attn.c_attn.{kind}"].split(12, dim=-1)
            maps = dict(zip(("q", "k", "v"), parts, strict=True)) | {"out": state[f"{there}attn.c_proj.{kind}"]}
            own |= {f"{here}self_attn.{name}_proj.{kind}": part.t() for name, part in maps.items()}
            for name, ours in (("mlp.c_fc", "ffn.up_proj"), ("mlp.c_proj", "ffn.down_proj")):
                own[f"{here}{ours}.{kind}"] = state[f"{there}{name}.{kind}"].t()
            for name, ours in (("ln_1", "self_attn_residual.norm"), ("ln_2", "ffn_residual.norm")):
                own[f"{here}{ours}.{kind}"] = state[f"{there}{name}.{kind}"]
            own[f"decoder.final_norm.{kind}"] = state[f"ln_f.{kind}"]
    config = ModelConfig(**SIZES, **ONE_STACK, n_encoder_layers=0, n_decoder_layers=2, activation="gelu_tanh",
                         pad_id=None, unk_id=None, bos_id=None)  # fmt: skip
    found = filled(config, own)(IDS, IDS)
    assert torch.allclose(found, theirs(IDS).logits, rtol=0, atol=1e-10)


@pytest.mark.parametrize("activation", ["gelu", "relu"])
def test_bert(activation):
    theirs = drawn(BertForMaskedLM(BertConfig(
        vocab_size=30, hidden_size=12, num_hidden_layers=2, num_attention_heads=3, intermediate_size=20,
        max_position_embeddings=40, hidden_act=activation)))  # fmt: skip
    state, own = theirs.state_dict(), {}
    tables = {"word": "src_table", "position": "encoder.embedding.positions.table",
              "token_type": "encoder.embedding.types.table"}  # fmt: skip
    own |= {ours: state[f"bert.embeddings.{name}_embeddings.weight"] for name, ours in tables.items()}
    modules = {"bert.embeddings.LayerNorm": "encoder.embedding.norm",
               "cls.predictions.transform.dense": "mlm_head.proj",
               "cls.predictions.transform.LayerNorm": "mlm_head.norm"}  # fmt: skip
    for i in range(2):
        names = {"attention.self.query": "self_attn.q_proj", "attention.self.key": "self_attn.k_proj",
                 "attention.self.value": "self_attn.v_proj", "attention.output.dense": "self_attn.out_proj",
                 "attention.output.LayerNorm": "self_attn_residual.norm", "intermediate.dense": "ffn.up_proj",
                 "output.dense": "ffn.down_proj", "output.LayerNorm": "ffn_residual.norm"}  # fmt: skip
        modules |= {f"bert.encoder.layer.{i}.{name}": f"encoder.layers.{i}.{ours}" for name, ours in names.items()}
    for name, ours in modules.items():
        own |= {f"{ours}.{kind}": state[f"{name}.{kind}"] for kind in ("weight", "bias")}
    own["output_bias"] = state["cls.predictions.bias"]
    config = ModelConfig(**SIZES, **ONE_STACK, n_encoder_layers=2, n_decoder_layers=0, activation=activation,
                         norm="post", final_norm=False, norm_eps=1e-12, embedding_norm=True, n_token_types=2,
                         mlm_head=True, mlm_activation=activation, output_bias=True)  # fmt: skip
    model, ids, types = filled(config, own), IDS.clone(), torch.zeros_like(IDS)
    ids[1, 20:], types[:, 9:] = 0, 1
    found = model.project(model.encode(ids, types))
    expected = theirs(ids, attention_mask=(ids != 0).long(), token_type_ids=types).logits
    assert torch.allclose(found[ids != 0], expected[ids != 0], rtol=0, atol=1e-10)
