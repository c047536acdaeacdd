"""A training that stops anywhere, or when its time is up, goes on as if it had not; means and snapshots are kept."""

import itertools
import json
from dataclasses import replace

import pytest
import torch

from glassformer.extensions.training.library import checkpointing, loop
from glassformer.extensions.training.library.checkpointing import check_snapshots, planned_steps, superfluous
from glassformer.extensions.training.library.loop import Trainer
from glassformer.extensions.training.library.run import train
from glassformer.extensions.training.library.state import folder_beside
from tests.extensions.training.library.training_jobs import (
    SETTINGS,
    job_on_sentences,
    stored,
    train_and_stop,
    with_settings,
)
from transformer.checkpoint import snapshots
from transformer.checkpoint.load import load
from transformer.checkpoint.snapshots import SnapshotInfo
from transformer.errors import DataError
from transformer.files.untrusted_folder import FolderFiles


@pytest.fixture
def job(job):
    """A job of two epochs of seven steps."""
    return with_settings(job, batch_tokens=800)


def named(job, name):
    return replace(job, out=job.out.with_name(name))


def resumed(job, **settings):
    return replace(with_settings(job, **settings), resume=True)


def test_a_training_that_stops_at_any_step_goes_on_as_if_nothing_had_happened(tmp_path, monkeypatch):
    """With dropout and sampled splits, whose draws follow from the step; by Ctrl-C, or because its time is up."""
    job = job_on_sentences(tmp_path, times=8, sampling=0.2, batch_tokens=400, save_minutes=0.0, average=2)
    job = replace(job, pieces="unigram")
    whole = named(job, "whole")
    rows = train(whole)
    expected, an_epoch, last = stored(whole.out), rows[0].step, rows[-1].step
    for step in (1, an_epoch, an_epoch + 2):  # within an epoch, at its end, and within the second
        one = named(job, f"stopped{step}")
        train_and_stop(one, monkeypatch, step=step)
        if step == 1:
            check_untrained(one)
        same(train(resumed(one)), one, rows, expected)
        assert load(one.out).content_hash == load(whole.out).content_hash
    one = named(job, "up")
    assert clocked(with_settings(one, max_minutes=1.0), monkeypatch, up_after=last // 2)[0] == last // 2
    more, found = clocked(resumed(one), monkeypatch)
    assert more == last - last // 2
    same(found, one, rows, expected)


def same(found, job, rows, expected):
    """Whether these are the rows and the state of another training, but for the time it took."""
    state = stored(job.out)
    assert [replace(row, seconds=0.0) for row in found] == [replace(row, seconds=0.0) for row in rows]
    assert state["place"] | {"seconds": 0.0} == expected["place"] | {"seconds": 0.0}
    for part in ("model", "optimizer"):
        torch.testing.assert_close(state[part], expected[part], rtol=0, atol=0)


def check_untrained(job):
    """Before the first epoch the folder holds the model that begins."""
    untrained = load(job.out)
    assert untrained.warnings == ()
    assert untrained.card.training["epochs"] == 0
    assert untrained.card.scores == ()
    assert not (job.out / "training.csv").exists()
    torch.manual_seed(job.settings.seed)
    begun = type(untrained.model)(untrained.config).state_dict()
    torch.testing.assert_close(dict(untrained.model.state_dict()), dict(begun), rtol=0, atol=1e-3)


def test_what_is_stored_is_the_mean_of_the_last_ends_of_epochs(job, monkeypatch):
    ends, end_epoch = [], Trainer.end_epoch

    def seen(self, measure):
        ends.append({name: tensor.clone() for name, tensor in self.model.state_dict().items()})
        return end_epoch(self, measure)

    monkeypatch.setattr(Trainer, "end_epoch", seen)
    monkeypatch.setattr(checkpointing, "better", lambda rows, leak: rows[-1])
    train(with_settings(job, epochs=4, average=3))
    found, learning = load(job.out).model.state_dict(), stored(job.out)["model"]
    for name in found:
        mean = torch.stack([end[name] for end in ends[1:]]).mean(dim=0)
        assert torch.allclose(found[name], mean, atol=2e-3), name  # the file has 16 bits a value
        assert torch.equal(learning[name], ends[-1][name])  # what learns is not averaged


def test_a_training_that_gets_no_better_ends(job, monkeypatch):
    losses = iter([3.0, 1.0, 2.0, 1.5, 0.5, 0.4])
    monkeypatch.setattr(checkpointing, "held_out_loss", lambda model, dev, tap: next(losses))
    job = with_settings(job, epochs=6, causal_mask=False, patience=2)
    assert [row.dev_loss for row in train(job)] == [3.0, 1.0, 2.0, 1.5]
    assert load(job.out).card.training["epochs"] == 2
    assert len(train(resumed(job, patience=3))) == 6


def test_snapshots_are_spaced_by_logarithm_and_a_longer_training_thins_out_what_stands_closest():
    for total, count in ((93, 5), (10, 20), (2, 2), (1, 3), (100_000, 24), (7, 200), (50, 3)):
        steps = planned_steps(total, count)
        assert (steps[0], steps[-1], len(steps)) == (0, total, min(count, total + 1))
        assert steps == sorted(set(steps))
    assert all(after / before < 2.2 for before, after in itertools.pairwise(planned_steps(100_000, 24)[1:]))
    taken, more = planned_steps(1_000, 10), planned_steps(8_000, 10)
    gone = superfluous(taken, more, 10)
    left = [step for step in taken if step not in gone]
    assert {0, 1_000} <= set(left)
    assert len(left) + sum(step > 1_000 for step in more) == 10
    assert superfluous(taken, taken, 10) == []
    assert superfluous([0, 1, 80, 100], [0, 1, 80, 100, 1_000], 4) == [80]  # the closest by logarithm, not by steps


def test_snapshots_are_there_with_their_moments_and_a_new_start_removes_them(job):
    job = replace(job, snapshots=4)
    (row, *_, last) = train(job)
    assert snapshots.steps(job.out) == [0, 1, 4, 14]
    files = FolderFiles(snapshots.folder_of(job.out))
    moments = [snapshots.moment_of(files, step) for step in snapshots.steps(job.out)]
    scores = {"dev_loss": moments[0].dev_loss, "dev_bleu": 0.0, "dev_chrf": moments[0].dev_chrf, "dev_exact": 0.0}
    assert moments[0] == SnapshotInfo(step=0, **scores)
    assert [moment.epoch for moment in moments] == [0, 1, 1, 2]
    assert moments[-1].tokens == last.tokens
    assert moments[-1].dev_loss == pytest.approx(last.dev_loss, abs=1e-3)
    assert moments[0].dev_loss > moments[2].dev_loss > moments[-1].dev_loss
    assert moments[1].loss > row.loss
    train(resumed(job, epochs=4))
    assert len(snapshots.steps(job.out)) == 4
    assert snapshots.steps(job.out)[-1] == 28
    train(replace(job, snapshots=0, force=True))
    assert not snapshots.folder_of(job.out).exists()


def test_too_many_snapshots_are_refused_with_the_number_that_fits(job, monkeypatch):
    for count in (1, 201, -1):
        with pytest.raises(DataError, match=rf"--snapshots: found {count}, expected 0 .* or a value from 2 to 200\."):
            train(replace(job, snapshots=count))
    assert not job.out.exists()
    monkeypatch.setattr(snapshots, "MOST_BYTES", 14 * job.config.count_parameters() + 1)
    with pytest.raises(DataError, match=r"would hold [\d,]+ bytes of parameters, .*; choose at most 7\."):
        check_snapshots(8, job.config)
    check_snapshots(7, job.config)


def test_whoever_watches_reads_how_far_it_is_and_what_changes_the_last_bits_is_said(job, capsys):
    rows = train(job)
    said = json.loads((folder_beside(job.out) / "progress.json").read_text(encoding="ascii"))
    seconds = pytest.approx(rows[-1].seconds, abs=0.11)
    loss = pytest.approx(stored(job.out)["place"]["loss"] or said["loss"])
    assert said.pop("tokens_a_second") > 0
    assert said == {"step": 14, "steps": 14, "epoch": 2, "loss": loss, "seconds": seconds, "left": 0.0}
    for epochs, accumulate, expected in ((3, 1, 0), (4, 2, 1)):
        capsys.readouterr()
        assert len(train(resumed(job, epochs=epochs, accumulate=accumulate))) == epochs
        printed = capsys.readouterr().out
        assert "going on after step" in printed
        assert printed.count("will not be equal to the last bit") == expected


# ---------------------------------------------------------------- the time as a limit


def clocked(job, monkeypatch, *, up_after=None, a_step=0.0):
    """The number of steps and the rows, by a clock of our own: of seconds a step, and an hour after some steps."""
    done, learn = [], Trainer.learn

    def clock():
        return a_step * len(done) + (3_600.0 if up_after is not None and len(done) >= up_after else 0.0)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "learn", lambda *given: done.append(1) or learn(*given))
        patch.setattr(loop.time, "monotonic", clock)
        rows = train(job)
    return len(done), rows


def test_the_time_ends_a_training_at_a_step(job, monkeypatch):
    job = with_settings(job, epochs=50, max_minutes=0.1, batch_tokens=SETTINGS.batch_tokens)
    n, rows = clocked(job, monkeypatch, a_step=0.5)
    assert n == 12  # of 0.5 s each, where 6 s are given; an epoch has 16
    assert [(row.epoch, row.step, row.seconds) for row in rows] == [(1, 12, 6.0)]
    assert rows[0].learning_rate < 0.2 * SETTINGS.peak_rate
    assert load(job.out).card.training["target_tokens"] == rows[0].tokens
    assert [row.step for row in train(with_settings(named(job, "short"), max_minutes=1e-6))] == [1]  # however short


def test_a_training_whose_time_is_up_is_not_resumed_without_more(job, monkeypatch):
    job = with_settings(job, max_minutes=1.0)
    _, rows = clocked(job, monkeypatch, up_after=3)
    assert clocked(resumed(job), monkeypatch) == (0, rows)
    n, more = clocked(resumed(job, max_minutes=120.0), monkeypatch)
    assert n > 0
    assert [row.epoch for row in more] == [1, 2]
