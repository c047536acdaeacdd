"""Layers before an output over the vocabulary are asked about, whatever their name; what is used is not needless."""

import math

import pytest
import torch
from torch import nn

from glassformer.extensions.doctor.library.input_rows import result
from glassformer.extensions.importers.library.opening import QuestionsError, load, preview
from tests.extensions.importers.library.test_asked_parts import asked
from tests.extensions.importers.library.test_opening import IDS, POST, saved
from tests.extensions.importers.library.tutorial_models import TorchModel, at_random, sinusoids

SAID = POST | IDS | {"scale_embedding": True}
STACK = "transformer_encoder.layers"


class Causal(nn.Module):
    """A language model of encoder layers, under the names that PyTorch's example gives, or others."""

    def __init__(self, table="encoder", output="decoder", norm=False, vocab=17, width=16):
        super().__init__()
        self.names = table, output
        setattr(self, table, nn.Embedding(vocab, width))
        layer = nn.TransformerEncoderLayer(width, 4, 24, 0.0, batch_first=True)
        norm = nn.LayerNorm(width) if norm else None
        self.transformer_encoder = nn.TransformerEncoder(layer, 2, norm=norm, enable_nested_tensor=False)
        setattr(self, output, nn.Linear(width, vocab))

    def forward(self, ids):
        table, output = (getattr(self, name) for name in self.names)
        x = table(ids) * math.sqrt(16) + sinusoids(32, 16)[:, : ids.size(1)]
        hidden = torch.ones(ids.size(1), ids.size(1), dtype=torch.bool).triu(1)
        return output(self.transformer_encoder(x, mask=hidden))


@pytest.mark.parametrize("norm", [False, True])
@pytest.mark.parametrize(
    ("table", "output"), [("encoder", "decoder"), ("embedding", "fc"), ("emb", "to_words"), ("words", "again")]
)
def test_a_causal_language_model_of_encoder_layers(tmp_path, table, output, norm):
    model = at_random(Causal(table, output, norm))
    path = saved(tmp_path / "m.pt", model.state_dict())
    answers = SAID | {"positions": "sinusoidal"}
    found = asked(path, answers)
    assert found["decoder_layers"] == [STACK, "none"]
    assert "ignored" not in found
    names = {"src_table": f"{table}.weight", "output_table": f"{output}.weight"}
    for more in ({}, {"encoder_layers": "none"}):
        ours = load(path, answers=answers | names | {"decoder_layers": STACK} | more).model
        ids = torch.tensor([[5, 3, 9, 7]])
        assert (result(ours, ids, ids) - model(ids)).abs().max() < 1e-5
    read_as_encoder = answers | {"src_table": names["src_table"], "decoder_layers": "none"}
    assert asked(path, read_as_encoder) == {"ignored": []}  # an output is not needless
    with pytest.raises(QuestionsError):
        load(path, answers=read_as_encoder)


@pytest.mark.parametrize("extra", [{"fc": (5, 16)}, {"pooler.dense": (16, 16)}])
def test_an_encoder_with_another_head_is_not_asked_about(tmp_path, extra):
    state = at_random(Causal("embedding", "fc")).state_dict()
    state = {name: tensor for name, tensor in state.items() if not name.startswith("fc.")}
    state |= {f"{name}.weight": torch.ones(shape) for name, shape in extra.items()}
    found = asked(saved(tmp_path / "m.pt", state), SAID | {"positions": "sinusoidal"})
    assert found == {"ignored": [f"{name}.weight" for name in extra]}


@pytest.mark.parametrize(
    ("name", "shape", "what"),
    [
        ("embed_norm.weight", (16,), "a norm"), ("emb_ln.bias", (16,), "a norm"), ("ln.weight", (16,), "a norm"),
        ("segment_embedding.weight", (2, 16), "an embedding"), ("lang_embed.weight", (3, 16), "an embedding"),
        ("token_type_table.weight", (2, 16), "an embedding"), ("alibi_slopes", (4,), "positions that are added"),
        ("rel_pos_bias.weight", (32, 4), "positions that are added"), ("rotary_emb.inv_freq", (2,), "rotary"),
    ],
)  # fmt: skip
def test_what_takes_part_outside_the_layers_is_named_and_not_offered(tmp_path, name, shape, what):
    state = at_random(TorchModel()).state_dict() | {name: torch.ones(shape), "aux_head.weight": torch.ones(5, 16)}
    path = saved(tmp_path / "m.pt", state)
    report = preview(path, answers=SAID).report
    (question,) = (one for one in report.asked if one.name == "ignored")
    assert [one.value for one in question.choices] == ["aux_head.weight"]
    assert f"{name}: {what}" in question.evidence
