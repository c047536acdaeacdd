"""The order of service is fair: short work first, an even share for each visitor, and nobody waits for ever."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.server.model_runner import LATE_SECONDS, PATIENT_SECONDS, FairQueue, Request, cost_of
from tests.glassformer.waiting import Clock
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


def test_a_visitor_who_loops_over_long_work_gets_an_even_share():
    queue, turns = filled(request("long 0", visitor="looping", cost=60)), []
    queue.put(request("short 0", visitor="me"))
    for count in range(1, 300):
        (taken,) = (done := queue.take())
        queue.done(done)
        turns.append(taken)
        name = taken.key.split()[0]
        queue.put(request(f"{name} {count}", visitor=taken.visitor, cost=taken.cost))
    shares = {name: sum(one.cost for one in turns if one.visitor == name) for name in ("looping", "me")}
    assert 0.8 < shares["looping"] / shares["me"] < 1.25


def test_a_stream_of_short_work_from_new_visitors_does_not_starve_long_work():
    queue = filled(request("long", cost=100))
    names = []
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


# ---------------------------------------------------------------- what requests really took


def used(queue, clock, seconds, *visitors):
    """Each of them had the model for so long just now."""
    for visitor in visitors:
        queue.done([request("before", visitor=visitor, cost=0)], seconds)


def came(clock, *of, **named):
    found = request(*of, **named)
    found.came = clock()
    return found


@pytest.mark.parametrize("cost", [1.0, 400.0])
@pytest.mark.parametrize("heavy", [["one"] * 10, ["one", "two", "three", "four"]])
def test_heavy_requests_hold_up_a_light_one_for_no_longer_than_the_run_that_goes_on(heavy, cost):
    """Whatever they were thought to cost, as with a tokenizer that takes seconds for a letter."""
    clock = Clock()
    queue = FairQueue(clock)
    used(queue, clock, 3.0, *heavy)
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
    used(queue, clock, 3.0, "one")
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
    used(queue, clock, 0.1, "other")
    clock.now += 20 * LATE_SECONDS
    used(queue, clock, 0.1, "me")
    assert queue._used.keys() == {"me"}, "nobody is remembered for nothing"


# ---------------------------------------------------------------- who is decoded together


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
