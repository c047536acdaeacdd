"""One fair queue serves everybody: short work first, each request run once, and an error is its visitor's alone."""

import logging
import shutil
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer import SHIPPED
from glassformer.server.model_runner import (
    LATE_SECONDS,
    PATIENT_SECONDS,
    BusyError,
    FairQueue,
    ModelRunner,
    Request,
    cost_of,
)
from tests.glassformer.waiting import WAIT, Clock, until
from transformer.checkpoint.load import load
from transformer.errors import QueryError
from transformer.runs.query import MOST_TOGETHER, Beam, Query, Sampling


class MadeUp(SimpleNamespace):
    """A checkpoint whose runs are those of the model that `runner` was made with last."""

    def run_together(self, queries, *, most_map_bytes, pause):
        return MadeUp.model(self, queries, pause=pause)


CHECKPOINT, THERE = MadeUp(name="made up"), MadeUp(name="there")


def request(name, visitor=None, cost=10.0, **options):
    """Some work that takes as long as it says."""
    return Request(name, visitor, cost, len, work=lambda pause: name, **options)


def query(text, **options):
    return Query(checkpoint="hash", source=text, **options)


def run(source, *, checkpoint=CHECKPOINT, **options):
    asked = query(source, **options)
    return Request(asked, None, cost_of(asked), len, checkpoint=checkpoint, query=asked)


def served(queue, *, most=10**6):
    """What is taken, one after the other, each done before the next."""
    names = []
    while len(names) < most and (taken := queue.take()):
        queue.done(taken)
        names += [one.key for one in taken]
    return names


def filled(*requests):
    queue = FairQueue()
    for one in requests:
        queue.put(one)
    return queue


def test_short_work_goes_first_equal_work_in_the_order_it_came_and_sooner_when_asked_for_at_less_cost():
    queue = filled(request("long", cost=90), request("a"), request("b"), request("middle", cost=20), request("c"))
    assert served(queue) == ["a", "b", "c", "middle", "long"]
    assert queue.take() == []
    ahead, mine = request("ahead", cost=500), request("mine", cost=40)
    queue = filled(ahead, mine, request("yours", cost=20))
    queue.hurry(ahead, request("ahead", "you", 10))
    queue.hurry(mine, request("mine", cost=900))  # that would be later
    assert served(queue) == ["ahead", "yours", "mine"]


def test_a_beam_costs_more_than_a_sentence_and_a_long_sentence_more_than_a_short_one():
    short, long = "x" * 20, "x" * 40
    sentence = cost_of(query(short))
    assert cost_of(query(short, decoding=Sampling())) == sentence
    assert cost_of(query(long, max_new=3)) < sentence < cost_of(query(long))
    assert cost_of(query(short, decoding=Beam(size=16))) > 3 * sentence


def test_a_visitor_who_loops_gets_an_even_share_and_new_visitors_with_short_work_starve_nobody():
    queue, shares = filled(request("long", "looping", 60), request("short", "me")), Counter()
    for _ in range(300):
        (taken,) = (done := queue.take())
        queue.done(done)
        shares[taken.visitor] += taken.cost
        queue.put(request(taken.key, taken.visitor, taken.cost))
    assert 0.8 < shares["looping"] / shares["me"] < 1.25
    queue, names = filled(request("long", cost=100)), []
    for count in range(100):  # every visitor is new and asks once
        queue.put(request(f"short {count}", count))
        names += served(queue, most=1)
    assert names.index("long") <= 100 / 10


@given(st.lists(st.tuples(st.integers(0, 4), st.floats(1, 200), st.integers(0, 2)), max_size=60))
def test_everything_is_served_once(asked):
    queue, found = FairQueue(), []
    for number, (visitor, cost, n_served) in enumerate(asked):
        queue.put(request(number, visitor, cost))
        found += served(queue, most=n_served)
    assert sorted(found + served(queue)) == [*range(len(asked))]
    queue.done([request("later")])
    assert all(mark > queue._clock for mark in queue._last.values())  # nobody is remembered for nothing


