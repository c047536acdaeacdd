"""A file of torch.save is opened in a process of its own, within limits, and nothing in it is ever run."""

import collections
import io
import os
import pickle
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn

from glassformer.extensions.weight_files import pickle_worker, pickles
from glassformer.extensions.weight_files.weights import open_weights
from tests.extensions.refusing import made_or_refused
from tests.extensions.weight_files.saving import Touch, refused, saved
from transformer.files import kinds

pytestmark = pytest.mark.usefixtures("forked")  # what a file may take is limited there


def rezipped(path, change, method=zipfile.ZIP_STORED):
    """The same archive with its records changed: `change` gets and gives their bytes."""
    out = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(out, "w", method) as new:
        for record in old.infolist():
            new.writestr(record.filename, change(record.filename, old.read(record)))
    path.write_bytes(out.getvalue())
    return path


@pytest.mark.parametrize("new", [True, False], ids=["zip", "legacy"])
def test_a_dictionary_of_tensors(tmp_path, model, new):
    state = model.state_dict() | {
        "half": torch.randn(3).half(),
        "turned": torch.randn(3, 2).t(),
        "part": torch.randn(9)[3:5],
        "one": torch.tensor(3.0),
        "none": torch.empty(0, 2),
        "double": torch.randn(2).double(),
        "parameter": nn.Parameter(torch.randn(2)),
        "mask": torch.ones(2, dtype=torch.bool),
    }
    path = saved(tmp_path / "model.pt", collections.OrderedDict(state), _use_new_zipfile_serialization=new)
    with open_weights(path) as weights:
        assert set(weights.tensors) == set(state)
        for name, tensor in state.items():
            if tensor.is_floating_point():
                assert torch.equal(weights.read(name), tensor.detach().float())
        assert (weights.tensors["half"].dtype, weights.tensors["mask"].dtype) == ("F16", "BOOL")


def test_tensors_that_are_one_stay_tied(tmp_path, model):
    model[1].weight = model[0].weight
    path = saved(tmp_path / "model.pt", model.state_dict() | {"equal": model[0].weight.detach().clone()})
    with open_weights(path) as weights:
        assert weights.ties == {"1.weight": "0.weight"}
        assert torch.equal(weights.read("1.weight"), weights.read("equal"))


def test_a_whole_model_is_refused_with_the_lines_that_save_it_rightly(tmp_path, model):
    text = refused(saved(tmp_path / "model.pt", model), "torch.nn.modules.container.Sequential")
    assert "state = model.state_dict()" in text
    assert 'torch.save(state, "weights.pt")' in text


@pytest.mark.parametrize("new", [True, False], ids=["zip", "legacy"])
@pytest.mark.parametrize("behind", [b"", b"garbage" * 100], ids=["", "with garbage behind"])
def test_a_pickle_that_would_run_code_runs_nothing(tmp_path, new, behind):
    marker = tmp_path / "marker"
    for n, content in enumerate([Touch(marker), {"model": {"a": torch.ones(1)}, "b": [Touch(marker)]}]):
        path = saved(tmp_path / f"{n}.pt", content, _use_new_zipfile_serialization=new)
        path.write_bytes(path.read_bytes() + behind)
        refused(path, "posix.system|damaged")
    path = tmp_path / "plain.pt"
    path.write_bytes(pickle.dumps(Touch(marker)) + behind)
    refused(path, "pickle file that torch.save did not write")
    assert not marker.exists()


def test_the_child_sees_no_secrets_and_has_limited_time(tmp_path, monkeypatch, model):
    """As it really is it opens the files that are uploaded in `test_upload_worker`."""
    seen, real = {}, pickles.subprocess.run
    monkeypatch.setenv("A_PASSWORD", "x")
    monkeypatch.setattr(pickles.subprocess, "run", lambda *a, **k: seen.update(k) or real(*a, **k))
    with open_weights(saved(tmp_path / "m.pt", {"state": model.state_dict()})) as weights:
        assert torch.equal(weights.read("state.0.weight"), model[0].weight)
    assert "A_PASSWORD" not in seen["env"]
    assert seen["timeout"] < 100


