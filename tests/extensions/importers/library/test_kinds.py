"""A file is known by its first bytes, whatever it is called, and what does not open is named with the way out."""

import os
import pickle
import zipfile

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from glassformer.extensions.weight_files.library.weights import open_weights
from transformer.checkpoint.listing import listing
from transformer.errors import CheckpointError

STATE = {"a": torch.arange(6.0).view(2, 3), "b": torch.ones(2)}
NAMES = ("m.tar", "m.pkl", "m", "m.weights", "m.PT", "m.zip", "m.onnx", "m.safetensors", "m.bin", "checkpoint", "a.b.c")
HOW = {
    "torch": lambda path: torch.save(STATE, path),
    "legacy": lambda path: torch.save(STATE, path, _use_new_zipfile_serialization=False),
    "safetensors": lambda path: save_file(STATE, path),
    "arrays": lambda path: np.savez(path.open("wb"), **{name: one.numpy() for name, one in STATE.items()}),
}
OTHERS = {
    "m.gguf": (b"GGUF\3\0\0\0", "gguf_file="),
    "m.bin": (b"GGUF\3\0\0\0", "GGUF"),
    "ggml": (b"lmgg", "GGUF or GGML"),
    "m.onnx": (b"\x08\x08\x12\x07pytorch", "Open the model that was exported"),
    "onnx": (b"\x08\x0a\x3a\x07graph", "ONNX"),
    "m.h5": (b"\x89HDF\r\n\x1a\n", "Keras"),
    "hdf": (b"\x89HDF\r\n\x1a\n", "HDF5"),
    "saved_model.pb": (b"\x08\x01\x12\xb2", "TensorFlow"),
    "m.ckpt.index": (b"\0\0\1\2", "TensorFlow"),
    "m.ckpt.data-00000-of-00001": (b"\1\2\3\4", "TensorFlow"),
    "checkpoint": (b'model_checkpoint_path: "m"', "TensorFlow"),
    "m.npy": (b"\x93NUMPY\1\0", "numpy.savez"),
    "m.joblib": (b"\x80\x04\x95", "pickle file that torch.save did not write"),
    "old.pkl": (pickle.dumps([1], 0), "pickle file that torch.save did not write"),
    "m.msgpack": (b"\x81\xa6", "from_flax=True"),
    "model.bin": (b"\6\0\0\0\x10\0TransformerSpec\0", "CTranslate2"),
    "m.tgz": (b"\x1f\x8b\x08", "unpack it"),
    "__0_0.distcp": (b"PK\3\4", "dcp_to_torch"),
    "m.md": (b"# about", "begins with b'# about'"),
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("how", HOW)
def test_what_opens_opens_under_any_name(tmp_path, how, name):
    path = tmp_path / "m" / name
    path.parent.mkdir()
    HOW[how](path)
    for source in (path, path.parent):
        with open_weights(source) as weights:
            assert torch.equal(weights.read("a"), STATE["a"])
    assert [(one.name, one.holds, one.error) for one in listing([path.parent])] == [(name, "foreign", None)]


@pytest.mark.parametrize("name", OTHERS)
def test_what_does_not_open_is_named_with_the_way_out(tmp_path, name):
    content, said = OTHERS[name]
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / name).write_bytes(content)
    for source in (tmp_path / "m" / name, tmp_path / "m")[: 1 if name == "m.md" else 2]:
        with pytest.raises(CheckpointError) as caught, open_weights(source):
            pass
        assert said in str(caught.value)
        assert str(caught.value).startswith(f"{tmp_path / 'm' / name}: ")


def test_keras_archives_and_programs_of_pytorch_are_named_too(tmp_path):
    with zipfile.ZipFile(tmp_path / "keras", "w") as archive:
        archive.writestr("metadata.json", "{}")
    torch.jit.save(torch.jit.script(torch.nn.Linear(2, 2)), tmp_path / "script")
    for name, said in (("keras", "Keras"), ("script", "TorchScript")):
        with pytest.raises(CheckpointError, match=said), open_weights(tmp_path / name):
            pass


def test_a_list_says_what_a_file_is_and_waits_for_no_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "notes").write_text("no model")
    (tmp_path / "backup.tar.gz").write_bytes(b"\x1f\x8b\x08")
    (tmp_path / "m.gguf").write_bytes(b"GGUF\3\0\0\0")
    (one,) = listing([tmp_path])
    assert one.error.startswith("m.gguf: is a GGUF")


def test_a_folder_without_weights_names_those_below_it(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "MLmodel").write_text("flavors: {}")
    torch.save(STATE, tmp_path / "data" / "model.pth")
    with pytest.raises(CheckpointError, match=r"no weights file itself, but .*data/model\.pth is one"):
        open_weights(tmp_path).__enter__()
