"""Each engine of a corpus run gives the same bytes, says what was wrong, and outlives its processes."""

import multiprocessing
import os
import re
import signal
import sys
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest

from glassformer.extensions.corpus.library import lines, measuring, pool, shards
from glassformer.extensions.corpus.library.tables import CorpusOptions
from tests.conftest import SOURCES, TARGETS
from transformer.errors import DataError

OPTIONS = CorpusOptions(shard=2, vectors=2)
forks = pytest.mark.skipif(sys.platform != "linux", reason="what is replaced in this process, a forked one has, too")


@pytest.fixture
def plan(checkpoint, checkpoint_folder, tmp_path):
    file = tmp_path / "pairs.tsv"
    file.write_text("".join(f"{a}\t{b}\n" for a, b in zip(SOURCES, TARGETS, strict=True)), encoding="utf-8")
    return shards.plan(checkpoint, checkpoint_folder, lines.pairs(file), OPTIONS, out=tmp_path)


@pytest.fixture
def forked(monkeypatch):
    """Whatever threads other tests have left."""
    monkeypatch.setattr(pool, "_context", lambda job: multiprocessing.get_context("fork"))


def alone(plan):
    return {shard.number: plan.job.files(shard) for shard in plan.missing()}


def test_processes_that_load_the_checkpoint_themselves_give_the_same_bytes(plan, monkeypatch):
    monkeypatch.setattr(pool, "_context", lambda job: multiprocessing.get_context("spawn"))
    assert dict(pool.measured(plan.job, plan.missing(), processes=1)) == alone(plan)
    assert not multiprocessing.active_children()


class OtherError(Exception):
    """An error of Ray."""


class FakeRay:
    """As much of Ray as the engine asks for, in this process; the real one is `deep` in `test_corpus`."""

    exceptions = SimpleNamespace(RayTaskError=OtherError, RayError=OtherError)

    def __init__(self):
        self.called = []

    def __getattr__(self, name):
        return lambda *given, **named: self.called.append((name, given, named))

    def cluster_resources(self):
        return {"CPU": 2.0}

    def remote(self, **how):
        return lambda work: SimpleNamespace(remote=partial(partial, work))

    def wait(self, running):
        return running[-1:], running[:-1]

    def get(self, ready):
        return ready()


def test_ray_gives_the_same_bytes_in_any_order_and_without_it_one_sentence_says_how_to_get_it(plan, monkeypatch):
    ray = FakeRay()
    monkeypatch.setitem(sys.modules, "ray", ray)
    assert dict(pool.measured_with_ray(plan.job, plan.missing(), processes=2)) == alone(plan)
    assert [name for name, *_ in ray.called] == ["init", "shutdown"]
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(DataError, match=re.escape("needs Ray; pip install 'glassformer[ray]' brings it")):
        list(pool.measured_with_ray(plan.job, plan.missing(), processes=1))


def kill(monkeypatch, whether):
    """Measuring kills its process where `whether` says so of the first line's number."""
    measure = measuring.measure

    def deadly(checkpoint, some, options, gold):
        if whether(some[0].number):
            os.kill(os.getpid(), signal.SIGKILL)
        return measure(checkpoint, some, options, gold)

    monkeypatch.setattr(measuring, "measure", deadly)


@forks
def test_the_shard_of_a_killed_process_is_measured_by_another_and_one_that_kills_each_process_ends_the_run(
    plan, forked, tmp_path, monkeypatch
):
    expected = alone(plan)

    def once(number):
        seen = tmp_path / f"seen{number}"
        there = seen.exists()
        seen.touch()
        return not there

    with monkeypatch.context() as patch:
        kill(patch, once)
        assert dict(pool.measured(plan.job, plan.missing(), processes=4)) == expected  # more than there are shards
    kill(monkeypatch, lambda number: number == 3)
    with pytest.raises(DataError, match=r"lines 3 to 4: the process .* ended 3 times \(exit code -9\)"):
        list(pool.measured(plan.job, plan.missing(), processes=2))
    assert not multiprocessing.active_children()


@forks
def test_what_a_process_refuses_is_said_here(plan, forked, monkeypatch):
    job = replace(plan.job, code="another")
    with pytest.raises(DataError, match="the program was changed during the run"):
        list(pool.measured(job, plan.missing(), processes=1))
    monkeypatch.setattr(measuring, "measure", lambda *given: 1 / 0)
    with pytest.raises(RuntimeError, match="division by zero"):
        list(pool.measured(plan.job, plan.missing(), processes=1))
    assert not multiprocessing.active_children()
