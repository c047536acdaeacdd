"""The time as a limit: a training ends at a step, and goes on from it as if it had not ended."""

import dataclasses
from itertools import count

import pytest
import torch

from glassformer.extensions.training.library import loop
from glassformer.extensions.training.library.loop import Trainer
from glassformer.extensions.training.library.run import train
from tests.conftest import SOURCES, TARGETS
from tests.extensions.training.library.training_jobs import SETTINGS, make_job, store, stored, with_settings
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


def test_one_step_is_done_however_short_the_time(job):
    rows = train(with_settings(job, epochs=50, max_minutes=1e-6))
    assert [row.step for row in rows] == [1]


@pytest.fixture(scope="module", params=[0.0, 0.2], ids=["0.0", "0.2"])
def untroubled(request, tmp_path_factory):
    """A job, and the number of steps, the rows and the last state of a training that nothing ends."""
    text = "".join(f"{source}\t{target}\n" for source, target in zip(SOURCES, TARGETS, strict=True))
    folder = tmp_path_factory.mktemp("untroubled")
    for name in ("train", "dev"):
        (folder / f"{name}.tsv").write_text(text * 16, encoding="utf-8")
    job = make_job(folder)
    job = dataclasses.replace(job, pieces="unigram", config=dataclasses.replace(job.config, dropout=0.2, max_len=48))
    job = with_settings(job, sampling=request.param, batch_tokens=200)
    with pytest.MonkeyPatch.context() as patch:
        whole, expected = steps(job, patch)
    assert whole > 12
    return job, whole, expected, stored(job.out)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.5, 0.55, 0.99])
def test_a_training_that_the_time_ended_goes_on_at_the_next_step(untroubled, tmp_path, monkeypatch, share):
    job, whole, expected, state = untroubled
    job = dataclasses.replace(job, out=tmp_path / "out" / "reverse")
    up_after = max(int(share * whole), 1)
    first, _ = steps(with_settings(job, max_minutes=1.0), monkeypatch, up_after=up_after)
    assert first == up_after
    second, rows = steps(dataclasses.replace(job, resume=True), monkeypatch)
    assert first + second == whole
    timeless = [[dataclasses.replace(row, seconds=0.0) for row in found] for found in (rows, expected)]
    assert timeless[0] == timeless[1]
    resumed = stored(job.out)
    assert resumed["place"] | {"seconds": 0.0} == state["place"] | {"seconds": 0.0}
    for name, tensor in state["model"].items():
        assert torch.equal(resumed["model"][name], tensor), name
    for i, moments in state["optimizer"].items():
        for name, tensor in moments.items():
            assert torch.equal(resumed["optimizer"][i][name], tensor), (i, name)


def test_a_training_whose_time_is_up_is_not_resumed_without_more(job, monkeypatch):
    job = with_settings(job, max_minutes=1.0)
    _, rows = steps(job, monkeypatch, up_after=3)
    assert steps(dataclasses.replace(job, resume=True), monkeypatch) == (0, rows)
    n, more = steps(dataclasses.replace(with_settings(job, max_minutes=120.0), resume=True), monkeypatch)
    assert n > 0
    assert [row.epoch for row in more] == [1, 2]


def test_the_time_may_be_up_again_and_again(job, monkeypatch):
    _, expected = steps(dataclasses.replace(job, out=job.out.with_name("whole")), monkeypatch)
    for n in count(1):
        done, rows = steps(
            dataclasses.replace(with_settings(job, max_minutes=1.0), resume=n > 1), monkeypatch, up_after=6
        )
        state = stored(job.out)
        cut = state["place"]["steps"] > 0
        assert cut == (rows[-1].step % expected[0].step != 0)
        if not done or (len(rows) == 2 and not cut):
            break
        # The clock stands still but for the hour: progress is that of the steps.
        store(job.out, state | {"place": state["place"] | {"seconds": 0.0}})
    assert rows[-1].step == expected[-1].step
    assert [row.loss for row in rows] == [row.loss for row in expected]
