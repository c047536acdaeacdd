"""Models that readers of tutorials saved: each value arrives where it belongs, and the numbers are the same."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save_file

from glassformer.extensions.importers.library.report import Opened
from glassformer.extensions.importers.library.tutorial_fields import understand
from glassformer.extensions.importers.library.tutorials import tutorials
from glassformer.extensions.weight_files.library.weights import open_weights
from tests.extensions.importers.library.tutorial_models import STYLES, Annotated, Article, TorchModel, at_random
from tests.transformer.tiny import DECODER, ENCODER, tiny_model
from transformer.checkpoint.consistency import expected_shapes
from transformer.errors import CheckpointError, within
from transformer.model.config import ModelConfig
from transformer.model.transformer import Transformer

ANSWERS = {"n_heads": 4, "activation": "relu", "pad_id": 0, "unk_id": 1, "bos_id": 2, "eos_id": 3}
PRE = ANSWERS | {"norm": "pre", "scale_embedding": True}
PADDED = torch.tensor([[5, 6, 7, 8, 9, 10], [11, 4, 5, 6, 0, 0]]), torch.tensor([[2, 5, 6, 7], [2, 8, 9, 10]])


def understood(path, content, answers=ANSWERS):
    """What is understood of a file with this content, with answers, and the tensors of the model."""
    torch.save(content, path)
    with open_weights(path) as weights:
        with within(weights.label):
            found = understand(weights)
        return found.report.answered(answers), dict(Opened(found.match, {}, weights).read())


def rebuilt(report, state):
    """A model of ours with these tensors; biases that the file does not have are zeros."""
    values = {one.name: one.value for one in report.fields}
    has = {name: values.pop(name) for name in list(values) if name.endswith("_bias") and name != "output_bias"}
    config = ModelConfig(**values, bias=any(has.values()), dropout=0.0, decoder_start_id=2)
    expected = expected_shapes(config)
    assert {name: tuple(tensor.shape) for name, tensor in state.items()}.items() <= expected.items()
    assert all(name.endswith("bias") for name in expected.keys() - state.keys())
    model = Transformer(config)
    model.load_state_dict({name: torch.zeros(shape) for name, shape in expected.items()} | state)
    return model.double().eval()


def compare(theirs, ours):
    theirs = theirs.double()
    with torch.no_grad():
        expected, found = theirs(*PADDED), ours(*PADDED)
    assert (expected - found).abs().max() < 2e-6  # their positions are rounded to float32
    assert expected.abs().max() > 0.5


def test_the_annotated_transformer(tmp_path):
    model = at_random(Annotated())
    report, state = understood(tmp_path / "m.pt", model.state_dict(), PRE)
    layer = model.decoder.layers[2]
    for name, value in {
        "src_table": model.src_embed[0].lut.weight,
        "tgt_table": model.tgt_embed[0].lut.weight,
        "output_table": model.generator.proj.weight,
        "output_bias": model.generator.proj.bias,
        "encoder.final_norm.weight": model.encoder.norm.a_2,
        "decoder.final_norm.bias": model.decoder.norm.b_2,
        "decoder.layers.2.self_attn.v_proj.weight": layer.self_attn.linears[2].weight,
        "decoder.layers.2.cross_attn.k_proj.bias": layer.src_attn.linears[1].bias,
        "decoder.layers.2.cross_attn_residual.norm.weight": layer.sublayer[1].norm.a_2,
        "decoder.layers.2.ffn_residual.norm.bias": layer.sublayer[2].norm.b_2,
        "decoder.layers.2.ffn.down_proj.weight": layer.feed_forward.w_2.weight,
        "encoder.layers.1.ffn_residual.norm.weight": model.encoder.layers[1].sublayer[1].norm.a_2,
    }.items():
        assert torch.equal(state[name], value), name
    assert report.can_be_written, str(report)
    compare(model, rebuilt(report, state))


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_torchs_own_layers_with_a_readers_embeddings(tmp_path, norm):
    model = at_random(TorchModel(norm_first=norm == "pre"))
    answers = ANSWERS | {"norm": norm, "scale_embedding": True}
    report, state = understood(tmp_path / "m.pt", {"model": model.state_dict()}, answers)
    layer = model.transformer.decoder.layers[1]
    assert torch.equal(state["decoder.layers.1.self_attn.k_proj.weight"], layer.self_attn.in_proj_weight[16:32])
    assert torch.equal(state["decoder.layers.1.cross_attn.v_proj.bias"], layer.multihead_attn.in_proj_bias[32:])
    assert torch.equal(state["decoder.layers.1.ffn_residual.norm.bias"], layer.norm3.bias)
    assert report.can_be_written, str(report)
    compare(model, rebuilt(report, state))


@pytest.mark.parametrize("style", STYLES)
def test_articles_and_mixtures_of_them(tmp_path, style):
    model = at_random(Article(STYLES[style]))
    answers = ANSWERS | {"norm": "post", "scale_embedding": STYLES[style]["scaled"]}
    report, state = understood(tmp_path / "m.pt", model.state_dict(), answers)
    assert report.can_be_written, str(report)
    names = {str(one.name): one for one in report.fields}
    assert names["attention_bias"].value is STYLES[style]["bias"]
    assert names["max_len"].value == 32
    compare(model, rebuilt(report, state))


@pytest.mark.parametrize("off", [0.1, math.nan])
def test_positions_that_no_formula_gives_are_learned(tmp_path, off):
    model = at_random(Article(STYLES["S4"]))
    model.positional_encoding.pe += off
    report, state = understood(tmp_path / "m.pt", model.state_dict())
    assert {one.name: one.value for one in report.fields}["positions"] == "learned"
    for stack in ("encoder", "decoder"):
        found = state[f"{stack}.embedding.positions.table"]
        assert torch.allclose(found, model.positional_encoding.pe[0], rtol=0, atol=0, equal_nan=True)


def test_tied_tables_are_one(tmp_path):
    model = at_random(Annotated(vocabs=(19, 19)))
    model.tgt_embed[0].lut.weight = model.generator.proj.weight = model.src_embed[0].lut.weight
    report, state = understood(tmp_path / "m.pt", model.state_dict(), PRE)
    values = {one.name: one.value for one in report.fields}
    assert (values["shared_vocab"], values["tie_output"]) == (True, True)
    assert "tgt_table" not in state
    assert "output_table" not in state
    assert report.can_be_written
    compare(model, rebuilt(report, state))


def test_numbers_saved_beside_the_weights_answer(tmp_path):
    content = {
        "state_dict": at_random(Annotated()).state_dict(),
        "args": {"num_heads": 2, "pad_idx": 1, "activation": "gelu", "eos_idx": "x"},
        "hyper": {"nhead": 3},
    }
    report, _ = understood(tmp_path / "m.pt", content, {})
    fields = {one.name: one for one in report.fields}
    assert (fields["n_heads"].how, fields["n_heads"].value) == ("read", 2)
    assert str(fields["n_heads"].evidence) == "This value is saved with the weights as 'args.num_heads'."
    assert (fields["pad_id"].value, fields["activation"].value, fields["eos_id"].how) == (1, "gelu", "asked")


def test_what_a_file_does_not_say_is_asked(tmp_path):
    report, _ = understood(tmp_path / "m.pt", at_random(Annotated()).state_dict(), {})
    assert [one.name for one in report.asked] == [
        "n_heads", "norm", "scale_embedding", "activation", "pad_id", "unk_id", "bos_id", "eos_id",
    ]  # fmt: skip
    assert [choice.value for choice in report.asked[0].choices] == [4, 2, 8, 1, 16]
    assert not report.can_be_written


def test_what_is_missing_and_what_is_too_many_is_named(tmp_path):
    state = at_random(Annotated()).state_dict()
    del state["decoder.layers.1.src_attn.linears.2.bias"]
    del state["encoder.layers.0.feed_forward.w_1.weight"]
    state["encoder.layers.0.self_attn.linears.4.weight"] = torch.ones(2)
    state["encoder.layers.0.self_attn.linears.0.Weight"] = torch.ones(2)
    report, _ = understood(tmp_path / "m.pt", state)
    assert set(report.missing) == {"decoder.layers.1.cross_attn.v_proj.bias", "encoder.layers.0.ffn.up_proj.weight"}
    assert len(report.left_over) == 2
    assert not report.can_be_written


def test_gaps_doubles_and_impossible_shapes_are_refused(tmp_path):
    state = at_random(Annotated()).state_dict()
    path = tmp_path / "m.pt"
    gap = {name.replace("encoder.layers.1", "encoder.layers.5"): tensor for name, tensor in state.items()}
    with pytest.raises(CheckpointError, match="are numbered up to 5, but layer 1 is missing"):
        understood(path, gap)
    with pytest.raises(CheckpointError, match=r"'encoder.layers.0.self_attn.W_q.weight' would both become"):
        understood(path, state | {"encoder.layers.0.self_attn.W_q.weight": torch.ones(16, 16)})
    with pytest.raises(
        CheckpointError, match="does not allow this conversion: split into queries, keys and values by rows"
    ):
        understood(path, {"encoder.layers.0.self_attn.in_proj_weight": torch.ones(16, 16)})
    with pytest.raises(CheckpointError, match=r"has the shape .*; expected 2 axes"):
        understood(path, {"encoder.layers.0.self_attn.w_q.weight": torch.ones(16)})


S4_NAMES = (
    ("src_table", "embedding.weight"), ("output_table", "fc.weight"), ("output_bias", "fc.bias"),
    (".embedding.positions.table", ".pos_embedding.weight"), (".layers.", "_layers."), ("ffn.up_proj", "ffn.0"),
    ("ffn.down_proj", "ffn.2"), ("self_attn_residual.norm", "norm1"), ("ffn_residual.norm", "norm2"),
    ("q_proj", "W_q"), ("k_proj", "W_k"), ("v_proj", "W_v"), ("out_proj", "W_o"), ("final_norm", "norm"),
)  # fmt: skip


@pytest.mark.parametrize("stack", ["encoder", "decoder"])
@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_an_encoder_or_a_decoder_alone(tmp_path, stack, positions):
    alone = {"encoder": ENCODER, "decoder": DECODER}[stack]
    model = tiny_model(dtype=torch.float32, positions=positions, tie_output=False, output_bias=True, **alone)
    state = {}
    for name, tensor in model.state_dict().items():
        for ours, theirs in S4_NAMES:
            name = name.replace(ours, theirs)
        state[f"my.model.{name}"] = tensor
    report, found = understood(tmp_path / "m.pt", state, {**PRE, "positions": "sinusoidal", "max_len": 16})
    assert report.can_be_written, str(report)
    assert found.keys() == model.state_dict().keys()
    assert all(torch.equal(found[name], tensor) for name, tensor in model.state_dict().items())


def test_what_stands_behind_an_encoder_alone_is_not_guessed(tmp_path):
    model = tiny_model(**ENCODER).float()
    state = {name.replace("src_table", "embedding.weight"): tensor for name, tensor in model.state_dict().items()}
    report, _ = understood(tmp_path / "m.pt", state | {"fc.weight": torch.ones(3, 12), "fc.bias": torch.ones(3)})
    assert {"fc.weight", "fc.bias"} <= set(report.left_over)


def test_norms_of_two_kinds_are_asked_about(tmp_path):
    state = at_random(Annotated()).state_dict()
    state = {name.replace("encoder.norm.a_2", "encoder.norm.weight"): tensor for name, tensor in state.items()}
    report, _ = understood(tmp_path / "m.pt", state, PRE)
    assert [one.name for one in report.asked] == ["norm_kind", "norm_eps"]


NAMES = st.sampled_from([rule.source for rule in tutorials().rules])
NUMBERS, KINDS = st.sampled_from(["0", "1", "7", "01", "9999999"]), st.sampled_from(["weight", "bias"])
FILLED = st.builds(lambda name, n, p: name.replace("{n}", n).replace("{p}", p), NAMES, NUMBERS, KINDS)
SHAPES = st.lists(st.sampled_from([0, 1, 2, 3, 6, 12]), max_size=4)


@given(sizes=st.dictionaries(FILLED | st.text("ab.0{n}", max_size=9), SHAPES, max_size=12))
def test_any_names_and_shapes_are_understood_or_refused(tmp_path_factory, sizes):
    path = tmp_path_factory.mktemp("m") / "model.safetensors"
    save_file({name: torch.zeros(shape) for name, shape in sizes.items()}, path)
    with open_weights(path) as weights:
        try:
            with within(weights.label):
                report = understand(weights).report
        except CheckpointError as error:
            assert_refused(error, path)
            return
    assert [one.name for one in report.file_tensors] == list(weights.tensors)
    assert not report.can_be_written
    assert str(report).endswith((" needs an answer.", " need answers."))


def assert_refused(error, path):
    assert str(error).startswith(f"{path}: ")
