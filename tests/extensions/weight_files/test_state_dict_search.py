"""Weights are found in whatever dictionary they were saved in, without wrappers' prefixes; the rest is evidence."""

import collections

import pytest
import torch

from glassformer.extensions.weight_files.weights import open_weights
from tests.extensions.weight_files.saving import refused, saved


def test_what_stands_beside_the_weights_is_evidence(tmp_path, model):
    adam = torch.optim.Adam(model.parameters())
    content = {
        "epoch": 3, "loss": 0.5, "name": "toy", "worst": float("nan"), "huge": 10**60, "best": torch.tensor(1.0),
        "config": {"n_heads": 4, "sizes": [1, 2], "words": {"a": 0}}, "optimizer_state_dict": adam.state_dict(),
        "model_state_dict": model.state_dict(), "counter": collections.Counter("aab"),
    }  # fmt: skip
    with open_weights(saved(tmp_path / "model.pt", content)) as weights:
        assert set(weights.tensors) == set(model.state_dict())
        assert weights.evidence == {
            "epoch": 3, "loss": 0.5, "name": "toy", "counter": {"a": 2, "b": 1},
            "config": {"n_heads": 4, "sizes": [1, 2], "words": {"a": 0}},
        }  # fmt: skip
        assert weights.settings == {
            "epoch": 3, "loss": 0.5, "name": "toy", "counter.a": 2, "counter.b": 1, "config.n_heads": 4,
            "config.words.a": 0,
        }  # fmt: skip
        assert [str(note) for note in weights.notes] == [
            "The weights are taken from the entry 'model_state_dict' of the file."
        ]


@pytest.mark.parametrize("name", ["model", "state_dict", "model_state_dict", "net"])
def test_a_wrapped_dictionary_is_found_by_its_name(tmp_path, model, name):
    with open_weights(saved(tmp_path / "m.pth", {name: model.state_dict(), "ema": model.state_dict()})) as weights:
        assert set(weights.tensors) == set(model.state_dict())


def test_halves_of_a_model_that_were_saved_apart(tmp_path, model):
    state = model.state_dict()
    with open_weights(saved(tmp_path / "m.pt", {"encoder_state_dict": state, "decoder": state, "epoch": 1})) as weights:
        assert set(weights.tensors) == {f"{half}.{name}" for half in ("encoder", "decoder") for name in state}
        assert weights.evidence == {"epoch": 1}


@pytest.mark.parametrize("prefix", ["_orig_mod.", "module._orig_mod.", "_orig_mod.module.", ""])
def test_prefixes_of_wrappers_are_left_out(tmp_path, model, prefix):
    state = {prefix + name: tensor for name, tensor in model.state_dict().items()}
    with open_weights(saved(tmp_path / "m.bin", state)) as weights:
        assert set(weights.tensors) == set(model.state_dict())
        assert bool(weights.notes) == bool(prefix)
        assert torch.equal(weights.read("0.weight"), model[0].weight)


def test_a_part_that_was_compiled_and_names_that_then_clash(tmp_path):
    one = torch.ones(1)
    with open_weights(saved(tmp_path / "m.pt", {"encoder._orig_mod.a": one, "module.b": one})) as weights:
        assert set(weights.tensors) == {"encoder.a", "module.b"}
    refused(saved(tmp_path / "n.pt", {"_orig_mod.a": one, "a": one}), "two tensors have the name 'a'")


def test_what_holds_no_dictionary_of_tensors(tmp_path, model):
    for content in ([torch.ones(1)], torch.ones(2), {"epoch": 3}, {}, 7, "text"):
        refused(saved(tmp_path / "m.pt", content), "contains no tensors|expected a dictionary")
    packed = torch.ao.quantization.quantize_dynamic(model, {torch.nn.Linear}, dtype=torch.qint8)
    refused(saved(tmp_path / "m.pt", packed.state_dict()), "is quantised")
    refused(saved(tmp_path / "n.pt", list(model.state_dict().values())), "dictionary of named tensors, found a list")


@pytest.mark.parametrize(
    ("first", "other"),
    [("model", "best_model"), ("state_dict", "model_ema"), ("model", "model_state_dict"), ("model", "swa")],
)
def test_two_models_in_one_dictionary_are_both_there_to_be_asked_about(tmp_path, model, first, other):
    state, epoch = model.state_dict(), {"epoch": 3, "optimizer": torch.optim.Adam(model.parameters()).state_dict()}
    average = {name: tensor + 1 for name, tensor in state.items()}
    if other == "swa":
        average = {"n_averaged": torch.tensor(3), **{f"module.{name}": tensor for name, tensor in average.items()}}
    with open_weights(saved(tmp_path / "m.pt", {other: average, **epoch, first: state})) as weights:
        names = {name.rsplit(".", 2)[0] for name in weights.tensors if not name.endswith("n_averaged")}
        assert len(names) == 2
        assert len(weights.tensors) == len(state) + len(average)
    with open_weights(saved(tmp_path / "n.pt", {first: state, other: dict(state)})) as weights:  # the same twice
        assert set(weights.tensors) == set(state)


def test_maps_that_are_stored_head_by_head_are_put_together(tmp_path):
    parts = {f"a.heads.{h}.key.weight": torch.randn(3, 5) for h in range(11)}
    others = {
        "a.heads.0.tril": torch.ones(2, 2),
        "heads.1.out.weight": torch.ones(2, 2),
        "heads.0.weight": torch.ones(2),
    }
    with open_weights(saved(tmp_path / "m.pt", {**others, **parts})) as weights:
        assert set(weights.tensors) == {"a.heads.key.weight", *others}  # others are not counted from 0, or no maps
        assert weights.tensors["a.heads.key.weight"].shape == (33, 5)
        assert torch.equal(weights.read("a.heads.key.weight"), torch.cat([*parts.values()]))
        assert "put together: a.heads.key.weight" in str(weights.notes[-1])
        assert len(weights.heads["a.heads.key.weight"].parts) == 11
