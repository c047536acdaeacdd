"""Weights of others are read one tensor at a time, once into memory, and nothing outside their folder is."""

import json
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save_file

from glassformer.extensions.weight_files.weight_folder import INDEX
from glassformer.extensions.weight_files.weights import open_weights
from tests.extensions.refusing import made_or_refused, refusal
from tests.extensions.tokenizers.test_filling import raw
from transformer.checkpoint import free_memory
from transformer.checkpoint.load import load
from transformer.errors import CheckpointError

ROOT = Path(__file__).resolve().parents[3]


def a_state(seed=0):
    torch.manual_seed(seed)
    return {
        "encoder.weight": torch.randn(5, 7),
        "half": torch.randn(3, 4).half(),
        "brain": torch.randn(6).bfloat16(),
        "one": torch.tensor(2.5),
        "none": torch.empty(0, 3),
        "mask": torch.ones(2, 2, dtype=torch.bool),
        "steps": torch.tensor([7]),
    }


def refused(source, message):
    return refusal(lambda: open_weights(source).__enter__(), message)


def sharded(folder, weight_map=None, **files):
    folder.mkdir(exist_ok=True)
    for name, state in files.items():
        save_file(state, folder / f"{name}.safetensors")
    if weight_map is None:
        weight_map = {tensor: f"{name}.safetensors" for name, state in files.items() for tensor in state}
    (folder / INDEX).write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": weight_map}))
    return folder


def test_every_float_is_read_as_float32_and_what_is_not_is_known_by_name(tmp_path):
    state = a_state()
    save_file(state, tmp_path / "model.safetensors")
    with open_weights(tmp_path) as weights:
        assert {name: info.shape for name, info in weights.tensors.items()} == {
            name: tuple(tensor.shape) for name, tensor in state.items()
        }
        for name in ("encoder.weight", "half", "brain", "one", "none"):
            found = weights.read(name)
            assert found.dtype == torch.float32
            assert torch.equal(found, state[name].float())
        assert weights.tensors["mask"].dtype == "BOOL"
        refusal(lambda: weights.read("mask"), "'mask' has dtype BOOL")


def test_a_tensor_goes_where_it_will_stay_in_whatever_layout(tmp_path):
    big = torch.randn(3000, 1500).half()  # more than is read at once
    save_file({"big": big}, tmp_path / "a.safetensors")
    by_columns = torch.empty(1500, 3000).t()
    with open_weights(tmp_path / "a.safetensors") as weights:
        assert weights.read("big", by_columns) is by_columns
    assert torch.equal(by_columns, big.float())


BAD_NAMES = ["../a.safetensors", "/etc/a.safetensors", "b/a.safetensors", "a.bin", "", 3, None, "a\n.safetensors",
             "..\\a.safetensors", "C:a.safetensors", ".a.safetensors", "x" * 300 + ".safetensors"]  # fmt: skip


def test_an_index_names_plain_files_of_its_folder_only(tmp_path):
    save_file({"a": torch.ones(1)}, tmp_path / "a.safetensors")
    for name in BAD_NAMES:
        folder = sharded(tmp_path / "m", {"a": name}, one={"a": torch.ones(1)})
        assert "as the file of tensor 'a'" in refused(folder, "the same folder")


def test_an_index_and_its_files_agree(tmp_path):
    one, second = {"a": torch.ones(1)}, {"b": torch.randn(2, 2).half()}
    with open_weights(sharded(tmp_path / "good", one=one, two=second)) as weights:
        assert list(weights.tensors) == ["a", "b"]
        assert torch.equal(weights.read("b"), second["b"].float())
    refused(sharded(tmp_path / "gone", {"a": "no.safetensors"}), "gone/no.safetensors: is missing")
    refused(sharded(tmp_path / "less", {"a": "one.safetensors", "b": "one.safetensors"}, one=one), "'b' is missing")
    refused(sharded(tmp_path / "more", {"a": "one.safetensors"}, one=one | {"c": torch.ones(1)}), "does not list")
    both = {"a": "one.safetensors", "b": "two.safetensors"}
    twice = sharded(tmp_path / "twice", both, one=one, two={"a": torch.ones(1), "b": torch.ones(1)})
    refused(twice, "contains tensor 'a', which is also in 'one.safetensors'")
    for text in ("[]", "{}", '{"weight_map": []}', '{"weight_map": {}}', "{", "NaN"):
        folder = sharded(tmp_path / "text")
        (folder / INDEX).write_text(text)
        refused(folder, "weight_map|not JSON|is not a valid number in JSON")


