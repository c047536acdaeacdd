"""Models of the hub are fetched, found offline and listed by name, and each failure is one sentence."""

import shutil
from types import SimpleNamespace

import numpy as np
import pytest
from huggingface_hub import constants

import transformer
from glassformer.extensions.hub import hub_cache
from glassformer.extensions.hub.hub_cache import cached, is_name, models, pull
from tests.extensions.hub.conftest import at
from tests.extensions.hub.stand_in_hub import COMMIT
from tests.extensions.refusing import refusal
from transformer.__main__ import main
from transformer.errors import CheckpointError


def test_a_name_opens_what_its_folder_opens_and_then_without_the_hub(hub, checkpoint_folder, monkeypatch):
    told = []
    folder = pull("our/tiny", progress=lambda done, whole: told.append((done, whole)))
    assert "tf_model.h5" not in hub.asked
    assert set(hub.asked) <= {one.name for one in checkpoint_folder.iterdir()}
    assert told[-1][0] == told[-1][1] > 0
    assert folder.name == COMMIT
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    opened, own = transformer.load("our/tiny"), transformer.load(checkpoint_folder)
    assert opened == own
    assert opened.name == "our/tiny"
    assert np.array_equal(opened.run("ba lo").cross, own.run("ba lo").cross)
    assert transformer.load(folder) == own


def test_a_name_that_is_not_in_the_cache_is_fetched_and_then_pinned(hub):
    transformer.load("our/tiny")
    hub.asked.clear()
    transformer.load("our/tiny")
    assert hub.asked == []
    assert transformer.load("our/tiny@v1").name == "our/tiny"


REFUSED = {
    "no/such": "no/such: {hub} has no model of this name, or it is private",
    "closed/gated": "closed/gated: its authors give it only to those who agreed to their terms",
    "our/tiny@v9": "our/tiny: has no revision 'v9'; its page lists them.",
    "some/vit": "some/vit/config.json: model_type: found 'vit'",
    "some/onnx": "some/onnx: has no weights that this program reads",
    "some/files": "some/files: has no config.json, so it is not a model that this program opens.",
    "busy/hub": "busy/hub: {hub} answered with status 500; try again later.",
    "not a name": "'not a name': a model of the hub has a name such as",
}


def test_what_cannot_be_fetched_is_one_sentence(hub):
    for name, said in REFUSED.items():
        refusal(lambda name=name: pull(name), begins=said.format(hub=hub.url))
    assert not {"model.safetensors", "model.onnx"} & set(hub.asked)


def test_without_a_network_or_room_it_says_so(hub, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=0))
    refusal(lambda: pull("our/tiny"), r"our/tiny: needs .* bytes of disk space, .* Make room, or set HF_HOME")
    assert cached("our/tiny") is None  # it has its settings, not its weights
    at("http://127.0.0.1:9", monkeypatch)
    refusal(lambda: pull("our/tiny"), r"our/tiny: is not in the cache, and .* cannot be reached")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    refusal(lambda: transformer.load("our/tiny"), "HF_HUB_OFFLINE forbids to fetch it")


def test_the_cache_is_listed_with_what_does_not_open(hub, capsys):
    assert models() == []
    pull("our/tiny")
    with pytest.raises(CheckpointError):
        pull("some/vit")
    listed = {one.name: one for one in models()}
    assert listed["our/tiny"].entry.error is None
    assert listed["our/tiny"].revision == COMMIT
    assert listed["our/tiny"].n_bytes > 0
    assert "found 'vit'" in listed["some/vit"].entry.error  # no pull would help
    assert main(["pull", "our/tiny"]) == 0
    assert COMMIT in capsys.readouterr().out
    assert main(["models"]) == 0
    said = capsys.readouterr().out
    assert "our/tiny" in said
    assert "opens" in said


def test_a_link_of_the_cache_leads_into_its_own_repository_only(hub, tmp_path):
    folder = pull("our/tiny")
    other = tmp_path / "cache" / "models--some--other" / "blobs"
    other.mkdir(parents=True)
    shutil.copy(folder / "config.json", other / "secret")
    (folder / "config.json").unlink()
    (folder / "config.json").symlink_to(other / "secret")
    refusal(lambda: transformer.load(folder), "is a link that points outside")


def test_what_a_name_is():
    odd = ("gpt2", "a/b/c", "../etc/passwd", "a/..", "a--b/c", "a/b\n", "a/" + "b" * 200, "runs/model.pt")
    assert all(map(is_name, ("Helsinki-NLP/opus-mt-zh-en", "a/b@refs")))
    assert not any(map(is_name, odd))


def test_of_weights_in_several_formats_one_is_chosen():
    both = {"config.json", "pytorch_model.bin", "model.safetensors", "vocab.txt", "README.md", "flax_model.msgpack"}
    assert hub_cache.chosen("a/b", both) == {"config.json", "model.safetensors", "vocab.txt"}
    shards = {f"model-0000{n}-of-00002.safetensors" for n in (1, 2)}
    index = {"model.safetensors.index.json"}
    assert hub_cache.chosen("a/b", {"pytorch_model.bin"} | shards | index) == shards | index
    pickled = {"pytorch_model-00001-of-00001.bin", "pytorch_model.bin.index.json"}
    assert hub_cache.chosen("a/b", pickled | {"config.json"}) == pickled | {"config.json"}
    assert hub_cache.chosen("a/b", pickled | {"pytorch_model.bin"}) == {"pytorch_model.bin"}
