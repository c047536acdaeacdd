"""A file of sentences runs in the background, can be stopped, and is run again by other replicas."""

import os
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from glassformer.extensions.sentences.line_runs import run_lines
from glassformer.extensions.sentences.sentence_runs import SentenceRuns
from glassformer.extensions.what_if.interventions import ZeroHead
from glassformer.server.model_runner import ModelRunner
from glassformer.state.link import Link
from tests.glassformer.waiting import WAIT
from transformer import load
from transformer.errors import QueryError
from transformer.runs.query import Beam
from transformer.runs.sentence_files import read_text

REVERSE = Path(__file__).parents[3] / "checkpoints" / "reverse"
TEXT = "abc\tcba\nglass\na b c d e f g h i j\nxy\tyx"


@pytest.fixture(scope="module")
def checkpoint():
    return load(REVERSE)


@pytest.fixture
def runner():
    return ModelRunner()


def lines(text=TEXT):
    return read_text(text, label="x")


def until_over(job):
    """The last progress of a job that ends by itself."""
    assert job.over.wait(WAIT), job.seen
    return job.seen


@pytest.mark.parametrize("link", [Link(), Link(decoding=Beam(size=2), interventions=(ZeroHead("encoder", 0, 1),))])
def test_a_job_has_what_the_library_gives(checkpoint, runner, link):
    job = SentenceRuns(runner).start(checkpoint, lines(), link)
    seen, file = until_over(job), job.about
    assert (seen.state, len(file.lines), seen.problem) == ("done", 4, None)
    expected = {one.line.number: one for one in run_lines(checkpoint, lines(), file.how)}
    assert [one.line.number for one in file.results(job)] == [1, 2, 3, 4]
    for one in file.results(job):
        assert (one.output, one.problem) == (expected[one.line.number].output, expected[one.line.number].problem)
    assert "reads at most" in str(file.results(job)[2].problem)
    assert not runner._under_way
    assert not runner._cache  # nothing is kept in the place of what visitors ask for


@pytest.fixture
def gate(monkeypatch):
    """A pause of the model's thread that stands still until it is let go."""
    found, part = SimpleNamespace(reached=threading.Event(), go=threading.Event()), ModelRunner.part

    def held(runner, work, **about):
        def slow(let_others):
            def pause():
                found.reached.set()
                assert found.go.wait(WAIT)
                let_others()

            return work(pause)

        return part(runner, slow, **about)

    monkeypatch.setattr(ModelRunner, "part", held)
    yield found
    found.go.set()


def test_a_job_that_is_cancelled_ends_in_its_batch_and_keeps_what_is_there(checkpoint, runner, gate):
    jobs = SentenceRuns(runner)
    job = jobs.start(checkpoint, lines("abcdefghijk\n" * 40), Link())
    assert gate.reached.wait(WAIT)
    jobs.withdraw(job.about.id)
    gate.go.set()
    found = until_over(job)
    assert found.state == "cancelled"
    assert len(found.so_far or ()) < 16
    assert runner.trace(checkpoint, checkpoint.query("abc")).output_text == "cba"


def test_another_replica_runs_a_shared_file_again(checkpoint, runner, tmp_path):
    one, other = (SentenceRuns(ModelRunner(), shared=tmp_path) for _ in range(2))
    asked = [*lines(), *read_text("\n" * 9 + "a\tb\tc", label="x")]  # the last one has a problem
    link = Link(decoding=Beam(size=2), interventions=(ZeroHead("encoder", 0, 1),))
    job = one.start(checkpoint, asked, link)
    again = other.again(job.about.id, checkpoint)
    assert again.about == job.about
    until_over(job), until_over(again)
    assert again.about.results(again) == job.about.results(job)
    assert str(again.about.results(again)[-1].problem).startswith("Expected a source")
    assert other.again("x" * 16, checkpoint) is None
    assert other.again(job.about.id, replace(checkpoint, content_hash="of another one")) is None
    assert other.again("../" + job.about.id, checkpoint) is None
    assert SentenceRuns(runner).again(job.about.id, checkpoint) is None  # nothing is shared
    (tmp_path / job.about.id).write_text('["",["no",1]]')
    assert other.again(job.about.id, checkpoint) is None
    with pytest.raises(QueryError, match="layer"):
        one.start(checkpoint, asked, Link(interventions=(ZeroHead("encoder", 9, 0),)))


def test_what_a_shared_file_asks_for_does_not_stay(checkpoint, tmp_path):
    runs = SentenceRuns(ModelRunner(), shared=tmp_path)
    first = runs.start(checkpoint, lines(), Link())
    os.utime(tmp_path / first.about.id, (0, 0))
    second = runs.start(checkpoint, lines(), Link())
    assert [file.name for file in tmp_path.iterdir()] == [second.about.id]
