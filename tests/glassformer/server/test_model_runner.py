"""One queue serves everybody: each request is run once, and an error or a crash is its visitor's alone."""

import logging
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from glassformer import SHIPPED
from glassformer.server.model_runner import BusyError, ModelRunner
from tests.glassformer.runs.held import CHECKPOINT, WAIT, Model, query, runner, until_waiting
from transformer.checkpoint.load import load
from transformer.errors import QueryError
from transformer.runs.query import Beam, Query


@pytest.fixture
def visitors():
    with ThreadPoolExecutor(40) as pool:
        yield pool


# ---------------------------------------------------------------- the cache


def test_a_checkpoint_of_the_same_content_shares_results_under_its_own_name(tmp_path):
    first, other = (load(shutil.copytree(SHIPPED / "reverse", tmp_path / name)) for name in ("first", "other"))
    work, asked = ModelRunner(), Query(checkpoint=first.content_hash, source="abc")
    one, two = (work.trace(checkpoint, asked) for checkpoint in (first, other))
    assert (one.checkpoint, two.checkpoint, work.n_runs) == ("first", "other", 1)
    assert two.tgt_ids == one.tgt_ids


def test_twenty_visitors_with_one_query_are_one_run(visitors):
    model = Model(held=True)
    work = runner(model)
    answers = [visitors.submit(work.trace, CHECKPOINT, query("a")) for _ in range(20)]
    model.wait_until_it_runs()
    model.go.set()
    assert len({id(answer.result(WAIT)) for answer in answers}) == 1
    assert work.n_runs == 1


def test_an_error_reaches_everybody_who_waited_for_it_and_is_not_kept(visitors):
    model = Model(held=True)
    work = runner(model)
    answers = [visitors.submit(work.trace, CHECKPOINT, query("bad")) for _ in range(5)]
    until_waiting(work, 1)
    model.wait_until_it_runs()
    model.go.set()
    assert all(isinstance(answer.exception(WAIT), QueryError) for answer in answers)
    with pytest.raises(QueryError, match="refused"):
        work.trace(CHECKPOINT, query("bad"))
    assert (model.ran[-1], work.n_runs) == ("bad", 0)
    assert work.trace(CHECKPOINT, query("good")).query == query("good")


def test_the_cache_is_bounded_in_bytes():
    model = Model(nbytes=100_000)
    work = runner(model, cache_bytes=350_000)
    for text in "abcd":
        work.trace(CHECKPOINT, query(text))
    assert work._cache.currsize <= 350_000
    work.trace(CHECKPOINT, query("d"))
    work.trace(CHECKPOINT, query("a"))  # the one asked for longest ago had to leave
    assert "".join(model.ran) == "abcda"


@pytest.mark.parametrize("nbytes", [350_000, 1_000_000])
def test_a_trace_too_large_for_the_cache_is_still_given(nbytes):
    model = Model(nbytes=nbytes)
    work = runner(model, cache_bytes=350_000)
    assert work.trace(CHECKPOINT, query("a")).nbytes == nbytes
    assert work.trace(CHECKPOINT, query("a")).nbytes == nbytes
    assert work.n_runs == 2


# ---------------------------------------------------------------- the queue


def test_who_waits_too_long_is_told_and_the_run_goes_on():
    model = Model(held=True)
    work = runner(model, max_seconds=0.05)
    with pytest.raises(BusyError, match=r"within 0\.05 seconds"):
        work.trace(CHECKPOINT, query("a"))
    under_way = work._under_way[query("a")].future
    model.go.set()
    finished = under_way.result(WAIT)
    assert work.trace(CHECKPOINT, query("a")) is finished
    assert work.n_runs == 1


def test_each_run_is_logged_without_its_text(caplog):
    with caplog.at_level(logging.INFO, logger="glassformer.runs"):
        work = runner(Model())
        for text in ("private", "private", "other"):
            work.trace(CHECKPOINT, query(text))
    assert [record.getMessage()[:12] for record in caplog.records] == ["model run 1:", "model run 2:"]
    assert "private" not in caplog.text  # what visitors type is nobody's business


# ---------------------------------------------------------------- other work with the model


def test_other_work_is_done_once_and_shares_the_room_of_the_cache():
    work, done = runner(Model(), cache_bytes=30_000), []
    assert work.kept("first") is None
    for key in ("first", "first", "second", "first"):
        work.compute(key, lambda key=key: done.append(key) or key, nbytes=lambda _: 10_000)
    assert done == ["first", "second", "first"]
    assert work.kept("first") == "first"


def test_other_work_that_fails_or_whose_size_cannot_be_told_is_not_kept():
    work = runner(Model())

    def fail():
        raise QueryError("refused")

    for wrong, error in ((fail, QueryError), (lambda: 7, TypeError)):
        with pytest.raises(error):
            work.compute("key", wrong, nbytes=len)
        assert work.kept("key") is None
    assert work.compute("key", lambda: "better", nbytes=len) == "better"


def test_what_nobody_waits_for_yet_comes_last(visitors):
    model, other = Model(held=True), SimpleNamespace(name="another")  # of which no run joins those of the first
    work = runner(model)
    answers = [visitors.submit(work.trace, CHECKPOINT, query("first"))]
    model.wait_until_it_runs()
    for n, (checkpoint, name, ahead) in enumerate([(other, "late", True), (CHECKPOINT, "b" * 90, False)]):
        answers.append(visitors.submit(work.trace, checkpoint, query(name), ahead=ahead))
        until_waiting(work, n + 2)
    model.go.set()
    assert [answer.result(WAIT).query.source for answer in answers] == ["first", "late", "b" * 90]
    assert model.ran == ["first", "b" * 90, "late"]


# -------------------------------------------------------------------------------- who is served together


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


def test_whoever_waits_when_the_model_becomes_free_is_taken_together_and_one_error_is_one_visitors(visitors):
    model = Model(held=True)
    work = runner(model)
    answers = asked_while_held(work, model, visitors, [query(text) for text in ("a", "bad", "b", "c")])
    assert [answers[n].result(WAIT).query.source for n in (0, 2, 3)] == ["a", "b", "c"]
    assert isinstance(answers[1].exception(WAIT), QueryError)
    assert model.batches == [["first"], ["a", "b", "c", "bad"]]
    assert work.n_runs == 4


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


def test_a_visitor_has_a_few_places_a_queue_too_and_the_others_keep_theirs(visitors):
    model, names = Model(held=True), threading.local()

    def ask(who, text):
        names.who = who
        return work.trace(CHECKPOINT, query(text))

    work = runner(model, max_places=2, max_waiting=3, visitor=lambda: getattr(names, "who", None))
    answers = [visitors.submit(ask, "greedy", text) for text in "ab"]
    until_waiting(work, 2)
    with pytest.raises(BusyError, match="You already have 2 requests waiting for the model, the most allowed"):
        ask("greedy", "c")
    joined = visitors.submit(ask, "greedy", "a")  # joins, and so needs no place
    answers += [visitors.submit(ask, "another", "d")]
    until_waiting(work, 3)
    with pytest.raises(BusyError, match="3 requests are already waiting"):
        ask("third", "e")
    model.go.set()
    assert [answer.result(WAIT).query.source for answer in (*answers, joined)] == ["a", "b", "d", "a"]
    assert ask("greedy", "c").query.source == "c"
