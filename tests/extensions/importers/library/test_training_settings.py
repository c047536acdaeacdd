"""What comes with the weights is read: settings in or beside the file, averages, parts, folders, tokenizers."""

import argparse
import json
import types

import pytest
import torch
from safetensors.torch import save_file

from glassformer.extensions.importers.library.opening import preview
from tests.extensions.importers.library.tutorial_models import PADDED, TorchModel, at_random
from tests.extensions.refusing import refusal
from transformer.checkpoint.opening import load

# What TorchModel is, in the words of four programs; 16 wide, 24 in its feed-forward networks.
LIGHTNING = {"d_model": 16, "nhead": 4, "num_encoder_layers": 2, "dim_feedforward": 24, "norm_first": True,
             "activation": "ReLU", "scale_embedding": True, "pad_idx": 0, "sos_idx": 1, "eos_idx": 2}  # fmt: skip
NAMESPACE = {"n_head": 4, "n_layer": 2, "pre_norm": True, "activation_fn": "relu", "scale_embeddings": True,
             "src_pad_idx": 0, "trg_pad_idx": 0, "trg_sos_idx": 1, "trg_eos_idx": 2, "lr": 1e-3}  # fmt: skip
WORDS = {"num_heads": 4, "norm_position": "pre-norm", "hidden_act": "relu", "scale_embedding": True, "pad_id": 0,
         "bos_token_id": 1, "eos_token_id": 2, "layer_norm_eps": 1e-5, "optimizer": {"eps": 1e-8}}  # fmt: skip


class ModelConfig:
    """A class of the user's own, which the process that opens the file has never seen."""

    def __init__(self, values):
        self.__dict__.update(values)


class AttrDict(dict):
    """The same as a dictionary, here with an attribute, too."""

    heads = None


ModelConfig.__module__ = AttrDict.__module__ = "my_code.model"


def with_attribute(values):
    made = AttrDict({name: value for name, value in values.items() if name != "nhead"})
    made.heads = values["nhead"]
    return made


def model():
    return at_random(TorchModel(norm_first=True)).eval()


def reported(folder, content):
    """The report on a file of torch.save."""
    torch.save(content, folder / "m.pt")
    return preview(folder / "m.pt").report


def same(theirs, ours):
    with torch.inference_mode():
        assert (ours(*PADDED) - theirs(*PADDED)).abs().max() < 1e-5


@pytest.fixture
def their_class(monkeypatch):
    module = types.ModuleType("my_code.model")
    module.ModelConfig, module.AttrDict = ModelConfig, AttrDict
    monkeypatch.setitem(__import__("sys").modules, "my_code", types.ModuleType("my_code"))
    monkeypatch.setitem(__import__("sys").modules, "my_code.model", module)


INSIDE = {
    "hyper_parameters": lambda state: {"state_dict": state, "hyper_parameters": LIGHTNING, "epoch": 3},
    "args": lambda state: {"model": state, "args": argparse.Namespace(**NAMESPACE)},
    "settings": lambda state: {"model_state_dict": state, "settings": types.SimpleNamespace(**WORDS)},
    "cfg": lambda state: {"net": state, "cfg": {"model": WORDS, "data": {"max_len": 9}}},
    "config": lambda state: {"state_dict": state, "config": ModelConfig(LIGHTNING)},
    "hparams": lambda state: {"state_dict": state, "hparams": with_attribute(LIGHTNING)},
    "model_args": lambda state: {"model": state, "model_args": LIGHTNING | {"activation": torch.nn.ReLU()}},
    "options": lambda state: {"model": state, "options": LIGHTNING | {"activation": torch.nn.functional.relu}},
    "json": lambda state: {"model": state, "json": json.dumps(LIGHTNING)},
    "UPPER": lambda state: {"model": state, "UPPER": {name.upper(): one for name, one in LIGHTNING.items()}},
    "texts": lambda state: {"model": state, "texts": LIGHTNING | {"nhead": "4"}},
    "beside them": lambda state: {"state_dict": state, **NAMESPACE},
}


@pytest.mark.parametrize("name", INSIDE)
def test_settings_in_the_file_answer_and_say_from_where(tmp_path, their_class, name):
    theirs = model()
    torch.save(INSIDE[name](theirs.state_dict()), tmp_path / "last.ckpt")
    report = preview(tmp_path / "last.ckpt").report
    assert not report.asked
    (heads,) = [one for one in report.fields if one.name == "n_heads"]
    assert (heads.how, heads.value) == ("read", 4)
    assert (f"{name}." in heads.evidence) != (name == "beside them")
    same(theirs, load(tmp_path / "last.ckpt").model)