class Waited:
    """A queue by a clock that is set by hand."""

    def __init__(self):
        self.clock = Clock()
        self.queue = FairQueue(self.clock)

    def put(self, name, visitor, cost):
        self.queue.put(request(name, visitor, cost, came=self.clock()))

    def used(self, seconds, *visitors):
        """Each of them had the model for so long just now."""
        for visitor in visitors:
            self.queue.done([request("before", visitor, 0)], seconds)


@pytest.mark.parametrize(("heavy", "cost"), [(["one"] * 10, 400.0), (["one", "two", "three", "four"], 1.0)])
def test_heavy_requests_hold_up_a_light_one_for_no_longer_than_the_run_that_goes_on(heavy, cost):
    """Whatever they were thought to cost, as with a tokenizer that takes seconds for a letter."""
    line = Waited()
    line.used(3.0, *heavy)
    for n, visitor in enumerate(heavy):
        line.put(f"heavy {n}", visitor, cost)
    (running,) = line.queue.take()
    line.put("light", "me", 25.0)
    assert [one.key for one in line.queue.take(before=line.queue.rank(running))] == ["light"]  # in a pause
    line.put("light again", "me", 25.0)
    line.queue.done([running], 3.0)
    assert served(line.queue)[0] == "light again"


def test_who_has_waited_long_stands_among_all_others_and_what_was_used_fades():
    line = Waited()
    line.used(3.0, "one")
    line.put("heavy", "one", 10.0)
    for n in range(3):
        line.put(f"light {n}", n, 25.0)
        assert [one.key for one in line.queue.take()] == [f"light {n}"]
    for seconds in (PATIENT_SECONDS, 2 * LATE_SECONDS):
        line.clock.now += seconds
        line.put("light", "me", 25.0)
        if seconds > PATIENT_SECONDS:
            line.put("heavy", "one", 10.0)
        assert served(line.queue) == ["heavy", "light"]
    line.used(0.1, "other")
    line.clock.now += 20 * LATE_SECONDS
    line.used(0.1, "me")
    assert line.queue._used.keys() == {"me"}, "nobody is remembered for nothing"


def company(*requests):
    """Who is taken first, by what they asked for."""
    return [one.key.source for one in filled(*requests).take()]


def test_runs_that_wait_are_taken_together_but_what_cannot_be_decoded_together_is_not():
    alike = [run("abc"), run("abcd"), run("abc", decoding=Sampling(seed=3)), run("ab", forced=(7,))]
    assert company(*alike) == ["ab", "abc", "abc", "abcd"]
    long, beam = run("x" * 300), run("abc", decoding=Beam(size=2))
    work, elsewhere = request("work", cost=1000), run("abc", checkpoint=THERE)
    for other in (long, beam, work, elsewhere):
        assert company(run("abc"), other) == ["abc"]
    assert [one.key for one in filled(request("a", cost=1), run("abc")).take()] == ["a"]


def test_a_batch_is_no_larger_than_pays_and_the_nearest_in_length_come_first():
    queue = filled(*(run("x" * length) for length in [10] * 20 + [12] * 20 + [20] * 20))
    first, second = queue.take(), queue.take()
    assert [len(one.key.source) for one in first] == [10] * 20 + [12] * 12
    assert (len(first), len(second), queue.take()) == (MOST_TOGETHER, 60 - MOST_TOGETHER, [])
    assert len(filled(*(run("x" * 400) for _ in range(9))).take()) == 1
    assert 1 < len(filled(*(run("x" * 150) for _ in range(40))).take()) < MOST_TOGETHER