def test_memory_is_limited(tmp_path, started):
    """A record of the old format says how large it is, and PyTorch believes it."""
    path = saved(tmp_path / "long.pt", {"a": torch.zeros(2000)}, _use_new_zipfile_serialization=False)
    claimed = path.read_bytes().replace(b"M" + struct.pack("<H", 2000), b"J" + struct.pack("<i", 2**31 - 1))
    assert len(claimed) > path.stat().st_size
    path.write_bytes(claimed)
    # Where a system lets a process reserve more than its limit, PyTorch sees afterwards that the sizes differ.
    refused(path, "more memory|damaged or not a weights file: reading it stopped with 'RuntimeError'")
    code = """if True:
        import resource, pickle_worker
        pickle_worker._limit(1000)
        print(*resource.getrlimit(resource.RLIMIT_AS), open("/proc/self/statm").read().split()[0])"""
    command = [sys.executable, "-c", code]
    printed = subprocess.run(
        command, cwd=pickles.CHILD.parent, capture_output=True, text=True, check=True
    ).stdout.split()
    soft, hard, pages = map(int, printed)
    assert soft == hard
    assert 0 < soft - pages * os.sysconf("SC_PAGE_SIZE") <= 2**28 + 2000


BEGINNINGS = {
    b"": "is empty",
    b"version https://git-lfs.github.com/spec/v1\n": "Git LFS pointer",
    b"  <!DOCTYPE html><html>": "web page",
    b"\0\1\2\3": "not a weights file that opens here: it begins with",
    b"PK\x03\x04" + b"\0" * 500: "cut off",
    kinds.LEGACY: "damaged",
    kinds.LEGACY + b"\0" * 500: "damaged",
}


def test_what_is_something_else_or_cut_off_is_called_so(tmp_path):
    path = tmp_path / "model.pt"
    for content, message in BEGINNINGS.items():
        path.write_bytes(content)
        refused(path, message)
    for new in (True, False):
        content = saved(path, {"a": torch.randn(5000)}, _use_new_zipfile_serialization=new).read_bytes()
        for share in (0.1, 0.99):
            path.write_bytes(content[: int(len(content) * share)])
            refused(path, "damaged")


def test_a_compressed_record_is_refused_before_it_is_unpacked(tmp_path):
    path = saved(tmp_path / "m.pt", {"a": torch.zeros(5_000_000)})
    rezipped(path, lambda _, content: content, zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 200_000
    refused(path, "is compressed")


def test_one_tensor_with_thousands_of_names_or_larger_than_its_file(tmp_path):
    refused(saved(tmp_path / "wide.pt", {"a": torch.zeros(1).expand(10**10)}), "claim 40,000,000,000 bytes")
    storage = torch.ones(1000, 1000)
    many = {f"layers.{i}.weight": storage for i in range(600)}
    refused(saved(tmp_path / "m.pt", many), "one tensor under more than 512 names, .* save each tensor only once")
    few = {name: many[name] for name in list(many)[:512]}
    with open_weights(saved(tmp_path / "n.pt", few)) as weights:
        assert (len(weights.tensors), len(weights.ties)) == (512, 511)


def test_lists_that_share_their_items_without_end(tmp_path, monkeypatch):
    monkeypatch.setattr(pickle_worker, "MAX_NODES", 5_000)
    lists = []
    for _ in range(9):
        lists = [lists] * 10
    refused(saved(tmp_path / "m.pt", {"a": torch.ones(1), "b": lists}), "too many values")
    round_ = []
    round_.append(round_)
    refused(saved(tmp_path / "n.pt", {"a": torch.ones(1), "b": round_}), "too many values")


def test_tensors_of_odd_kinds_are_named(tmp_path):
    for tensor, kind in (
        (torch.eye(3).to_sparse(), "sparse"),
        (torch.eye(3).to_sparse_csr(), "sparse"),
        (torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8), "quantised"),
        (torch.empty(3, device="meta"), "without values"),
        (torch.ones(3, dtype=torch.complex128), "complex"),
    ):
        text = refused(saved(tmp_path / "m.pt", {"model": {"b": torch.ones(1), "a.weight": tensor}}), kind)
        assert "'a.weight'" in text


