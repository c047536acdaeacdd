"""What is asked about a cache counts what a run with one and a run without one compute."""

import pytest

from glassformer.extensions.lessons.library.case import QuestionNotApplicable
from glassformer.extensions.lessons.library.lesson_files import lessons
from glassformer.extensions.lessons.library.posing import pose
from glassformer.extensions.lessons.library.subjects import cost_questions
from tests.extensions.lessons.library.posed import SPOKEN, case

STEPS = lessons()["cache"].steps
both = pytest.mark.parametrize(("name", "sentence"), SPOKEN)


@both
def test_counts_are_those_of_the_run(name, sentence):
    run = case(name, sentence)
    n, s = run.trace.n_steps, len(run.trace.src_ids)
    kept, afresh = (cost_questions.write_again(run, cached=cached) for cached in (True, False))
    assert kept.own == (1,) * n
    assert afresh.own == tuple(range(1, n + 1))
    assert kept.source == (s, *[0] * (n - 1))
    assert afresh.source == (s,) * n
    config = run.checkpoint.config
    assert kept.held == 2 * config.n_decoder_layers * config.d_model * (n + s)
    assert afresh.held == 0


@both
def test_what_is_told(name, sentence):
    run = case(name, sentence)
    n = run.trace.n_steps
    first, total, same, source, size = (pose(step, run).answer for step in STEPS)
    assert (first.right, same.right, source.right, size.right) == ("own", "rounding", "once", "both")
    assert total.right == n * (n + 1) / 2
    assert total.usual == n * n
    assert source.values["without"] == n
    assert size.values["a_token"] * (n + len(run.trace.src_ids)) == size.values["held"]


def test_a_long_output_is_not_written_twice(monkeypatch):
    monkeypatch.setattr(cost_questions, "MOST_STEPS", 3)
    with pytest.raises(QuestionNotApplicable, match="too long"):
        pose(STEPS[1], case("en-fr", "The dog bit the man."))