class Model:
    """A made-up model: it writes down what it ran, and can be held."""

    def __init__(self, *, nbytes=1000, held=False, rounds=0, round=lambda: None):
        self.ran, self.finished, self.batches, self.nbytes = [], [], [], nbytes
        self.rounds, self.round = rounds, round
        self.go, self.started = threading.Event(), threading.Semaphore(0)
        if not held:
            self.go.set()

    def __call__(self, checkpoint, queries, *, pause):
        self.batches.append([query.source for query in queries])
        for query in queries:
            self.ran.append(query.source)
            self.started.release()
            assert self.go.wait(WAIT)
            for _ in range(self.rounds if isinstance(query.decoding, Beam) else 0):
                self.round()
                pause()
            yield QueryError("refused") if query.source.startswith("bad") else self.trace(checkpoint, query)
            self.finished.append(query.source)

    def trace(self, checkpoint, query):
        return SimpleNamespace(query=query, nbytes=self.nbytes, n_steps=1, seconds=0.0, checkpoint=checkpoint.name)


def runner(model, **options):
    MadeUp.model = model
    return ModelRunner(**options)


@pytest.fixture
def visitors():
    """Visitors who ask a runner over a model that is held."""
    with ThreadPoolExecutor(40) as pool:
        yield Visitors(pool)


class Visitors:
    def __init__(self, pool):
        self.model, self._pool = Model(held=True), pool
        self.work = runner(self.model)

    def ask(self, one, *, checkpoint=CHECKPOINT, waiting=0, **how):
        """What will be answered; return once so many wait, and the model runs."""
        asked = query(one) if isinstance(one, str) else one
        answer = self._pool.submit(self.work.trace, checkpoint, asked, **how)
        until(lambda: len(self.work._under_way) >= waiting)
        if waiting == 1:
            assert self.model.started.acquire(timeout=WAIT)
        return answer


def test_a_checkpoint_of_the_same_content_shares_results_under_its_own_name(tmp_path):
    first, other = (load(shutil.copytree(SHIPPED / "reverse", tmp_path / name)) for name in ("first", "other"))
    work, asked = ModelRunner(), Query(checkpoint=first.content_hash, source="abc")
    one, two = (work.trace(checkpoint, asked) for checkpoint in (first, other))
    assert (one.checkpoint, two.checkpoint, work.n_runs) == ("first", "other", 1)
    assert two.tgt_ids == one.tgt_ids


def test_who_ask_for_one_thing_share_one_run_or_its_error_which_is_not_kept(visitors):
    good, bad = ([visitors.ask(text) for _ in range(10)] for text in ("good", "bad"))
    visitors.ask("bad", waiting=2)
    visitors.model.go.set()
    assert len({id(answer.result(WAIT)) for answer in good}) == 1
    assert all(isinstance(answer.exception(WAIT), QueryError) for answer in bad)
    assert visitors.work.n_runs == 1
    with pytest.raises(QueryError, match="refused"):
        visitors.work.trace(CHECKPOINT, query("bad"))
    assert visitors.model.ran[-1] == "bad"


def test_the_cache_is_bounded_in_bytes():
    model = Model(nbytes=100_000)
    work = runner(model, cache_bytes=350_000)
    for text in "abcd":
        work.trace(CHECKPOINT, query(text))
    assert work._cache.currsize <= 350_000
    work.trace(CHECKPOINT, query("d"))
    work.trace(CHECKPOINT, query("a"))  # the one asked for longest ago had to leave
    assert "".join(model.ran) == "abcda"
    large = runner(Model(nbytes=1_000_000), cache_bytes=350_000)  # which is given all the same
    assert [large.trace(CHECKPOINT, query("a")).nbytes for _ in range(2)] == [1_000_000] * 2
    assert large.n_runs == 2


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


def test_other_work_is_done_once_in_the_room_of_the_cache_and_what_fails_or_has_no_size_is_not_kept():
    work, done = runner(Model(), cache_bytes=30_000), []
    for key in ("first", "first", "second", "first"):
        work.compute(key, lambda key=key: done.append(key) or key, nbytes=lambda _: 10_000)
    assert done == ["first", "second", "first"]
    assert work.kept("first") == "first"
    for wrong, error in ((lambda: int("x"), ValueError), (lambda: 7, TypeError)):
        with pytest.raises(error):
            work.compute("key", wrong, nbytes=len)
        assert work.kept("key") is None
    assert work.compute("key", lambda: "better", nbytes=len) == "better"


