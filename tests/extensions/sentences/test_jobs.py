"""Files of sentences in the background: all of their lines, others first, ended when asked, kept in some number."""

import os
import threading
from pathlib import Path

import pytest

from glassformer.extensions.sentences.line_runs import run_lines
from glassformer.extensions.sentences.sentence_runs import SentenceRuns
from glassformer.extensions.what_if.interventions import ZeroHead
from glassformer.server.model_runner import BusyError, ModelRunner
from glassformer.state.link import Link
from tests.glassformer.runs.held import WAIT, until_waiting
from transformer import load
from transformer.analysis.line_file import read_text
from transformer.errors import QueryError
from transformer.runs.dynamic_batching import run_together
from transformer.runs.query import Beam

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


@pytest.mark.parametrize(
    "link", [Link(), Link(decoding=Beam(size=2)), Link(interventions=(ZeroHead("encoder", 0, 1),))]
)
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


class Gate:
    """A pause of the model's thread that stands still until it is let go."""

    def __init__(self, monkeypatch):
        self.reached, self.go = threading.Event(), threading.Event()
        part = ModelRunner.part

        def held(runner, work, **about):
            def slow(let_others):
                def pause():
                    self.reached.set()
                    assert self.go.wait(WAIT)
                    let_others()

                return work(pause)

            return part(runner, slow, **about)

        monkeypatch.setattr(ModelRunner, "part", held)


@pytest.fixture
def gate(monkeypatch):
    found = Gate(monkeypatch)
    yield found
    found.go.set()


def test_whoever_asks_for_a_sentence_goes_first(checkpoint, gate):
    there = []

    def watched(*given, **about):
        there.append(len(job.seen.so_far or ()))
        return run_together(*given, **about)

    runner = ModelRunner(runs=watched)
    job = SentenceRuns(runner).start(checkpoint, lines("abcdefghijk\n" * 20), Link())
    assert gate.reached.wait(WAIT)
    asked = threading.Thread(target=runner.trace, args=(checkpoint, checkpoint.query("ab")))
    asked.start()
    until_waiting(runner, 2)
    gate.go.set()
    asked.join(WAIT)
    assert there == [0]
    assert until_over(job).state == "done"


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


def test_only_so_many_are_kept_and_none_that_runs_is_let_go(checkpoint, runner, gate):
    jobs = SentenceRuns(runner, most=2)
    kept = [jobs.start(checkpoint, lines(), Link()) for _ in range(2)]
    with pytest.raises(BusyError, match="2 files of sentences are running"):
        jobs.start(checkpoint, lines(), Link())
    gate.go.set()
    for job in kept:
        until_over(job)
    jobs.find(kept[0].about.id)
    third = jobs.start(checkpoint, lines(), Link())
    assert jobs.find(kept[0].about.id) is kept[0]
    assert jobs.find(kept[1].about.id) is None
    assert jobs.find(third.about.id) is third
    assert until_over(third).state == "done"


def test_what_a_model_cannot_do_is_refused_at_once(checkpoint, runner):
    with pytest.raises(QueryError, match="layer"):
        SentenceRuns(runner).start(checkpoint, lines(), Link(interventions=(ZeroHead("encoder", 9, 0),)))


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
    assert other.again("../" + job.about.id, checkpoint) is None
    assert SentenceRuns(runner).again(job.about.id, checkpoint) is None  # nothing is shared
    (tmp_path / job.about.id).write_text('["",["no",1]]')
    assert other.again(job.about.id, checkpoint) is None


def test_what_a_shared_file_asks_for_does_not_stay(checkpoint, tmp_path):
    runs = SentenceRuns(ModelRunner(), shared=tmp_path)
    first = runs.start(checkpoint, lines(), Link())
    os.utime(tmp_path / first.about.id, (0, 0))
    second = runs.start(checkpoint, lines(), Link())
    assert [file.name for file in tmp_path.iterdir()] == [second.about.id]
