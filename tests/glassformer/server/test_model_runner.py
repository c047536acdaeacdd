"""The queue in front of the model. Order and counts only: a busy machine says nothing about time."""

import logging
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from glassformer.paths import SHIPPED
from glassformer.server import fair_queue
from glassformer.server.model_runner import BusyError, ModelRunner
from tests.glassformer.runs.held import CHECKPOINT, WAIT, Model, query, runner, until_waiting
from transformer.checkpoint.load import load
from transformer.errors import QueryError
from transformer.runs.query import Query


@pytest.fixture
def visitors():
    with ThreadPoolExecutor(40) as pool:
        yield pool


# ---------------------------------------------------------------- the cache


def test_the_same_query_runs_once():
    model = Model()
    work = runner(model)
    first = work.trace(CHECKPOINT, query("a"))
    assert work.trace(CHECKPOINT, query("a")) is first
    assert (model.ran, work.n_runs) == (["a"], 1)


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


def test_errors_are_raised_and_not_kept():
    model = Model()
    work = runner(model)
    for _ in range(2):
        with pytest.raises(QueryError, match="refused"):
            work.trace(CHECKPOINT, query("bad"))
    assert model.ran == ["bad", "bad"]
    assert work.n_runs == 0
    assert work.trace(CHECKPOINT, query("good")).query == query("good")


def test_an_error_reaches_everybody_who_waited_for_it(visitors):
    model = Model(held=True)
    work = runner(model)
    answers = [visitors.submit(work.trace, CHECKPOINT, query("bad")) for _ in range(5)]
    until_waiting(work, 1)
    model.wait_until_it_runs()
    model.go.set()
    assert all(isinstance(answer.exception(WAIT), QueryError) for answer in answers)


def test_the_cache_is_bounded_in_bytes():
    model = Model(nbytes=100_000)
    work = runner(model, cache_bytes=350_000)
    for text in "abcd":
        work.trace(CHECKPOINT, query(text))
    assert work._cache.currsize <= 350_000
    work.trace(CHECKPOINT, query("d"))
    work.trace(CHECKPOINT, query("a"))  # the one asked for longest ago had to leave
    assert "".join(model.ran) == "abcda"


@pytest.mark.parametrize("nbytes", [345_000, 350_000, 1_000_000])
def test_a_trace_too_large_for_the_cache_is_still_given(nbytes):
    model = Model(nbytes=nbytes)
    work = runner(model, cache_bytes=350_000)
    assert work.trace(CHECKPOINT, query("a")).nbytes == nbytes
    assert work.trace(CHECKPOINT, query("a")).nbytes == nbytes
    assert work.n_runs == 2


# ---------------------------------------------------------------- the queue


def test_a_full_queue_says_so_and_recovers(visitors):
    model = Model(held=True)
    work = runner(model, max_waiting=3)
    answers = [visitors.submit(work.trace, CHECKPOINT, query(text)) for text in "abc"]
    until_waiting(work, 3)
    with pytest.raises(BusyError, match="3 requests are already waiting"):
        work.trace(CHECKPOINT, query("d"))
    joined = visitors.submit(work.trace, CHECKPOINT, query("a"))  # joins, and so needs no place
    model.go.set()
    assert [answer.result(WAIT).query.source for answer in (*answers, joined)] == ["a", "b", "c", "a"]
    assert work.trace(CHECKPOINT, query("d")).query.source == "d"


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


def test_a_visitor_who_never_stops_delays_others_by_one_run(visitors):
    """The greedy visitor asks again as soon as an answer is there; still every other request is next but one."""
    model = Model(held=True)
    work = runner(model)
    stop = threading.Event()

    def never_stops():
        count = 0
        while not stop.is_set():
            work.trace(CHECKPOINT, query(f"greedy {count}"))
            count += 1

    greedy = visitors.submit(never_stops)
    model.wait_until_it_runs()
    delays = []
    for number in range(10):
        model.go.clear()
        mine = visitors.submit(work.trace, CHECKPOINT, query(f"mine {number}"))
        until_waiting(work, 2)
        asked = len(model.ran)
        model.go.set()
        mine.result(WAIT)
        delays.append(model.ran.index(f"mine {number}") - asked)
    stop.set()
    model.go.set()
    greedy.result(WAIT)
    assert max(delays) <= 1


