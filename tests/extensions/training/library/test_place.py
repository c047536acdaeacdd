"""A training loses nothing that it did not write, and two never write to one place, killed or not."""

import dataclasses
import os
import shutil
import signal
from pathlib import Path

import pytest

from glassformer.extensions.training.library import run
from glassformer.extensions.training.library.run import train
from glassformer.extensions.training.library.state import claimed
from tests.extensions.training.library.training_jobs import train_and_stop, with_settings
from transformer.checkpoint.load import load
from transformer.errors import CheckpointError

BESIDE = ["progress.json", "state.before.pt", "state.pt"]


@pytest.fixture
def job(job):
    return with_settings(job, epochs=1, batch_tokens=800)


def everything(folder):
    """Every file below a folder, by path, with its bytes."""
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def refused(job, monkeypatch, match):
    """The job is refused before its first step, and nothing below its folder changes."""
    top = job.train.parent
    before = everything(top)
    with monkeypatch.context() as patch:
        patch.setattr(run, "_run_epochs", lambda *_, anew: pytest.fail("a step was made"))
        with pytest.raises(CheckpointError, match=match) as caught:
            train(job)
    assert "\n" not in str(caught.value)
    assert everything(top) == before


def test_a_folder_of_something_else_is_refused_even_if_forced(job, monkeypatch, checkpoint_folder):
    documents, checkpoints = job.out.with_name("documents"), job.out.with_name("checkpoints")
    documents.mkdir(parents=True)
    (documents / "thesis.txt").write_text("years of work")
    shutil.copytree(checkpoint_folder, checkpoints / "one")
    for folder in (documents, checkpoints, job.train.parent):
        for force in (False, True):
            refused(dataclasses.replace(job, out=folder, force=force), monkeypatch, "neither empty nor a checkpoint")
    refused(dataclasses.replace(job, out=job.train), monkeypatch, "expected a folder, found a file")


@pytest.mark.parametrize("out", [".", "..", "/"])
def test_the_folder_one_is_in_is_refused(job, monkeypatch, out):
    here = job.train.parent / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    refused(dataclasses.replace(job, out=Path(out)), monkeypatch, "is the folder you are in")


def test_a_parent_that_is_a_file_or_cannot_be_written_to(job, monkeypatch):
    refused(dataclasses.replace(job, out=job.train / "x"), monkeypatch, r".*: cannot be written \(")
    refused(dataclasses.replace(job, out=Path("/proc/x/y")), monkeypatch, r"/proc/x/y: cannot be written \(")
    long = job.out.with_name("x" * 250)  # a name for it, but none for the hidden folder beside it
    refused(dataclasses.replace(job, out=long), monkeypatch, "cannot be written")
    assert not job.out.parent.exists()  # what was made on the way is gone


def test_a_checkpoint_is_replaced_only_on_demand_and_an_empty_folder_is_filled(job, monkeypatch, checkpoint_folder):
    shutil.copytree(checkpoint_folder, job.out)
    (job.out / "NOTES.md").write_text("my notes")
    refused(job, monkeypatch, "contains a checkpoint; continue its training with --resume, replace it with --force")
    train(dataclasses.replace(job, force=True))
    assert load(job.out).card.title == "Backwards"
    assert (job.out / "NOTES.md").read_text() == "my notes"
    empty = dataclasses.replace(job, out=job.out.parent / "empty" / "reverse")
    empty.out.mkdir(parents=True)
    train(empty)
    assert load(empty.out).card.title == "Backwards"
    assert sorted(os.listdir(empty.out.parent)) == ["reverse", "reverse.training"]
    assert sorted(os.listdir(empty.out.with_name("reverse.training"))) == BESIDE


def test_what_a_killed_save_took_away_is_put_back_before_a_training_goes_on(job, monkeypatch):
    train_and_stop(with_settings(job, epochs=2), monkeypatch)
    job.out.rename(job.out.with_name(".reverse.abcdefgh.replaced"))
    train(with_settings(dataclasses.replace(job, resume=True), epochs=2))  # without --force
    assert load(job.out).card.title == "Backwards"
    assert sorted(os.listdir(job.out.parent)) == ["reverse", "reverse.training"]


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="Windows has no SIGKILL")
def test_a_second_training_is_refused_but_the_lock_of_a_killed_one_holds_nobody_up(job, monkeypatch):
    told, tell = os.pipe()
    other = os.fork()
    if not other:
        with claimed(job.out, resume=False, force=False):
            os.write(tell, b"held")
            signal.pause()
    try:
        assert os.read(told, 4) == b"held"
        for resume in (False, True):
            refused(dataclasses.replace(job, resume=resume), monkeypatch, "another training process is writing there")
    finally:
        os.kill(other, signal.SIGKILL)
        os.waitpid(other, 0)
    assert job.out.with_name("reverse.training").joinpath("lock").exists()
    train(job)
    assert sorted(os.listdir(job.out.with_name("reverse.training"))) == BESIDE