def test_another_activation_than_its_name_is_not_read_as_that(tmp_path):
    config = LIGHTNING | {"activation": torch.nn.GELU(approximate="tanh")}
    report = reported(tmp_path, {"model": model().state_dict(), "config": config})
    assert [one.name for one in report.asked] == ["activation"]


def test_metadata_of_safetensors_answer_too(tmp_path):
    theirs = model()
    values = {name: str(value) if name == "nhead" else json.dumps(value) for name, value in LIGHTNING.items()}
    save_file(theirs.state_dict(), tmp_path / "m.safetensors", metadata={"config": json.dumps(LIGHTNING), **values})
    same(theirs, load(tmp_path / "m.safetensors").model)


def test_a_length_that_is_a_text_is_read(tmp_path):
    state = {name: value for name, value in model().state_dict().items() if "positional" not in name}
    save_file(state, tmp_path / "m.safetensors", metadata={"max_len": "64"})
    fields = {one.name: one for one in preview(tmp_path / "m.safetensors").report.fields}
    assert (fields["max_len"].how, fields["max_len"].value) == ("read", 64)


@pytest.mark.parametrize("file", ["hparams.yaml", "config.yaml", "config.json", "args.json", "params.json"])
def test_settings_next_to_the_file_answer_too(tmp_path, file):
    theirs, folder = model(), tmp_path / "version_0" / "checkpoints"
    folder.mkdir(parents=True)
    torch.save({"state_dict": theirs.state_dict()}, folder / "epoch=3.ckpt")
    (folder.parent / file).write_text(json.dumps({"model": LIGHTNING}))  # which YAML is, too
    assert f"{file}.model.nhead" in {one.name: one for one in preview(folder.parent).report.fields}["n_heads"].evidence
    for source in (folder / "epoch=3.ckpt", folder, folder.parent):
        same(theirs, load(source).model)


def test_settings_of_several_files_are_nobodys_and_damaged_ones_are_named(tmp_path):
    torch.save(model().state_dict(), tmp_path / "a.pt")
    (tmp_path / "hparams.yaml").write_text("nhead: &a 4\nheads: *a\n")
    assert any("hparams.yaml, next to the weights, is not used" in one for one in preview(tmp_path).report.notes)
    (tmp_path / "hparams.yaml").write_text("nhead: 4\n")
    assert "n_heads" not in {one.name for one in preview(tmp_path / "a.pt").report.asked}
    torch.save(model().state_dict(), tmp_path / "b.pt")
    assert "n_heads" in {one.name for one in preview(tmp_path / "a.pt").report.asked}


IMPOSSIBLE = [
    ({"nhead": 5}, "n_heads", "'hyper_parameters.nhead', saved with the weights, is 5, which cannot be this"),
    ({"nhead": True}, "n_heads", "is True, which cannot be this model's"),
    ({"heads": 4, "num_heads": 8}, "n_heads", "differ: hyper_parameters.heads = 4, hyper_parameters.num_heads = 8"),
    ({"activation": "swiglu"}, "activation", "is 'swiglu', which cannot be"),
    ({"pad_idx": 17}, "pad_id", "is 17, which cannot be"),
    ({"eos_idx": -1}, "eos_id", "is -1, which cannot be"),
    ({"norm_first": "yes"}, "norm", "is 'yes', which cannot be"),
    ({"n_heads": None}, "n_heads", "The tensor shapes are the same"),
]


def test_a_value_that_cannot_be_is_said_and_asked(tmp_path):
    state = model().state_dict()
    for settings, field, said in IMPOSSIBLE:
        asked = reported(tmp_path, {"state_dict": state, "hyper_parameters": settings}).asked
        assert said in next(one.evidence for one in asked if one.name == field)


def test_words_of_a_vocabulary_are_no_settings(tmp_path):
    words = ["<pad>", "<s>", "</s>", "<unk>", *"abcd", "heads", *"efgh", "pad_id", *"ijk"]
    content = {"model": model().state_dict(), "vocab": {word: i for i, word in enumerate(words)}}
    assert {"n_heads", "pad_id"} <= {one.name for one in reported(tmp_path, content).asked}


def test_settings_that_contradict_the_tensors_are_not_used(tmp_path):
    state = model().state_dict()
    for key, value in {"d_model": 32, "n_layer": 6, "num_decoder_layers": 3, "dim_feedforward": 64}.items():
        report = reported(tmp_path, {"state_dict": state, "config": {**LIGHTNING, key: value}, "n_head": 8})
        assert any(f"The settings next to 'config.{key}' are not used: it is {value}" in one for one in report.notes)
        fields = {one.name: one for one in report.fields}
        assert fields["norm"].how == "asked"
        assert fields["n_heads"].value == 8, "what is not in that dictionary is used"