ARCHIVES = {
    "m/archive_format": "exported program", "a.txt": "torch.save did not write", "metadata.json": "Keras",
}  # fmt: skip


def test_programs_and_other_archives(tmp_path):
    torch.jit.save(torch.jit.script(nn.Linear(2, 2)), tmp_path / "script.pt")
    refused(tmp_path / "script.pt", "TorchScript")
    for name, message in ARCHIVES.items():
        with zipfile.ZipFile(tmp_path / "other.pt", "w") as archive:
            archive.writestr(name, "pt2")
        refused(tmp_path / "other.pt", message)


BAD_CHILDREN = {
    "": "stopped unexpectedly",
    "open('outline.json', 'w').write('{')": "cannot be used",
    "open('outline.json', 'w').write('{\"refused\": [], \"found\": 1}')": "1",
}


def test_a_child_that_is_slow_or_hands_back_nonsense_is_not_believed(tmp_path, model, monkeypatch, started):
    path, child = saved(tmp_path / "m.pt", model.state_dict()), tmp_path / "child.py"
    monkeypatch.setattr(pickles, "CHILD", child)
    for code, message in BAD_CHILDREN.items():
        child.write_text(code)
        refused(path, message)
    child.write_text("import time\ntime.sleep(60)")
    monkeypatch.setattr(pickles, "SECONDS", 0.01)
    refused(path, "takes longer")


def test_a_disk_without_room(tmp_path, model, monkeypatch):
    usage = collections.namedtuple("usage", "free")
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage(10))
    refused(saved(tmp_path / "m.pt", model.state_dict()), "10 are free")


@given(start=st.binary(max_size=80))
def test_any_beginning_is_a_file_of_torch_or_refused_in_a_sentence(start):
    read = made_or_refused(lambda: pickles.check_kind(start, label="m/x.pt") or True, "m/x.pt: ")
    assert start.startswith((kinds.ZIP, kinds.LEGACY)) == bool(read)


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.floats(0, 0.999), byte=st.integers(0, 255), new=st.booleans())
def test_a_file_with_a_wrong_byte_is_opened_or_refused(tmp_path_factory, place, byte, new):
    path = tmp_path_factory.mktemp("m") / "m.pt"
    saved(path, {"a": torch.ones(8), "b": [1, "x"]}, _use_new_zipfile_serialization=new)
    content = bytearray(path.read_bytes())
    content[int(place * len(content))] = byte
    path.write_bytes(content)

    def read():
        with open_weights(path) as weights:
            return [weights.read(name) for name, info in weights.tensors.items() if info.dtype == "F32"]

    made_or_refused(read, f"{path}: ")


def test_nothing_stays_behind_but_what_is_kept_to_start_no_process_again(tmp_path, model, monkeypatch):
    path, runs, run = saved(tmp_path / "m.pt", model.state_dict()), [], pickles._run
    monkeypatch.setattr(pickles, "_run", lambda *given, **named: runs.append(given[2]) or run(*given, **named))

    def read():
        with open_weights(path) as weights:
            return weights.read("0.weight")

    read(), read()
    assert len(runs) == 2
    pickles.keep(1)
    try:
        assert torch.equal(read(), read())
        assert len(runs) == 3
        model[0].weight.data += 1
        saved(path, model.state_dict())
        assert torch.equal(read(), model[0].weight)
        assert len(runs) == 4
        assert [Path(folder).exists() for folder in runs] == [False, False, False, True]
    finally:
        pickles.keep(0)
    assert not Path(runs[3]).exists()
