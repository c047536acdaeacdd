"""A query is checked, frozen, a key, and the same after a journey through JSON."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer.errors import QueryError
from transformer.runs.query import MAX_SEED, Beam, Greedy, Query, Sampling

HASH = "ab" * 32


def query(**changes):
    return Query(**({"checkpoint": HASH, "source": "ba lo"} | changes))


RECORD = json.loads(query().to_json())
DECODINGS = st.one_of(
    st.just(Greedy()),
    st.builds(Beam, size=st.integers(1, 16), length_penalty=st.floats(0, 2) | st.integers(0, 2)),
    st.builds(
        Sampling,
        temperature=st.floats(0.05, 5) | st.integers(1, 5),
        top_k=st.integers(0, 1_000_000),
        top_p=st.floats(0.01, 1),
        seed=st.integers(0, MAX_SEED),
    ),
)
QUERIES = st.builds(
    query,
    source=st.text(st.characters(), max_size=600),  # composed, a character becomes three at most; surrogates included
    decoding=DECODINGS,
    max_new=st.integers(8, 512),
    forced=st.lists(st.integers(0, 10_000_000), max_size=8).map(tuple),
)


@given(QUERIES)
def test_a_query_comes_back_from_json(query):
    text = query.to_json()
    again = Query.from_json(text)
    assert (again, hash(again), again.to_json()) == (query, hash(query), text)
    assert text.encode().decode() == text
    assert "\n" not in text


def test_every_part_counts_and_the_source_is_composed():
    changes = [{"checkpoint": "cd" * 32}, {"source": "ba"}, {"decoding": Beam()}, {"decoding": Sampling()}]
    changes += [{"max_new": 7}, {"forced": (5,)}, {"decoding": Beam(), "hypothesis": 1}, {}]
    assert len({query(**one) for one in changes}) == len({query(**one).to_json() for one in changes}) == len(changes)
    assert query(source="e\u0301") == query(source="\u00e9")
    assert query(source="a\ud800b").source == "a?b"
    assert query(forced=[5, 6]) == query(forced=(5, 6))
    assert {query(), query(decoding=Greedy())} == {query(forced=[])}  # equal queries are one key
    assert Beam(length_penalty=1) == Beam(length_penalty=1.0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: query(checkpoint="x" * 65), "checkpoint"),
        (lambda: query(source=b"ba"), "source must be text"),
        (lambda: query(decoding="beam"), "decoding"),
        (lambda: query(max_new=0), "max_new.*from 1 to 512"),
        (lambda: query(max_new=True), "max_new.*from 1 to 512"),
        (lambda: query(forced="56"), "forced"),
        (lambda: query(forced=(5.0,)), "forced"),
        (lambda: query(forced=(10**9,)), "forced"),
        (lambda: query(forced=(5,) * 9, max_new=8), "9 tokens are forced, but the output may have at most 8"),
        (lambda: query(hypothesis=1), "hypothesis"),
        (lambda: query(hypothesis=4, decoding=Beam(size=4)), "hypothesis.*from 0 to 3"),
        (lambda: Beam(size=10**6), "beam size: found 1000000, expected a whole number from 1 to 16"),
        (lambda: Beam(size=10**5_000), "with more than 30 digits.*from 1 to 16"),
        (lambda: Beam(size=2.0), "beam size"),
        (lambda: Beam(length_penalty=2.1), "length_penalty: found 2.1, expected a number from 0 to 2"),
        (lambda: Beam(length_penalty=math.nan), "length_penalty"),
        (lambda: Sampling(temperature=0), "temperature.*from 0.05 to 5"),
        (lambda: Sampling(temperature=10**400), "temperature"),
        (lambda: Sampling(top_k=-1), "top_k"),
        (lambda: Sampling(top_p=0), "top_p"),
        (lambda: Sampling(seed=MAX_SEED + 1), "seed"),
    ],
)
def test_what_is_wrong_is_named_with_its_limit(make, message):
    with pytest.raises(QueryError, match=message) as caught:
        make()
    assert len(str(caught.value)) < 200


def test_a_megabyte_of_accents_is_refused_before_it_is_composed():
    """Putting marks in order takes time with the square of their number: 1 MB would take minutes."""
    with pytest.raises(QueryError, match="1,000,001 characters"):
        query(source="a" + "\u0301\u0316" * 500_000)
    assert len(query(source="\u0958" * 2_000).source) == 4_000  # what grows is counted afterwards
    with pytest.raises(QueryError, match="4,002 characters"):
        query(source="\u0958" * 2_001)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.text() | st.binary() | JSON.map(json.dumps))
def test_any_text_is_a_query_or_refused(text):
    for hostile in (text, "[" * 20_000, '{"version": ' + "1" * 5_000 + "}"):
        with pytest.raises(QueryError):
            Query.from_json(hostile)


@given(name=st.sampled_from([*sorted(RECORD), *Sampling.__dataclass_fields__, "kind", "size"]), value=JSON)
def test_any_value_in_a_query_is_accepted_or_refused(name, value):
    changes = {name: value} if name in RECORD else {"decoding": {"kind": "sampling", name: value}}
    try:
        found = Query.from_json(json.dumps(RECORD | changes))
    except QueryError:
        return
    assert Query.from_json(found.to_json()) == found
    hash(found)


@pytest.mark.parametrize(
    "changes",
    [
        {"version": 2},
        {"version": True},
        {"unknown": 1},
        {"decoding": {"kind": ["greedy"]}},
        {"decoding": {"kind": "greedy", "size": 3}},
        {"decoding": {"size": 3}},
        {"forced": {"5": 6}},
        {"max_new": math.nan},
        {"checkpoint": "\ud800"},
    ],
)
def test_what_no_query_would_write_is_refused(changes):
    said = r"a different version.*reads only version 1" if changes == {"version": 2} else None
    with pytest.raises(QueryError, match=said):
        Query.from_json(json.dumps(RECORD | changes))
    with pytest.raises(QueryError, match="not a query"):
        Query.from_json(json.dumps({key: value for key, value in RECORD.items() if key != "checkpoint"}))
