"""A training that stops anywhere, or when its time is up, goes on as if it had not; means and snapshots are kept."""

import dataclasses
import itertools
import json
import sys

import pytest
import torch

from glassformer.extensions.training.library import checkpointing, loop
from glassformer.extensions.training.library.checkpointing import check_snapshots, planned_steps, superfluous
from glassformer.extensions.training.library.loop import Trainer
from glassformer.extensions.training.library.run import train
from glassformer.extensions.training.library.state import folder_beside
from tests.conftest import SOURCES, TARGETS
from tests.extensions.training.library.training_jobs import SETTINGS, make_job, stored, with_settings
from transformer.checkpoint import snapshots
from transformer.checkpoint.load import load
from transformer.checkpoint.snapshots import SnapshotInfo
from transformer.errors import DataError
from transformer.files.untrusted_folder import FolderFiles


@pytest.fixture
def job(job):
    """A job of two epochs of seven steps."""
    return with_settings(job, batch_tokens=800)


def stopped(job, monkeypatch, *, step):
    """Train until the state of a step was stored, then stop as Ctrl-C does."""
    write_state = checkpointing.write_state

    def write(out, state):
        write_state(out, state)
        if state["place"]["step"] == step:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(checkpointing, "write_state", write)
        with pytest.raises(KeyboardInterrupt):
            train(job)


def timeless(rows):
    return [dataclasses.replace(row, seconds=0.0) for row in rows]


def test_a_state_of_any_step_is_gone_on_from_as_if_nothing_had_happened(job, monkeypatch):
    job = with_settings(job, save_minutes=0.0, average=2)
    whole = dataclasses.replace(job, out=job.out.with_name("whole"))
    rows = train(whole)
    expected, content_hash = stored(whole.out)["model"], load(whole.out).content_hash
    for step in (1, 7, 10):  # within an epoch, at its end, and within the second
        one = dataclasses.replace(job, out=job.out.with_name(f"stopped{step}"))
        stopped(one, monkeypatch, step=step)
        if step == 1:
            check_untrained(one)
        resumed = train(dataclasses.replace(one, resume=True))
        assert timeless(resumed) == timeless(rows)
        found = stored(one.out)["model"]
        assert all(torch.equal(found[name], tensor) for name, tensor in expected.items())
        assert load(one.out).content_hash == content_hash


def check_untrained(job):
    """Before the first epoch the folder holds the model that begins."""
    untrained = load(job.out)
    assert untrained.warnings == ()
    assert untrained.card.training["epochs"] == 0
    assert untrained.card.scores == ()
    assert not (job.out / "training.csv").exists()
    torch.manual_seed(job.settings.seed)
    for name, tensor in type(untrained.model)(untrained.config).state_dict().items():
        assert torch.allclose(untrained.model.state_dict()[name], tensor, atol=1e-3), name


def test_parts_of_a_batch_make_the_step_of_the_whole(job, monkeypatch):
    seen = []
    learn = Trainer.learn

    def looked_at(self, parts, weights, rate):
        seen.append(([batch.src.size(0) for batch in parts], weights))
        return learn(self, parts, weights, rate)

    monkeypatch.setattr(Trainer, "learn", looked_at)
    job = dataclasses.replace(job, config=dataclasses.replace(job.config, dropout=0.0))
    train(dataclasses.replace(with_settings(job, epochs=1), out=job.out.with_name("whole")))
    whole = stored(job.out.with_name("whole"))["place"]["recent"]
    sizes = [rows[0] for rows, _ in seen]
    seen.clear()
    train(with_settings(job, epochs=1, accumulate=3))
    assert stored(job.out)["place"]["recent"] == pytest.approx(whole, abs=1e-5)
    for (rows, weights), size in zip(seen, sizes, strict=True):
        assert len(rows) == len(weights) == 3
        assert sum(weights) == pytest.approx(1.0)
        assert max(rows) == -(-size // 3)


def test_what_is_stored_is_the_mean_of_the_last_ends_of_epochs(job, monkeypatch):
    ends = []
    end_epoch = Trainer.end_epoch

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
    assert len(train(dataclasses.replace(with_settings(job, patience=3), resume=True))) == 6


@pytest.mark.parametrize(("total", "count"), [(93, 5), (10, 20), (2, 2), (1, 3), (100_000, 24), (7, 200), (50, 3)])
def test_snapshots_are_spaced_by_logarithm_from_the_first_step_to_the_last(total, count):
    steps = planned_steps(total, count)
    assert (steps[0], steps[-1]) == (0, total)
    assert steps == sorted(set(steps))
    assert len(steps) == min(count, total + 1)
    if count == 24:
        assert all(after / before < 2.2 for before, after in itertools.pairwise(steps[1:]))


def test_a_longer_training_thins_out_what_stands_closest():
    taken, more = planned_steps(1_000, 10), planned_steps(8_000, 10)
    gone = superfluous(taken, more, 10)
    left = [step for step in taken if step not in gone]
    assert {0, 1_000} <= set(left)
    assert len(left) + sum(step > 1_000 for step in more) == 10
    assert superfluous(taken, taken, 10) == []


def test_snapshots_are_there_with_their_moments_and_a_new_start_removes_them(job):
    job = dataclasses.replace(job, snapshots=4)
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
    train(dataclasses.replace(with_settings(job, epochs=4), resume=True))
    assert len(snapshots.steps(job.out)) == 4
    assert snapshots.steps(job.out)[-1] == 28
    train(dataclasses.replace(job, snapshots=0, force=True))
    assert not snapshots.folder_of(job.out).exists()


def test_too_many_snapshots_are_refused_with_the_number_that_fits(job, monkeypatch):
    for count in (1, 201, -1):
        with pytest.raises(DataError, match=rf"--snapshots: found {count}, expected 0 .* or a value from 2 to 200\."):
            train(dataclasses.replace(job, snapshots=count))
    assert not job.out.exists()
    size = 2 * job.config.count_parameters()
    monkeypatch.setattr(snapshots, "MOST_BYTES", 7 * size + 1)
    with pytest.raises(DataError, match=r"would hold [\d,]+ bytes of parameters, .*; choose at most 7\."):
        check_snapshots(8, job.config)
    check_snapshots(7, job.config)


def test_whoever_watches_reads_how_far_it_is_and_what_changes_the_last_bits_is_said(job, capsys):
    rows = train(job)
    said = json.loads((folder_beside(job.out) / "progress.json").read_text(encoding="ascii"))
    assert said == {
        "step": 14,
        "steps": 14,
        "epoch": 2,
        "loss": pytest.approx(stored(job.out)["place"]["loss"] or said["loss"]),
        "tokens_a_second": said["tokens_a_second"],
        "seconds": pytest.approx(rows[-1].seconds, abs=0.11),
        "left": 0.0,
    }
    assert said["tokens_a_second"] > 0
    for epochs, accumulate, expected in ((3, 1, 0), (4, 2, 1)):
        capsys.readouterr()
        longer = with_settings(job, epochs=epochs, accumulate=accumulate)
        assert len(train(dataclasses.replace(longer, resume=True))) == epochs
        said = capsys.readouterr().out
        assert "going on after step" in said
        assert said.count("will not be equal to the last bit") == expected


@pytest.mark.parametrize("kind", ["tensorboard", "trackio"])
def test_a_program_that_draws_scalars_and_is_not_installed(job, monkeypatch, kind):
    monkeypatch.setitem(sys.modules, kind, None)
    with pytest.raises(DataError, match=rf"^--log {kind}: {kind} is not installed; pip install {kind} brings it\.$"):
        train(dataclasses.replace(job, log=kind))
    assert not job.out.exists()


# ---------------------------------------------------------------- the time as a limit


def clocked(job, monkeypatch, *, up_after=None, a_step=0.0):
    """Train with a clock of our own: a step takes so many seconds, and after `up_after` an hour has passed.

    Gives the number of steps, and the rows.
    """
    done = []
    made = Trainer.learn

    def learn(self, parts, weights, rate):
        done.append(rate)
        return made(self, parts, weights, rate)

    def clock():
        return a_step * len(done) + (3_600.0 if up_after is not None and len(done) >= up_after else 0.0)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "learn", learn)
        patch.setattr(loop.time, "monotonic", clock)
        rows = train(job)
    return len(done), rows