AVERAGES = {
    "ema": lambda own, other: ({"model": own, "ema": other}, "ema"),
    "deep": lambda own, other: ({"model": own, "ema": {"decay": 0.9, "shadow": other}}, "ema.shadow"),
    "callback": lambda own, other: ({"state_dict": own, "callbacks": {"EMA": {"ema_weights": other}}},
                                    "callbacks.EMA.ema_weights"),
    "wrapped": lambda own, other: ({"model": own, "model_ema": {f"module.{name}": one for name, one in other.items()}},
                                   "model_ema.module"),
    "prefixes": lambda own, other: ({"state_dict": {f"{prefix}.{name}": one for prefix, state in
                                                    (("model", own), ("ema_model", other))
                                                    for name, one in state.items()}}, "ema_model"),
}  # fmt: skip


@pytest.mark.parametrize("kind", AVERAGES)
def test_an_average_of_the_weights_is_a_choice_and_never_mixed(tmp_path, kind):
    own, other = (at_random(TorchModel(norm_first=True), seed=seed).eval() for seed in range(2))
    content, prefix = AVERAGES[kind](own.state_dict(), other.state_dict())
    (asked,) = [one for one in reported(tmp_path, content | {"args": NAMESPACE}).asked if one.name == "prefix"]
    choices = [choice.value for choice in asked.choices]
    assert len(choices) == 2
    for theirs, choice in ((own, next(one for one in choices if one != f"{prefix}.")), (other, f"{prefix}.")):
        same(theirs, load(tmp_path / "m.pt", answers={"prefix": choice}).model)


@pytest.mark.parametrize("has_index", [True, False])
def test_files_of_torch_save_in_parts(tmp_path, has_index):
    theirs = model()
    state = theirs.state_dict()
    names = [f"pytorch_model-0000{n}-of-00002.bin" for n in (1, 2)]
    for n, file in enumerate(names):
        torch.save({name: one for i, (name, one) in enumerate(state.items()) if i % 2 == n}, tmp_path / file)
    if has_index:
        weight_map = {name: names[i % 2] for i, name in enumerate(state)}
        (tmp_path / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": weight_map}))
    (tmp_path / "config.json").write_text(json.dumps(LIGHTNING))
    for source in (tmp_path, tmp_path / names[0]):
        same(theirs, load(source).model)
    (tmp_path / names[1]).unlink()
    refusal(lambda: load(tmp_path), f"{names[1]}: is missing")


@pytest.mark.parametrize("place", ["data/model.pth", "checkpoints/best.pt", "model/data/state_dict.pth"])
def test_a_folder_made_for_weights_is_found_with_its_tokenizer(tmp_path, place):
    theirs = at_random(TorchModel(norm_first=True, vocabs=(17, 17))).eval()
    (tmp_path / place).parent.mkdir(parents=True)
    (tmp_path / "MLmodel").write_text("flavors:\n  pytorch:\n    model_data: data\n")
    torch.save({"state_dict": theirs.state_dict(), "args": NAMESPACE}, tmp_path / place)
    if "model/" in place:
        torch.save(torch.nn.Linear(2, 2), tmp_path / "model" / "data" / "model.pth")  # the whole module, unopened
    pieces = ["<pad>", "<s>", "</s>", "<unk>", *"abcdefghijklm"]
    (tmp_path / place).with_name("vocab.json").write_text(json.dumps({piece: i for i, piece in enumerate(pieces)}))
    report = preview(tmp_path, answers={"prepend_source_bos": True, "append_source_eos": True}).report
    assert (report.pieces, report.asked) == (("vocab.json",), ())


def test_what_was_looked_at_is_said(tmp_path):
    refusal(lambda: preview(tmp_path), r"has no weights file, nor have its folders data, checkpoints")
    (tmp_path / "runs").mkdir()
    torch.save(model().state_dict(), tmp_path / "runs" / "best.pt")
    refusal(lambda: preview(tmp_path), r"has no weights file itself, but .*runs/best\.pt is one; open that")
    (tmp_path / "data").mkdir()
    for name in "ab":
        torch.save(model().state_dict(), tmp_path / "data" / f"{name}.pt")
    refusal(lambda: preview(tmp_path), r"several weights files \('data/a\.pt', 'data/b\.pt'\)")
