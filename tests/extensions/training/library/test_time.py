"""The time as a limit: a training ends at a step, and goes on from it as if it had not ended."""

import dataclasses

import torch

from glassformer.extensions.training.library import loop
from glassformer.extensions.training.library.loop import Trainer
from glassformer.extensions.training.library.run import train
from tests.conftest import SOURCES, TARGETS
from tests.extensions.training.library.training_jobs import SETTINGS, make_job, stored, with_settings
from transformer.checkpoint.load import load


def steps(job, monkeypatch, *, up_after=None, a_step=0.0):
    """Train with a clock of our own, and give the number of steps.

    Args:
        job: What to train.
        monkeypatch: Puts the clock in place.
        up_after: From this step on an hour has passed; None for never.
        a_step: Seconds a step takes besides.
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
    job = with_settings(job, epochs=50, max_minutes=0.1)
    n, rows = steps(job, monkeypatch, a_step=0.5)
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
    whole, expected = steps(job, monkeypatch)
    state = stored(job.out)
    one = dataclasses.replace(job, out=job.out.with_name("up"))
    first, _ = steps(with_settings(one, max_minutes=1.0), monkeypatch, up_after=whole // 2)
    assert first == whole // 2
    second, rows = steps(dataclasses.replace(one, resume=True), monkeypatch)
    assert first + second == whole
    timeless = [[dataclasses.replace(row, seconds=0.0) for row in found] for found in (rows, expected)]
    assert timeless[0] == timeless[1]
    resumed = stored(one.out)
    assert resumed["place"] | {"seconds": 0.0} == state["place"] | {"seconds": 0.0}
    for name, tensor in state["model"].items():
        assert torch.equal(resumed["model"][name], tensor), name
    for i, moments in state["optimizer"].items():
        for name, tensor in moments.items():
            assert torch.equal(resumed["optimizer"][i][name], tensor), (i, name)


def test_a_training_whose_time_is_up_is_not_resumed_without_more(job, monkeypatch):
    job = with_settings(job, max_minutes=1.0, batch_tokens=800)
    _, rows = steps(job, monkeypatch, up_after=3)
    assert steps(dataclasses.replace(job, resume=True), monkeypatch) == (0, rows)
    n, more = steps(dataclasses.replace(with_settings(job, max_minutes=120.0), resume=True), monkeypatch)
    assert n > 0
    assert [row.epoch for row in more] == [1, 2]
