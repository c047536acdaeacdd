"""Norms, gates and heads are those of the modules of the transformers library."""

import pytest
import torch
from transformers.models.bert.configuration_bert import BertConfig
from transformers.models.bert.modeling_bert import BertLMPredictionHead
from transformers.models.llama.configuration_llama import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaMLP, LlamaRMSNorm
from transformers.models.t5.configuration_t5 import T5Config
from transformers.models.t5.modeling_t5 import T5DenseGatedActDense, T5LayerNorm

from tests.transformer.tiny import ENCODER, tiny_config, tiny_model
from transformer.model.feed_forward import FeedForward
from transformer.model.norms import RMSNorm


def vectors():
    return 3 * torch.randn(2, 5, 12, generator=torch.Generator().manual_seed(0))


def close(found, expected):
    return torch.allclose(found, expected, rtol=0, atol=1e-5)


def ffn(**changes):
    torch.manual_seed(1)
    made = FeedForward(tiny_config(**changes)).requires_grad_(False)
    for parameter in made.parameters():
        parameter.normal_(std=0.3)
    return made


@pytest.mark.parametrize("theirs", [LlamaRMSNorm, T5LayerNorm])
def test_rms_norm(theirs):
    own, other = RMSNorm(12, eps=1e-6), theirs(12, eps=1e-6)
    torch.nn.init.normal_(own.weight, mean=1.0)
    other.load_state_dict(own.state_dict())
    assert close(own(vectors()), other(vectors()))


def test_a_gated_feed_forward_network_is_llamas_and_t5s():
    own = ffn(activation="silu", gated=True, ffn_bias=False)
    other = LlamaMLP(LlamaConfig(hidden_size=12, intermediate_size=20, hidden_act="silu", num_attention_heads=3))
    other.load_state_dict(own.state_dict())
    assert close(own(vectors()), other(vectors()))
    own = ffn(activation="gelu_tanh", gated=True, ffn_bias=False)
    theirs = T5DenseGatedActDense(T5Config(d_model=12, d_ff=20, feed_forward_proj="gated-gelu", dropout_rate=0.0))
    names = {"wi_0": "gate_proj", "wi_1": "up_proj", "wo": "down_proj"}
    theirs.load_state_dict({f"{name}.weight": own.state_dict()[f"{ours}.weight"] for name, ours in names.items()})
    assert close(own(vectors()), theirs.eval()(vectors()))


@pytest.mark.parametrize("activation", ["gelu", "relu"])
def test_an_mlm_head_is_berts(activation):
    model = tiny_model(
        **ENCODER, mlm_head=True, mlm_activation=activation, output_bias=True, norm_eps=1e-12, dtype=torch.float32
    )
    other = BertLMPredictionHead(
        BertConfig(hidden_size=12, vocab_size=17, num_attention_heads=3, hidden_act=activation)
    )
    head = model.mlm_head
    other.transform.dense.load_state_dict(head.proj.state_dict())
    other.transform.LayerNorm.load_state_dict(head.norm.state_dict())
    other.decoder.weight.data, other.decoder.bias.data = model.output_weight, model.output_bias
    assert close(model.project(vectors()), other(vectors()))
