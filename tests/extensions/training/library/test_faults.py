"""What goes wrong around a training's commands ends in one sentence: Ctrl-C, a full disk, a file in the way."""

import dataclasses
import shutil

import pytest

from glassformer.extensions.training.library import checkpointing, run
from glassformer.extensions.training.library.run import train
from tests.extensions.training.library.training_jobs import make_job, train_and_stop
from tests.transformer.commands.test_words import posix
from transformer.__main__ import INTERRUPTED, main
from transformer.errors import DataError


def test_an_out_that_is_a_file(tmp_path, capsys):
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    for out in (tmp_path / "file", tmp_path / "file" / "below"):
        assert main(["task", "reverse", "--out", str(out)]) == 2
        assert "cannot be written" in said(capsys)
    assert (tmp_path / "file").read_text(encoding="utf-8") == "mine"


@pytest.fixture
def job(tmp_path, monkeypatch):
    monkeypatch.setattr(run, "keep_freed_memory", lambda: None)
    return make_job(tmp_path)


def said(capsys):
    """The line that the last command ended with on standard error, after its progress bars."""
    error = capsys.readouterr().err
    assert "Traceback" not in error
    return error.strip().splitlines()[-1]


def options(job, *more):
    model = ["--layers", "1", "--d-model", "16", "--heads", "2", "--d-ff", "32", "--src-vocab", "40"]
    files = ["--train", str(job.train), "--dev", str(job.dev), "--out", str(job.out)]
    settings = ["--shared-vocab", "--pieces", "char", "--epochs", "3", "--precision", "fp32", "--device", "cpu"]
    return ["train", *files, *model, *settings, *more]


@pytest.mark.parametrize("begun", [False, True])
def test_ctrl_c_says_how_to_go_on(job, monkeypatch, capsys, begun):
    write_state = checkpointing.write_state

    def stop(*arguments, **options):
        if begun:
            write_state(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(*((checkpointing, "write_state") if begun else (run, "learn_vocabulary")), stop)
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


@posix
@pytest.mark.parametrize("limit", [1_000, 120_000])
def test_a_file_that_grows_too_large(job, capsys, limit):
    """A limit on a file's size: the checkpoint is too large for it, then the state."""
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