def test_links_that_leave_the_folder_and_pipes_are_not_opened(tmp_path):
    save_file({"a": torch.ones(1)}, tmp_path / "outside.safetensors")
    folder = tmp_path / "m"
    folder.mkdir()
    (folder / "model.safetensors").symlink_to(tmp_path / "outside.safetensors")
    refused(folder, "link that points outside the folder")
    linked = sharded(tmp_path / "s", {"a": "one.safetensors"})
    (linked / "one.safetensors").symlink_to(tmp_path / "outside.safetensors")
    refused(linked, "link that points outside the folder")
    for name in ("model.safetensors", "weights.pt"):
        pipe = tmp_path / f"p-{name}"
        pipe.mkdir()
        os.mkfifo(pipe / name)
        refused(pipe, "not a regular file")


def test_a_folder_says_what_it_lacks(tmp_path):
    refused(tmp_path / "no", "no such file or folder")
    (tmp_path / "pytorch_model.bin.index.json").write_text("{}")
    refused(tmp_path, "expected weight_map")


def test_a_file_that_is_replaced_or_cut_meanwhile_ends_in_an_error_not_the_process(tmp_path):
    path = tmp_path / "model.safetensors"
    save_file({"a": torch.ones(1)}, path)
    with pytest.raises(CheckpointError, match="its files are being replaced"), open_weights(tmp_path):
        save_file({"a": torch.ones(2**20)}, path)
    with ExitStack() as stack:
        weights = stack.enter_context(open_weights(tmp_path))
        os.truncate(path, 1000)
        refusal(lambda: weights.read("a"), "changed while it was being read")
        with pytest.raises(CheckpointError, match="its files are being replaced"):
            stack.close()


def test_a_tensor_that_does_not_fit_is_refused_before_it_is_read(tmp_path, monkeypatch):
    save_file({"a": torch.ones(1000, dtype=torch.float16)}, tmp_path / "model.safetensors")
    monkeypatch.setattr(free_memory, "available", lambda: 3_999)
    with open_weights(tmp_path) as weights, pytest.raises(CheckpointError, match=r"4,000 bytes .* 3,999 are free"):
        weights.read("a")
    monkeypatch.setattr(free_memory, "available", lambda: 4_000)
    with open_weights(tmp_path) as weights:
        assert torch.equal(weights.read("a"), torch.ones(1000))


# One process imports torch; each folder is read in copies of it, with so much memory as a share of the model's size.
# The limit is on what is allocated: what counts as resident differs between machines.
READ_WITHIN = """
import os, resource, sys
from pathlib import Path
import torch
from transformer.checkpoint.load import load
from transformer.errors import CheckpointError
from glassformer.extensions.weight_files.weights import open_weights
def taken():
    return next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith("VmData"))
torch.set_num_threads(1)
torch.ones(2**20).half().float()
for size, folder in zip(map(int, sys.argv[1::2]), sys.argv[2::2]):
    native = Path(folder, "config.json").exists()
    for share in (0.9, 1.45 if native else 1.3):  # a model takes 1.14, and 1.64 with the file's 16 bits beside it
        if not os.fork():
            resource.setrlimit(resource.RLIMIT_DATA, (int(taken() + share * size),) * 2)
            try:
                if native:
                    kept = load(folder)
                else:
                    with open_weights(Path(folder)) as weights:
                        kept = {name: weights.read(name) for name in weights.tensors}
                print("read", flush=True)
            except (RuntimeError, MemoryError, CheckpointError):
                print("too large", flush=True)
            os._exit(0)
        os.wait()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is one of Linux")
def test_a_model_is_in_memory_once(tmp_path):
    state = {"table": torch.zeros(20_000, 512), **{f"layer.{i}": torch.zeros(1024, 1024) for i in range(8)}}
    (folder := tmp_path / "halves").mkdir()
    save_file({name: tensor.half() for name, tensor in state.items()}, folder / "model.safetensors")
    sizes = {"src_vocab_size": 30_000, "tgt_vocab_size": 30_000, "d_model": 256, "n_heads": 4, "d_ff": 1024}
    model = load(raw(tmp_path / "native", torch.float16, **sizes)).model
    most = {"native": 4 * model.config.count_parameters()}
    weights = sum(4 * tensor.numel() for tensor in state.values())
    arguments = [part for one in tmp_path.iterdir() for part in (str(most.get(one.name, weights)), str(one))]
    command = [sys.executable, "-c", READ_WITHIN, *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["too large", "read"] * 2


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.just("one.safetensors"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["weight_map", "a", "b"]), inner),
    max_leaves=8,
)


@given(record=JSON)
def test_an_index_of_any_json_is_read_or_refused(tmp_path_factory, record):
    folder = sharded(tmp_path_factory.mktemp("index"), {}, one={"a": torch.ones(1)})
    (folder / INDEX).write_text(json.dumps(record))

    def tensors():
        with open_weights(folder) as weights:
            return list(weights.tensors)

    assert made_or_refused(tensors, str(folder)) in (None, ["a"])
