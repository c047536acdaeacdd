"""Trainings that begin with a checkpoint, and those that sample how texts are split."""

import dataclasses
import json
import shutil

import pytest
import torch

from glassformer.extensions.training.library import run
from glassformer.extensions.training.library.run import train
from tests.conftest import SOURCES, TARGETS
from tests.extensions.training.library.training_jobs import make_job, train_and_stop, with_settings
from transformer.checkpoint import snapshots
from transformer.checkpoint.load import WEIGHTS, load
from transformer.checkpoint.save import file_sha256
from transformer.checkpoint.tokenizer_files import TOKENIZER_NAMES
from transformer.errors import CheckpointError, DataError, TokenizerError


@pytest.fixture
def pairs(tmp_path):
    """A job on a few sentences of the tiny checkpoints' languages."""
    text = "".join(f"{source}\t{target}\n" for source, target in zip(SOURCES, TARGETS, strict=True))
    for name in ("train", "dev"):
        (tmp_path / f"{name}.tsv").write_text(text * 8, encoding="utf-8")
    job = make_job(tmp_path)
    return dataclasses.replace(job, config=dataclasses.replace(job.config, dropout=0.2, max_len=48))


def begun(job, monkeypatch):
    """The trainer of a job as it is before its first step."""
    found = []
    with monkeypatch.context() as patch:
        patch.setattr(run, "_run_epochs", lambda job, trainer, kept, anew: found.append(trainer))
        train(job)
    return found[0]


@pytest.mark.parametrize("shared", [False, True])
def test_a_training_begins_with_the_parameters_and_features_of_a_checkpoint(
    pairs, monkeypatch, checkpoint_folder, shared_checkpoint_folder, shared
):
    start = load(shared_checkpoint_folder if shared else checkpoint_folder)
    trainer = begun(dataclasses.replace(pairs, start_from=start.folder), monkeypatch)
    assert trainer.model.config == dataclasses.replace(start.config, dropout=pairs.config.dropout)
    assert trainer.model.config.dropout != start.config.dropout
    state = trainer.model.state_dict()
    assert state.keys() == start.model.state_dict().keys()
    for name, tensor in start.model.state_dict().items():
        assert torch.equal(state[name], tensor), name
    assert all(parameter.requires_grad for parameter in trainer.model.parameters())


@pytest.mark.parametrize("shared", [False, True])
def test_what_was_started_from_stays_as_it_is_and_the_card_names_it(
    pairs, checkpoint_folder, shared_checkpoint_folder, shared
):
    start = shared_checkpoint_folder if shared else checkpoint_folder
    before = {file.name: file.read_bytes() for file in start.iterdir()}
    train(with_settings(dataclasses.replace(pairs, start_from=start), epochs=1))
    assert {file.name: file.read_bytes() for file in start.iterdir()} == before
    for name in TOKENIZER_NAMES[1 if shared else 2]:
        assert (pairs.out / name).read_bytes() == before[name]
    learned = load(pairs.out)
    assert learned.warnings == ()
    assert learned.card.training["start_from"] == {"folder": start.name, "sha256": file_sha256(start / WEIGHTS)}
    assert learned.config.dropout == pairs.config.dropout
    assert any(
        not torch.equal(tensor, load(start).model.state_dict()[name])
        for name, tensor in learned.model.state_dict().items()
    )


def test_a_training_that_began_anew_names_no_start(pairs):
    train(with_settings(pairs, epochs=1))
    assert "start_from" not in json.loads((pairs.out / "card.json").read_text(encoding="utf-8"))["training"]


