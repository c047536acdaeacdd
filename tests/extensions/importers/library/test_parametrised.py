"""Weights in parts: put together, or refused by what they are, in every kind of file."""

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations, weight_norm

from glassformer.extensions.importers.library.opening import load, preview
from tests.extensions.importers.library.test_asked_parts import S1, article, asked, same
from tests.extensions.importers.library.test_opening import saved
from transformer.errors import CheckpointError


@pytest.mark.parametrize("norm", [weight_norm, parametrizations.weight_norm], ids=["old", "new"])
@pytest.mark.parametrize("dim", [0, 1, None])
@pytest.mark.filterwarnings("ignore")
def test_weight_norm_is_put_together(tmp_path, norm, dim):
    model = article()
    norm(model.encoder.layers[0].self_attn.w_q, dim=dim)
    norm(model.fc_out, dim=dim)
    path = saved(tmp_path / "m.pt", model.state_dict())
    assert asked(path) == {}
    assert same(path, model)
    assert "fc_out.weight" in str(preview(path, answers=S1).report.notes[0])
    half = {name: tensor.half() for name, tensor in model.state_dict().items()}
    assert load(saved(tmp_path / "half.pt", half), answers=S1).config.n_heads == 4


Q = "encoder.layers.0.self_attn.w_q"
IN_PARTS = {
    "LoRA": ({f"{Q}.lora_A.weight": (2, 16), f"{Q}.lora_B.weight": (16, 2)}, "an adapter"),
    "loralib": ({f"{Q}.lora_A": (2, 16), f"{Q}.lora_B": (16, 2)}, "an adapter"),
    "PEFT": ({f"{Q}.base_layer.weight": (16, 16), f"{Q}.lora_A.default.weight": (2, 16)}, "an adapter"),
    "GPTQ": ({f"{Q}.qweight": (2, 16), f"{Q}.qzeros": (1, 2), f"{Q}.scales": (1, 16)}, "a quantised weight"),
    "bitsandbytes, 8 bits": ({f"{Q}.SCB": (16,)}, "a quantised weight"),
    "bitsandbytes, 4 bits": ({f"{Q}.weight.absmax": (4,), f"{Q}.weight.quant_map": (16,)}, "a quantised weight"),
    "spectral": ({f"{Q}.weight_orig": (16, 16), f"{Q}.weight_u": (16,), f"{Q}.weight_v": (16,)}, "spectral"),
    "spectral, new": ({f"{Q}.parametrizations.weight.original": (16, 16)}, "a parametrised weight"),
    "pruned bias": ({f"{Q}.bias_orig": (16,), f"{Q}.bias_mask": (16,)}, "pruning"),
    "pruned": ({f"{Q}.weight_orig": (16, 16), f"{Q}.weight_mask": (16, 16)}, "pruning"),
}


@pytest.mark.parametrize("kind", IN_PARTS)
def test_other_parts_are_refused_by_name(tmp_path, kind):
    parts, what = IN_PARTS[kind]
    state = article().state_dict() | {name: torch.ones(shape) for name, shape in parts.items()}
    with pytest.raises(CheckpointError, match=rf"tensor '{Q}.* is part of .*{what}.* not a plain weight"):
        preview(saved(tmp_path / "m.pt", state))


def test_small_integers_are_no_weights(tmp_path):
    state = article().state_dict()
    state[f"{Q}.weight"] = torch.ones(16, 16, dtype=torch.int8)
    with pytest.raises(CheckpointError, match="is part of a quantised weight"):
        preview(saved(tmp_path / "m.pt", state))


def test_norms_without_biases_may_be_of_two_kinds(tmp_path):
    state = {n: t for n, t in article().state_dict().items() if "norm" not in n or not n.endswith("bias")}
    found = asked(saved(tmp_path / "m.pt", state))
    assert found["norm_kind"] == ["rms", "layer"]
    config = load(tmp_path / "m.pt", answers=S1 | {"norm_kind": "rms", "norm_eps": 1e-6}).config
    assert (config.norm_kind, config.norm_bias) == ("rms", False)


def test_a_template_of_torchs_is_known(tmp_path):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding, self.pos_embedding = nn.Embedding(17, 16), nn.Embedding(32, 16)
            self.encoder_layer = nn.TransformerEncoderLayer(16, 4, 24, batch_first=True)
            self.transformer_encoder = nn.TransformerEncoder(self.encoder_layer, 2, enable_nested_tensor=False)

    path = saved(tmp_path / "m.pt", Model().state_dict())
    assert asked(path) == {"ignored": ["encoder_layer.*"]}
    answers = {name: value for name, value in S1.items() if name not in ("bos_id", "eos_id")}
    assert load(path, answers=answers | {"ignored": "encoder_layer.*"}).config.n_encoder_layers == 2
