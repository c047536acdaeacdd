"""Who is served together and who first, with threads. Order and counts only: a busy machine says no times."""

import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from glassformer.server.model_runner import BusyError
from tests.glassformer.runs.held import CHECKPOINT, WAIT, Model, query, runner, until_waiting
from transformer.errors import QueryError
from transformer.runs.query import Beam


@pytest.fixture
def visitors():
    with ThreadPoolExecutor(40) as pool:
        yield pool


def asked_while_held(work, model, visitors, queries):
    """Let the model stand at one run while others are asked for, one after the other; then let it go."""
    first = visitors.submit(work.trace, CHECKPOINT, query("first"))
    model.wait_until_it_runs()
    answers = []
    for place, one in enumerate(queries, start=2):
        answers.append(visitors.submit(work.trace, CHECKPOINT, one))
        until_waiting(work, place)
    model.go.set()
    first.result(WAIT)
    return answers


def test_whoever_waits_when_the_model_becomes_free_is_taken_together(visitors):
    model = Model(held=True)
    work = runner(model)
    answers = asked_while_held(work, model, visitors, [query(text) for text in "abcdef"])
    assert [answer.result(WAIT).query.source for answer in answers] == list("abcdef")
    assert model.batches == [["first"], list("abcdef")]
    assert work.n_runs == 7


def test_a_single_visitor_does_not_wait_for_company():
    model = Model()
    runner(model).trace(CHECKPOINT, query("a"))
    assert model.batches == [["a"]]


def test_one_error_in_company_is_one_visitors(visitors):
    model = Model(held=True)
    answers = asked_while_held(runner(model), model, visitors, [query(text) for text in ("a", "bad", "b")])
    assert [answer.result(WAIT).query.source for answer in (answers[0], answers[2])] == ["a", "b"]
    assert isinstance(answers[1].exception(WAIT), QueryError)


@pytest.mark.parametrize("error", [MemoryError("no room"), SystemExit("the model gave up")])
def test_a_batch_that_breaks_off_leaves_nobody_waiting(visitors, error):
    class Broken(Model):
        def trace(self, checkpoint, query):
            if query.source == "b":
                raise error
            return super().trace(checkpoint, query)

    model = Broken(held=True)
    work = runner(model)
    answers = asked_while_held(work, model, visitors, [query(text) for text in "abc"])
    assert answers[0].result(WAIT).query.source == "a"
    assert [answer.exception(WAIT) for answer in answers[1:]] == [error, error]
    assert work.trace(CHECKPOINT, query("c")).query.source == "c"
    assert not work._under_way


def test_a_result_whose_size_cannot_be_told_is_one_visitors_error(visitors):
    class Odd(Model):
        def trace(self, checkpoint, query):
            trace = super().trace(checkpoint, query)
            return trace if query.source != "b" else SimpleNamespace(**(vars(trace) | {"nbytes": "many"}))

    model = Odd(held=True)
    answers = asked_while_held(runner(model), model, visitors, [query(text) for text in "abc"])
    assert [answer.result(WAIT).query.source for answer in (answers[0], answers[2])] == ["a", "c"]
    assert isinstance(answers[1].exception(WAIT), TypeError)


def test_short_runs_go_between_the_rounds_of_a_long_one(visitors):
    """While a beam of 16 stands after its third round, two others ask: both are answered before its fourth."""
    rounds, third, go_on = [], threading.Event(), threading.Event()

    def round():
        rounds.append(list(model.finished))
        if len(rounds) == 3:
            third.set()
            assert go_on.wait(WAIT)

    model = Model(rounds=6, round=round)
    work = runner(model)
    long = visitors.submit(work.trace, CHECKPOINT, query("a beam", decoding=Beam(size=16)))
    assert third.wait(WAIT)
    short = [visitors.submit(work.trace, CHECKPOINT, query(text)) for text in ("one", "two")]
    until_waiting(work, 3)
    go_on.set()
    assert {answer.result(WAIT).query.source for answer in short} == {"one", "two"}
    assert long.result(WAIT).query.source == "a beam"
    assert [len(finished) for finished in rounds] == [0, 0, 0, 2, 2, 2]
    assert model.finished[-1] == "a beam"


def test_a_long_run_is_not_starved_by_short_ones(visitors):
    """At every round of a beam, another visitor has just asked for something; soon the beam goes on all the same."""
    asked, between = [], []

    def round():
        between.append(len(model.finished))
        asked.append(visitors.submit(work.trace, CHECKPOINT, query(f"new {len(asked)}")))
        until_waiting(work, len(asked) - len(model.finished) + 1)

    model = Model(rounds=30, round=round)
    names = iter(range(10**6))
    work = runner(model, visitor=lambda: next(names))  # each asks once only, as a class of newcomers
    assert work.trace(CHECKPOINT, query("a beam of some length", decoding=Beam(size=16))).query
    assert 0 < model.finished.index("a beam of some length") < 12  # about its own cost in short runs, no more
    assert {answer.result(WAIT).query.source for answer in asked} == {f"new {n}" for n in range(30)}


def test_a_visitor_has_a_few_places_and_the_others_keep_theirs(visitors):
    model, names = Model(held=True), threading.local()

    def ask(who, text):
        names.who = who
        return work.trace(CHECKPOINT, query(text))

    work = runner(model, max_places=2, visitor=lambda: getattr(names, "who", None))
    answers = [visitors.submit(ask, "greedy", text) for text in "ab"]
    until_waiting(work, 2)
    with pytest.raises(
        BusyError,
        match=r"^You already have 2 requests waiting for the model, the most allowed\. Try again in a moment\.$",
    ):
        ask("greedy", "c")
    joined = visitors.submit(ask, "greedy", "a")  # joins, and so needs no place
    answers += [visitors.submit(ask, "another", "d")]
    until_waiting(work, 3)
    model.go.set()
    assert [answer.result(WAIT).query.source for answer in (*answers, joined)] == ["a", "b", "d", "a"]
    assert ask("greedy", "c").query.source == "c"