def test_a_start_that_is_not_there(pairs):
    with pytest.raises(CheckpointError, match="nowhere"):
        train(dataclasses.replace(pairs, start_from=pairs.out.with_name("nowhere")))
    assert not pairs.out.exists()


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "source.model"])
def test_a_damaged_start(pairs, spoil, name):
    folder = spoil(name, lambda content: content[: len(content) // 2])
    with pytest.raises(CheckpointError, match=f"spoilt/{name}"):
        train(dataclasses.replace(pairs, start_from=folder))
    assert not pairs.out.exists()


def test_a_training_does_not_replace_what_it_starts_from(pairs, spoil):
    folder = spoil()
    with pytest.raises(
        DataError, match="training starts from the checkpoint in this folder, so its output must go to another folder"
    ):
        train(dataclasses.replace(pairs, start_from=folder, out=folder.parent / "elsewhere" / ".." / folder.name))
    assert load(folder).warnings == ()


@pytest.mark.parametrize("resumed_with", ["another", "none"])
def test_a_training_with_another_start_is_not_resumed(pairs, tmp_path, checkpoint_folder, resumed_with):
    job = dataclasses.replace(pairs, start_from=checkpoint_folder)
    train(with_settings(job, epochs=1))
    if resumed_with == "another":
        other = tmp_path / "other"
        shutil.copytree(pairs.out, other)
        job = dataclasses.replace(job, start_from=other, resume=True)
    else:
        config = dataclasses.replace(load(checkpoint_folder).config, dropout=pairs.config.dropout)
        job = dataclasses.replace(job, start_from=None, config=config, resume=True)
    with pytest.raises(
        DataError,
        match=r"a training run with different settings: parameters to start from was \w{12} and is now \w+\.$",
    ):
        train(job)


@pytest.mark.parametrize("from_checkpoint", [False, True])
def test_a_training_with_sampled_splits_goes_on_as_if_it_had_not_been_stopped(
    pairs, monkeypatch, checkpoint_folder, from_checkpoint
):
    job = with_settings(dataclasses.replace(pairs, pieces="unigram"), sampling=0.2, epochs=3)
    if from_checkpoint:
        job = dataclasses.replace(job, start_from=checkpoint_folder)
    trainers = []

    def seen(job):
        with monkeypatch.context() as patch:
            made = run._trainer
            patch.setattr(run, "_trainer", lambda *given: trainers.append(made(*given)) or trainers[-1])
            return train(job)

    seen(dataclasses.replace(job, out=job.out.with_name("whole")))
    train_and_stop(job, monkeypatch)
    seen(dataclasses.replace(job, resume=True))
    whole, resumed = (trainer.model.state_dict() for trainer in trainers)
    assert [len(trainer.rows) for trainer in trainers] == [3, 3]
    for name, tensor in whole.items():  # float32, as they were trained, not as the file rounds them
        assert torch.equal(resumed[name], tensor), name


def test_sampled_splits_are_new_in_each_epoch(pairs, monkeypatch):
    job = with_settings(dataclasses.replace(pairs, pieces="unigram"), sampling=0.2)
    batches = begun(job, monkeypatch).batches
    epochs = [{e for group in batches.epoch(n) for e in group} for n in (0, 1, 0)]
    assert epochs[0] != epochs[1]
    assert epochs[0] == epochs[2]


def test_splits_into_characters_cannot_be_sampled(pairs):
    with pytest.raises(TokenizerError, match="remove --sampling"):
        train(with_settings(pairs, sampling=0.2))
    assert not pairs.out.exists()


def test_sampled_pairs_of_which_none_fits(pairs):
    """At alpha = 1 a BPE model gives single characters, more than fit."""
    job = with_settings(dataclasses.replace(pairs, pieces="bpe"), sampling=1.0)
    job = dataclasses.replace(job, config=dataclasses.replace(job.config, max_len=11))
    with pytest.raises(
        DataError,
        match=r"train.tsv: with the sampled splits, every pair has more than 11 tokens on at least one side; "
        r"raise --max-len\.",
    ):
        train(job)


def test_a_training_begins_with_a_snapshot(tmp_path, monkeypatch):
    job = make_job(tmp_path, snapshots=4)
    train(job)
    step = snapshots.steps(job.out)[1]
    start = job.out.with_name(f"{job.out.name}@{step}")
    again = dataclasses.replace(job, out=job.out.with_name("again"), start_from=start)
    trainer = begun(again, monkeypatch)
    for name, tensor in load(start).model.state_dict().items():
        assert torch.equal(trainer.model.state_dict()[name], tensor)
    train(again)
    assert load(again.out).card.training["start_from"] == {"folder": start.name, "sha256": load(start).content_hash}
