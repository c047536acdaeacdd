"""A file is known by its first bytes, whatever it is called, listed unopened, and refused with the way out."""

import json
import os
import shutil

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from glassformer.extensions.importers.library.readers import SUFFIXES
from glassformer.extensions.weight_files.weights import open_weights
from tests.extensions.refusing import refusal
from transformer.checkpoint.listing import listing

STATE = {"a": torch.arange(6.0).view(2, 3), "b": torch.ones(2)}
HOW = {
    "torch": lambda path: torch.save(STATE, path),
    "legacy": lambda path: torch.save(STATE, path, _use_new_zipfile_serialization=False),
    "safetensors": lambda path: save_file(STATE, path),
    "arrays": lambda path: np.savez(path.open("wb"), **{name: one.numpy() for name, one in STATE.items()}),
}
OTHERS = {
    "m.gguf": (b"GGUF\3\0\0\0", "gguf_file="),
    "ggml": (b"lmgg", "GGUF or GGML"),
    "m.onnx": (b"\x08\x08\x12\x07pytorch", "Open the model that was exported"),
    "hdf": (b"\x89HDF\r\n\x1a\n", "HDF5"),
    "m.ckpt.data-00000-of-00001": (b"\1\2\3\4", "TensorFlow"),
    "m.joblib": (b"\x80\x04\x95", "pickle file that torch.save did not write"),
    "m.msgpack": (b"\x81\xa6", "from_flax=True"),
    "model.bin": (b"\6\0\0\0\x10\0TransformerSpec\0", "CTranslate2"),
    "__0_0.distcp": (b"PK\3\4", "dcp_to_torch"),
    "m.md": (b"# about", "begins with b'# about'"),
}


def entries(root):
    return [(entry.name, entry.holds, entry.error is None) for entry in listing([root])]


@pytest.mark.parametrize(
    ("how", "name"),
    [("torch", "m.onnx"), ("torch", "m.tar"), ("torch", "m.safetensors"), ("legacy", "m"), ("legacy", "m.zip"),
     ("safetensors", "m.bin"), ("safetensors", "m.PT"), ("arrays", "checkpoint"), ("arrays", "m.pkl")],
)  # fmt: skip
def test_what_opens_opens_under_any_name(tmp_path, how, name):
    path = tmp_path / "m" / name
    path.parent.mkdir()
    HOW[how](path)
    for source in (path, path.parent):
        with open_weights(source) as weights:
            assert torch.equal(weights.read("a"), STATE["a"])
    assert entries(path.parent) == [(name, "foreign", True)]


@pytest.mark.parametrize("name", OTHERS)
def test_what_does_not_open_is_named_with_the_way_out(tmp_path, name):
    content, said = OTHERS[name]
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / name).write_bytes(content)
    for source in (tmp_path / "m" / name, tmp_path / "m")[: 1 if name == "m.md" else 2]:
        begins = f"{tmp_path / 'm' / name}: "
        assert said in refusal(lambda source=source: open_weights(source).__enter__(), begins=begins)


def test_files_and_folders_of_others_are_listed_and_not_opened(tmp_path):
    root = tmp_path / "root"
    for folder in ("dir.pt", "one", "theirs", "adapter"):
        (root / folder).mkdir(parents=True)
    for name in (*(f"m{suffix}" for suffix in SUFFIXES), ".hidden.pt", "notes.txt", "adapter/adapter_config.json"):
        (root / name).touch()
    options = np.frombuffer(b"type: transformer\0", np.int8)
    np.savez(root / "m.npz", encoder_Wemb=np.zeros((700, 500)), **{"special:model.yml": options})
    os.mkfifo(root / "pipe.pt")  # whoever opens it waits for ever
    (root / "one" / "weights.pth").write_bytes(b"no zip")
    (root / "theirs" / "config.json").write_text(json.dumps({"model_type": "gpt2", "d_model": 4}))
    (tmp_path / "outside.pt").touch()
    (root / "link.pt").symlink_to(tmp_path / "outside.pt")
    (root / "m.gguf").write_bytes(b"GGUF\3\0\0\0")
    found = entries(root)
    assert sorted(found) == sorted([
        *((name, "foreign", True) for name in ("adapter", "one", "theirs")),
        *((f"m{suffix}", "foreign", True) for suffix in SUFFIXES),
        *[one for one in found if one[0] in ("dir.pt", "m.gguf")],
    ])  # fmt: skip
    assert ("dir.pt", "model", False) in found
    assert next(one.error for one in listing([root]) if one.name == "m.gguf").startswith("m.gguf: is a GGUF")


def test_a_broken_one_of_ours_is_no_other_programs(checkpoint_folder, tmp_path):
    for name, damage in {"lost": None, "damaged": "{", "cut": '{"n_encoder_layers": 2}'}.items():
        shutil.copytree(checkpoint_folder, tmp_path / name)
        config = tmp_path / name / "config.json"
        config.unlink() if damage is None else config.write_text(damage)
    assert entries(tmp_path) == [(name, "model", False) for name in ("cut", "damaged", "lost")]
