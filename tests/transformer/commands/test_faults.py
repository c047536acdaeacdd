"""What goes wrong around a command ends in one sentence: Ctrl-C, bytes that are no text, a full disk."""

import dataclasses
import io
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from glassformer.extensions.training.library import keeping, run
from glassformer.extensions.training.library.run import train
from tests.extensions.training.library.training_jobs import make_job, train_and_stop
from transformer.__main__ import INTERRUPTED, main
from transformer.errors import DataError

ROOT = Path(__file__).parents[3]
REVERSE = str(ROOT / "checkpoints" / "reverse")
posix = pytest.mark.skipif(sys.platform == "win32", reason="limits and /dev/full are of POSIX systems")


@pytest.fixture
def job(tmp_path, monkeypatch):
    monkeypatch.setattr(run, "keep_freed_memory", lambda: None)
    return make_job(tmp_path)


def said(capsys):
    """The line that the last command ended with on standard error, after its progress bars."""
    error = capsys.readouterr().err
    assert "Traceback" not in error
    return error.strip().splitlines()[-1]


# train


def options(job, *more):
    model = ["--layers", "1", "--d-model", "16", "--heads", "2", "--d-ff", "32", "--src-vocab", "40"]
    files = ["--train", str(job.train), "--dev", str(job.dev), "--out", str(job.out)]
    settings = ["--shared-vocab", "--pieces", "char", "--epochs", "3", "--precision", "fp32", "--device", "cpu"]
    return ["train", *files, *model, *settings, *more]


@pytest.mark.parametrize("begun", [False, True])
def test_ctrl_c_says_how_to_go_on(job, monkeypatch, capsys, begun):
    write_state = keeping.write_state

    def stop(*arguments, **options):
        if begun:
            write_state(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(*((keeping, "write_state") if begun else (run, "learn_vocabulary")), stop)
    assert main(options(job)) == INTERRUPTED
    error = said(capsys)
    assert error.startswith("interrupted.")
    assert ("the same command with --resume goes on" in error) == begun
    monkeypatch.undo()
    if begun:
        assert main(options(job, "--resume")) == 0


def test_a_folder_that_was_deleted_cannot_be_resumed(job, monkeypatch):
    train_and_stop(job, monkeypatch)
    shutil.rmtree(job.out)
    with pytest.raises(DataError, match=r"reverse: this folder is gone, and with it the best epoch so far"):
        train(dataclasses.replace(job, resume=True))
    assert not job.out.exists()


def test_cuda_that_is_not_there(job, capsys, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert main(options(job, "--device", "cuda")) == 2
    assert "torch finds no CUDA device here" in said(capsys)


@posix
@pytest.mark.parametrize("limit", [1_000, 60_000, 120_000])
def test_a_file_that_grows_too_large(job, capsys, limit):
    """A limit on a file's size: the checkpoint is too large for it, then its parameters, then the state."""
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        status = main(options(job))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    error = said(capsys)
    assert status in (0, 2)
    if status:
        assert "the training cannot be written (" in error


# task


def test_an_out_that_is_a_file(tmp_path, capsys):
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    for out in (tmp_path / "file", tmp_path / "file" / "below"):
        assert main(["task", "reverse", "--out", str(out)]) == 2
        assert "cannot be written" in said(capsys)
    assert (tmp_path / "file").read_text(encoding="utf-8") == "mine"


# translate


@pytest.fixture
def typed(monkeypatch):
    """A function that puts bytes at standard input."""
    return lambda content: monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content), "utf-8"))


def test_a_line_that_cannot_be_read_costs_no_other(typed, capsys):
    typed(b"abc\n\n" + b"a" * 5_000 + b"\nd\xffe\n" + b"xyz" * 60 + b"\ncab\r\n")
    assert main(["translate", REVERSE]) == 2
    printed = capsys.readouterr()
    assert printed.out.splitlines() == ["abc\tcba", "cab\tbac"]
    errors = printed.err.splitlines()
    assert [error[: len("error: line 3:")] for error in errors[:3]] == [f"error: line {n}:" for n in (3, 4, 5)]
    assert "characters" in errors[0]
    assert "not UTF-8" in errors[1]
    assert "pieces" in errors[2]
    assert errors[3] == "error: 3 of 5 lines could not be translated."


def test_an_argument_that_is_not_utf_8(capsys):
    assert main(["translate", REVERSE, "abc", "d\udcffe"]) == 2
    printed = capsys.readouterr()
    assert printed.out == "abc\tcba\n"
    assert "line 2: the line is not UTF-8" in printed.err


@posix
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device")
def test_a_full_disk(tmp_path):
    command = [sys.executable, "-m", "transformer", "translate", REVERSE, "abc"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, cwd=ROOT, check=False)
    assert done.returncode == 2
    assert "error: No space left on device." in done.stderr
    assert "Traceback" not in done.stderr
