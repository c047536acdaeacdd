"""One fair queue serves everybody: short work first, each request run once, and an error is its visitor's alone."""

import logging
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

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

HERE, THERE = SimpleNamespace(name="here"), SimpleNamespace(name="there")


def request(name, *, visitor=None, cost=10.0):
    """Some work that takes as long as it says."""
    return Request(name, visitor, cost, len, work=lambda: name)


def run(source, *, checkpoint=HERE, visitor=None, **options):
    query = Query(checkpoint="hash", source=source, **options)
    return Request(query, visitor, cost_of(query), len, checkpoint=checkpoint, query=query)


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


def test_short_work_goes_before_long_and_equal_work_in_the_order_it_came():
    queue = filled(request("long", cost=90), request("a"), request("b"), request("middle", cost=20), request("c"))
    assert served(queue) == ["a", "b", "c", "middle", "long"]
    assert queue.take() == []


def test_a_beam_costs_more_than_a_sentence_and_a_long_sentence_more_than_a_short_one():
    sentence = cost_of(Query(checkpoint="hash", source="x" * 20))
    assert cost_of(Query(checkpoint="hash", source="x" * 20, decoding=Sampling())) == sentence
    assert cost_of(Query(checkpoint="hash", source="x" * 40)) > sentence
    assert cost_of(Query(checkpoint="hash", source="x" * 40, max_new=3)) < sentence
    assert cost_of(Query(checkpoint="hash", source="x" * 20, decoding=Beam(size=16))) > 3 * sentence


def test_a_visitor_who_loops_gets_an_even_share_and_new_visitors_with_short_work_starve_nobody():
    queue, turns = filled(request("long", visitor="looping", cost=60), request("short", visitor="me")), []
    for _ in range(300):
        (taken,) = (done := queue.take())
        queue.done(done)
        turns.append(taken)
        queue.put(request(taken.key, visitor=taken.visitor, cost=taken.cost))
    shares = {name: sum(one.cost for one in turns if one.visitor == name) for name in ("looping", "me")}
    assert 0.8 < shares["looping"] / shares["me"] < 1.25
    queue, names = filled(request("long", cost=100)), []
    for count in range(100):  # every visitor is new and asks once
        queue.put(request(f"short {count}", visitor=count))
        names += served(queue, most=1)
    assert names.index("long") <= 100 / 10


@given(st.lists(st.tuples(st.integers(0, 4), st.floats(1, 200), st.integers(0, 2)), max_size=60))
def test_everything_is_served_once(asked):
    queue, expected, found = FairQueue(), [], []
    for number, (visitor, cost, n_served) in enumerate(asked):
        expected.append(number)
        queue.put(request(number, visitor=visitor, cost=cost))
        found += served(queue, most=n_served)
    assert sorted(found + served(queue)) == expected
    queue.done([request("later")])
    assert all(mark > queue._clock for mark in queue._last.values())  # nobody is remembered for nothing


def used(queue, seconds, *visitors):
    """Each of them had the model for so long just now."""
    for visitor in visitors:
        queue.done([request("before", visitor=visitor, cost=0)], seconds)


def came(clock, *of, **named):
    found = request(*of, **named)
    found.came = clock()
    return found


@pytest.mark.parametrize(("heavy", "cost"), [(["one"] * 10, 400.0), (["one", "two", "three", "four"], 1.0)])
def test_heavy_requests_hold_up_a_light_one_for_no_longer_than_the_run_that_goes_on(heavy, cost):
    """Whatever they were thought to cost, as with a tokenizer that takes seconds for a letter."""
    clock = Clock()
    queue = FairQueue(clock)
    used(queue, 3.0, *heavy)
    for n, visitor in enumerate(heavy):
        queue.put(came(clock, f"heavy {n}", visitor=visitor, cost=cost))
    (running,) = queue.take()
    queue.put(came(clock, "light", visitor="me", cost=25.0))
    assert [one.key for one in queue.take(before=queue.rank(running))] == ["light"]  # in a pause
    queue.put(came(clock, "light again", visitor="me", cost=25.0))
    queue.done([running], 3.0)
    assert served(queue)[0] == "light again"