def test_what_nobody_waits_for_yet_comes_last(visitors):
    other = MadeUp(name="another")  # of which no run joins those of the first
    answers = [
        visitors.ask("first", waiting=1),
        visitors.ask("late", checkpoint=other, ahead=True, waiting=2),
        visitors.ask("b" * 90, waiting=3),
    ]
    visitors.model.go.set()
    assert [answer.result(WAIT).query.source for answer in answers] == ["first", "late", "b" * 90]
    assert visitors.model.ran == ["first", "b" * 90, "late"]


def test_who_waits_when_the_model_becomes_free_is_taken_together_and_one_error_is_one_visitors(visitors):
    answers = [visitors.ask(text, waiting=n) for n, text in enumerate(("first", "a", "bad", "b", "c"), start=1)]
    visitors.model.go.set()
    assert [answers[n].result(WAIT).query.source for n in (0, 1, 3, 4)] == ["first", "a", "b", "c"]
    assert isinstance(answers[2].exception(WAIT), QueryError)
    assert visitors.model.batches == [["first"], ["a", "b", "c", "bad"]]
    assert visitors.work.n_runs == 4


def test_a_batch_that_breaks_off_leaves_nobody_waiting(visitors, monkeypatch):
    error, trace = SystemExit("the model gave up"), visitors.model.trace
    traces = {"first": trace, "a": trace, "b": Mock(side_effect=error), "c": trace}
    monkeypatch.setattr(visitors.model, "trace", lambda checkpoint, asked: traces[asked.source](checkpoint, asked))
    answers = [visitors.ask(text, waiting=n) for n, text in enumerate(traces, start=1)]
    visitors.model.go.set()
    assert [answer.result(WAIT).query.source for answer in answers[:2]] == ["first", "a"]
    assert [answer.exception(WAIT) for answer in answers[2:]] == [error, error]
    assert visitors.work.trace(CHECKPOINT, query("c")).query.source == "c"
    assert not visitors.work._under_way


def test_short_runs_go_between_the_rounds_of_a_long_one(visitors):
    """While a beam of 16 stands after its third round, two others ask: both are answered before its fourth."""
    rounds, third, go_on = [], threading.Event(), threading.Event()

    def round():
        rounds.append(list(visitors.model.finished))
        if len(rounds) == 3:
            third.set()
            assert go_on.wait(WAIT)

    visitors.model = Model(rounds=6, round=round)
    visitors.work = runner(visitors.model)
    long = visitors.ask(query("a beam", decoding=Beam(size=16)))
    assert third.wait(WAIT)
    short = [visitors.ask(text, waiting=n) for n, text in enumerate(("one", "two"), start=2)]
    go_on.set()
    assert {answer.result(WAIT).query.source for answer in short} == {"one", "two"}
    assert long.result(WAIT).query.source == "a beam"
    assert [len(finished) for finished in rounds] == [0, 0, 0, 2, 2, 2]
    assert visitors.model.finished[-1] == "a beam"


def test_a_visitor_has_a_few_places_a_queue_too_and_the_others_keep_theirs(visitors):
    names = []  # of who asks next
    visitors.work = runner(visitors.model, max_places=2, max_waiting=3, visitor=names.pop)

    def ask(who, text, **options):
        names.append(who)
        answer = visitors.ask(text, **options)
        until(lambda: not names)
        return answer

    answers = [ask("greedy", text, waiting=n) for n, text in enumerate("ab", start=1)]
    with pytest.raises(BusyError, match="You already have 2 requests waiting for the model, the most allowed"):
        ask("greedy", "c").result(WAIT)
    answers += [ask("greedy", "a"), ask("another", "d", waiting=3)]  # the first one joins, and so needs no place
    with pytest.raises(BusyError, match="3 requests are already waiting"):
        ask("third", "e").result(WAIT)
    visitors.model.go.set()
    assert [answer.result(WAIT).query.source for answer in answers] == ["a", "b", "a", "d"]
    assert ask("greedy", "c").result(WAIT).query.source == "c"
