"""A training may begin with a checkpoint, which stays as it is and is named, or sample how its texts are split."""

import shutil
from dataclasses import replace

import pytest
import torch

from glassformer.extensions.training.library import run
from glassformer.extensions.training.library.run import train
from tests.extensions.tokenizers.test_tokenizer_files import written
from tests.extensions.training.library.training_jobs import job_on_sentences, make_job, with_settings
from transformer.checkpoint import snapshots
from transformer.checkpoint.load import WEIGHTS, load
from transformer.checkpoint.save import file_sha256
from transformer.checkpoint.tokenizer_files import TOKENIZER_NAMES
from transformer.errors import DataError


@pytest.fixture
def pairs(tmp_path):
    return job_on_sentences(tmp_path, times=4, epochs=1)


@pytest.fixture
def begun(monkeypatch):
    """A function that gives the trainer of a job as it is before its first step."""

    def begin(job):
        found = []
        with monkeypatch.context() as patch:
            patch.setattr(run, "_run_epochs", lambda trainer, keeper, anew: found.append(trainer))
            train(job)
        return found[0]

    return begin


def same_parameters(one, other):
    torch.testing.assert_close(dict(one.state_dict()), dict(other.state_dict()), rtol=0, atol=0)


@pytest.mark.parametrize("shared", [False, True])
def test_a_training_begins_with_the_parameters_and_features_of_a_checkpoint_which_stays_as_it_is(
    pairs, begun, checkpoint_folder, shared_checkpoint_folder, shared
):
    start = load(shared_checkpoint_folder if shared else checkpoint_folder)
    before = {file.name: file.read_bytes() for file in start.folder.iterdir()}
    job = replace(pairs, start_from=start.folder)
    trainer = begun(job)
    assert trainer.model.config == replace(start.config, dropout=pairs.config.dropout) != start.config
    same_parameters(trainer.model, start.model)
    assert all(parameter.requires_grad for parameter in trainer.model.parameters())
    train(replace(job, force=True))
    assert {file.name: file.read_bytes() for file in start.folder.iterdir()} == before
    for name in TOKENIZER_NAMES[1 if shared else 2]:
        assert (pairs.out / name).read_bytes() == before[name]
    learned = load(pairs.out)
    assert learned.warnings == ()
    named = {"folder": start.folder.name, "sha256": file_sha256(start.folder / WEIGHTS)}
    assert learned.card.training["start_from"] == named
    assert learned.config.dropout == pairs.config.dropout
    with pytest.raises(AssertionError):
        same_parameters(learned.model, start.model)


def test_a_training_replaces_nothing_that_it_starts_from_and_takes_no_other_librarys_tokenizer(pairs, spoil, tmp_path):
    folder = spoil()
    said = "training starts from the checkpoint in this folder, so its output must go to another folder"
    with pytest.raises(DataError, match=said):
        train(replace(pairs, start_from=folder, out=folder.parent / "elsewhere" / ".." / folder.name))
    assert load(folder).warnings == ()
    written("gpt2", tmp_path / "gpt2")
    with pytest.raises(DataError, match="its tokenizer comes from another library"):
        train(replace(pairs, start_from=tmp_path / "gpt2"))
    assert not pairs.out.exists()


def test_a_training_with_another_start_or_none_is_not_resumed(pairs, tmp_path, checkpoint_folder):
    job = replace(pairs, start_from=checkpoint_folder)
    train(job)
    other = shutil.copytree(pairs.out, tmp_path / "other")
    config = replace(load(checkpoint_folder).config, dropout=pairs.config.dropout)
    said = r"a training run with different settings: parameters to start from was \w{12} and is now \w+\.$"
    for changes in ({"start_from": other}, {"start_from": None, "config": config}):
        with pytest.raises(DataError, match=said):
            train(replace(job, resume=True, **changes))


def test_splits_are_sampled_in_each_epoch_and_pairs_of_which_none_fits_are_refused(pairs, begun):
    batches = begun(with_settings(replace(pairs, pieces="unigram"), sampling=0.2)).batches
    epochs = [{e for group in batches.epoch(n) for e in group} for n in (0, 1, 0)]
    assert epochs[0] == epochs[2] != epochs[1]  # each has new splits
    # At alpha = 1 a BPE model gives single characters, more than fit.
    job = replace(pairs, pieces="bpe", config=replace(pairs.config, max_len=11))
    said = r"train.tsv: every pair has more than 11 tokens on at least one side; raise --max-len\."
    with pytest.raises(DataError, match=said):
        train(with_settings(job, sampling=1.0))


def test_a_training_begins_with_a_snapshot_and_one_that_began_anew_names_no_start(tmp_path, begun):
    job = with_settings(make_job(tmp_path, snapshots=3), epochs=1, batch_tokens=800)
    train(job)
    assert "start_from" not in load(job.out).card.training
    start = job.out.with_name(f"{job.out.name}@{snapshots.steps(job.out)[1]}")
    again = replace(job, out=job.out.with_name("again"), start_from=start)
    same_parameters(begun(again).model, load(start).model)
    train(replace(again, force=True))
    assert load(again.out).card.training["start_from"] == {"folder": start.name, "sha256": load(start).content_hash}