def test_the_time_ends_a_training_at_a_step(job, monkeypatch):
    job = with_settings(job, epochs=50, max_minutes=0.1, batch_tokens=SETTINGS.batch_tokens)
    n, rows = clocked(job, monkeypatch, a_step=0.5)
    assert n == 12  # of 0.5 s each, where 6 s are given; an epoch has 16
    assert [(row.epoch, row.step) for row in rows] == [(1, 12)]
    assert rows[0].seconds == 6.0
    assert rows[0].learning_rate < 0.2 * SETTINGS.peak_rate
    assert load(job.out).card.training["target_tokens"] == rows[0].tokens
    short = dataclasses.replace(with_settings(job, max_minutes=1e-6), out=job.out.with_name("short"))
    assert [row.step for row in train(short)] == [1]  # however short the time


def test_a_training_that_the_time_ended_goes_on_at_the_next_step(tmp_path, monkeypatch):
    """With dropout and sampled splits, whose draws follow from the step."""
    text = "".join(f"{source}\t{target}\n" for source, target in zip(SOURCES, TARGETS, strict=True))
    for name in ("train", "dev"):
        (tmp_path / f"{name}.tsv").write_text(text * 8, encoding="utf-8")
    job = make_job(tmp_path)
    job = dataclasses.replace(job, pieces="unigram", config=dataclasses.replace(job.config, dropout=0.2, max_len=48))
    job = with_settings(job, sampling=0.2, batch_tokens=400)
    whole, expected = clocked(job, monkeypatch)
    state = stored(job.out)
    one = dataclasses.replace(job, out=job.out.with_name("up"))
    first, _ = clocked(with_settings(one, max_minutes=1.0), monkeypatch, up_after=whole // 2)
    assert first == whole // 2
    second, rows = clocked(dataclasses.replace(one, resume=True), monkeypatch)
    assert first + second == whole
    assert timeless(rows) == timeless(expected)
    resumed = stored(one.out)
    assert resumed["place"] | {"seconds": 0.0} == state["place"] | {"seconds": 0.0}
    for name, tensor in state["model"].items():
        assert torch.equal(resumed["model"][name], tensor), name
    for i, moments in state["optimizer"].items():
        for name, tensor in moments.items():
            assert torch.equal(resumed["optimizer"][i][name], tensor), (i, name)


def test_a_training_whose_time_is_up_is_not_resumed_without_more(job, monkeypatch):
    job = with_settings(job, max_minutes=1.0, batch_tokens=800)
    _, rows = clocked(job, monkeypatch, up_after=3)
    assert clocked(dataclasses.replace(job, resume=True), monkeypatch) == (0, rows)
    n, more = clocked(dataclasses.replace(with_settings(job, max_minutes=120.0), resume=True), monkeypatch)
    assert n > 0
    assert [row.epoch for row in more] == [1, 2]