def test_who_has_waited_long_stands_among_all_others_and_what_was_used_fades():
    clock = Clock()
    queue = FairQueue(clock)
    used(queue, 3.0, "one")
    queue.put(came(clock, "heavy", visitor="one", cost=10.0))
    for n in range(3):
        queue.put(came(clock, f"light {n}", visitor=n, cost=25.0))
        assert [one.key for one in queue.take()] == [f"light {n}"]
    clock.now += PATIENT_SECONDS
    queue.put(came(clock, "light", visitor="me", cost=25.0))
    assert served(queue) == ["heavy", "light"]
    clock.now += 2 * LATE_SECONDS
    queue.put(came(clock, "heavy", visitor="one", cost=10.0))
    queue.put(came(clock, "light", visitor="me", cost=25.0))
    assert served(queue)[0] == "heavy"
    used(queue, 0.1, "other")
    clock.now += 20 * LATE_SECONDS
    used(queue, 0.1, "me")
    assert queue._used.keys() == {"me"}, "nobody is remembered for nothing"


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


def test_what_waits_comes_sooner_once_somebody_asks_for_it_at_less_cost():
    ahead, mine = request("ahead", cost=500), request("mine", cost=40)
    queue = filled(ahead, mine, request("yours", cost=20))
    queue.hurry(ahead, request("ahead", visitor="you", cost=10))
    queue.hurry(mine, request("mine", cost=900))  # that would be later
    assert served(queue) == ["ahead", "yours", "mine"]


CHECKPOINT = SimpleNamespace(name="made up")


def query(text, **options):
    return Query(checkpoint="hash", source=text, **options)


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

    def wait_until_it_runs(self):
        assert self.started.acquire(timeout=WAIT)


def runner(model, **options):
    return ModelRunner(runs=model, **options)


def until_waiting(runner, count):
    """Return once `count` requests are in the queue."""
    until(lambda: len(runner._under_way) >= count)


@pytest.fixture
def visitors():
    with ThreadPoolExecutor(40) as pool:
        yield pool


def test_a_checkpoint_of_the_same_content_shares_results_under_its_own_name(tmp_path):
    first, other = (load(shutil.copytree(SHIPPED / "reverse", tmp_path / name)) for name in ("first", "other"))
    work, asked = ModelRunner(), Query(checkpoint=first.content_hash, source="abc")
    one, two = (work.trace(checkpoint, asked) for checkpoint in (first, other))
    assert (one.checkpoint, two.checkpoint, work.n_runs) == ("first", "other", 1)
    assert two.tgt_ids == one.tgt_ids


def test_who_ask_for_one_thing_share_one_run_or_its_error_which_is_not_kept(visitors):
    model = Model(held=True)
    work = runner(model)
    good, bad = ([visitors.submit(work.trace, CHECKPOINT, query(text)) for _ in range(10)] for text in ("good", "bad"))
    until_waiting(work, 2)
    model.go.set()
    assert len({id(answer.result(WAIT)) for answer in good}) == 1
    assert all(isinstance(answer.exception(WAIT), QueryError) for answer in bad)
    assert work.n_runs == 1
    with pytest.raises(QueryError, match="refused"):
        work.trace(CHECKPOINT, query("bad"))
    assert model.ran[-1] == "bad"


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


def test_who_waits_when_the_model_becomes_free_is_taken_together_and_one_error_is_one_visitors(visitors):
    model = Model(held=True)
    work = runner(model)
    answers = asked_while_held(work, model, visitors, [query(text) for text in ("a", "bad", "b", "c")])
    assert [answers[n].result(WAIT).query.source for n in (0, 2, 3)] == ["a", "b", "c"]
    assert isinstance(answers[1].exception(WAIT), QueryError)
    assert model.batches == [["first"], ["a", "b", "c", "bad"]]
    assert work.n_runs == 4


def test_a_batch_that_breaks_off_leaves_nobody_waiting(visitors, monkeypatch):
    error, model, trace = SystemExit("the model gave up"), Model(held=True), Model.trace
    work = runner(model)

    def breaks(model, checkpoint, query):
        if query.source == "b":
            raise error
        return trace(model, checkpoint, query)

    monkeypatch.setattr(Model, "trace", breaks)
    answers = asked_while_held(work, model, visitors, [query(text) for text in "abc"])
    assert answers[0].result(WAIT).query.source == "a"
    assert [answer.exception(WAIT) for answer in answers[1:]] == [error, error]
    assert work.trace(CHECKPOINT, query("c")).query.source == "c"
    assert not work._under_way


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