def test_requests_are_served_in_the_order_they_came(visitors):
    model = Model(held=True)
    work = runner(model)
    answers = []
    for place, text in enumerate("abcdef", start=1):
        answers.append(visitors.submit(work.trace, CHECKPOINT, query(text)))
        until_waiting(work, place)
    model.go.set()
    for answer in answers:
        answer.result(WAIT)
    assert model.ran == list("abcdef")


def test_each_run_is_logged_without_its_text(caplog):
    with caplog.at_level(logging.INFO, logger="glassformer.runs"):
        work = runner(Model())
        for text in ("private", "private", "other"):
            work.trace(CHECKPOINT, query(text))
    assert [record.getMessage()[:12] for record in caplog.records] == ["model run 1:", "model run 2:"]
    assert "private" not in caplog.text  # what visitors type is nobody's business


# ---------------------------------------------------------------- other work with the model


def test_other_work_is_done_once_and_kept():
    work, done = runner(Model()), []
    for _ in range(2):
        assert work.compute("key", lambda: done.append(1) or "result", nbytes=len) == "result"
    assert done == [1]


def test_what_is_kept_can_be_asked_for_without_beginning_it():
    work = runner(Model())
    assert work.kept("key") is None
    work.compute("key", lambda: "result", nbytes=len)
    assert work.kept("key") == "result"


def test_other_work_shares_the_room_of_the_cache():
    work, done = runner(Model(), cache_bytes=30_000), []
    for key in ("first", "second", "first"):
        work.compute(key, lambda key=key: done.append(key) or key, nbytes=lambda _: 10_000)
    assert done == ["first", "second", "first"]


def test_errors_of_other_work_are_raised_and_not_kept():
    work = runner(Model())

    def fail():
        raise QueryError("refused")

    with pytest.raises(QueryError, match="refused"):
        work.compute("key", fail, nbytes=len)
    assert work.compute("key", lambda: "better", nbytes=len) == "better"


def test_work_whose_size_cannot_be_told_does_not_stay_under_way():
    work = runner(Model())
    with pytest.raises(TypeError):
        work.compute("key", lambda: 7, nbytes=len)
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


def test_heavy_requests_of_some_hold_up_another_by_the_run_that_goes_on(visitors, monkeypatch):
    """What they take is measured: all of these are thought to cost the same."""
    monkeypatch.setattr(fair_queue, "MUCH_SECONDS", 0.0)
    own, begun, go, order = threading.local(), threading.Event(), threading.Event(), []
    work = ModelRunner(visitor=lambda: own.name, max_places=10)

    def ask(who, n, hold=lambda: None):
        own.name = who
        return work.compute((who, n), lambda: (hold(), order.append(who)), nbytes=lambda _: 1)

    for who in ("one", "two", "three", "four"):
        visitors.submit(ask, who, 0).result(WAIT)
    asked = [visitors.submit(ask, "one", 1, lambda: begun.set() or go.wait(WAIT))]
    assert begun.wait(WAIT)
    asked += [visitors.submit(ask, who, n) for who, n in [("two", 1), ("three", 1), ("four", 1)]]
    asked += [visitors.submit(ask, "one", n) for n in range(2, 11)]
    until_waiting(work, 13)
    asked.append(visitors.submit(ask, "light", 1))
    until_waiting(work, 14)
    order.clear()
    go.set()
    for answer in asked:
        answer.result(WAIT)
    assert order[:2] == ["one", "light"]
