"""Queries: checked, frozen, hashable, and the same after a journey through JSON."""

import contextlib
import json
import math
import unicodedata
from dataclasses import FrozenInstanceError, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer.errors import QueryError
from transformer.runs.query import MAX_SEED, Beam, Greedy, Query, Sampling, check_source

HASH = "ab" * 32
SAMPLING = Sampling(temperature=0.5, top_k=5, top_p=0.9, seed=3)


def query(**changes):
    return Query(**({"checkpoint": HASH, "source": "ba lo"} | changes))


def record(**changes):
    """What `to_json` writes, parsed, with changes."""
    return json.loads(query().to_json()) | changes


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
TEXT = st.text(st.characters(), max_size=600)  # composed, a character becomes three at most; surrogates included
QUERIES = st.builds(
    Query,
    checkpoint=st.just(HASH),
    source=TEXT,
    decoding=DECODINGS,
    max_new=st.integers(8, 512),
    forced=st.lists(st.integers(0, 10_000_000), max_size=8).map(tuple),
)


@given(QUERIES)
def test_a_query_comes_back_from_json(query):
    again = Query.from_json(query.to_json())
    assert again == query
    assert hash(again) == hash(query)
    assert again.to_json() == query.to_json()
    assert query.to_json().encode().decode() == query.to_json()
    assert "\n" not in query.to_json()


def test_equal_queries_are_one_key():
    assert len({query(), query(), query(decoding=Greedy()), query(forced=[]), query(forced=())}) == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"checkpoint": "cd" * 32},
        {"source": "ba"},
        {"decoding": Beam()},
        {"decoding": Sampling()},
        {"max_new": 7},
        {"forced": (5,)},
        {"decoding": Beam(), "hypothesis": 1},
    ],
)
def test_every_part_counts(changes):
    assert query(**changes) != query()
    assert query(**changes).to_json() != query().to_json()


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (Beam(length_penalty=1), Beam(length_penalty=1.0)),
        (Beam(length_penalty=0), Beam(length_penalty=-0.0)),
        (Sampling(temperature=2, top_p=1), Sampling(temperature=2.0, top_p=1.0)),
    ],
)
def test_equal_settings_are_written_alike(a, b):
    assert (a, hash(a), query(decoding=a).to_json()) == (b, hash(b), query(decoding=b).to_json())


@pytest.mark.parametrize("name", ["source", "forced", "decoding"])
def test_a_query_is_frozen(name):
    with pytest.raises(FrozenInstanceError):
        setattr(query(), name, None)


def test_forced_pieces_are_kept_as_a_tuple():
    assert query(forced=[5, 6]).forced == (5, 6)
    assert replace(query(forced=[5, 6]), max_new=9).forced == (5, 6)


def test_the_source_is_composed():
    assert query(source="e\u0301") == query(source="\u00e9")
    assert query(source="a\ud800b").source == "a?b"


WRONG = [
    ({"checkpoint": value}, "checkpoint") for value in (None, 5, [], b"ab", "x" * 65, "é")
] + [
    ({"source": value}, "source must be text") for value in (None, 5, b"ba", ["ba"])
] + [
    ({"decoding": value}, "decoding") for value in (None, "beam", Beam, {"kind": "greedy"})
] + [
    ({"max_new": value}, "max_new.*from 1 to 512") for value in (0, -1, 513, 10**6, 10**400, 5.0, True, "5", None)
] + [
    ({"forced": value}, "forced") for value in (5, None, "56", {5: 6}, {5}, (5.0,), ("5",), (True,), (-1,), (10**9,))
] + [
    ({"forced": (5,) * 9, "max_new": 8}, "9 pieces are forced, but the output may have at most 8"),
    ({"forced": [5] * 10**6}, "1,000,000 pieces are forced"),
    ({"hypothesis": 1}, "hypothesis"),
    ({"hypothesis": 4, "decoding": Beam(size=4)}, "hypothesis.*from 0 to 3"),
    ({"hypothesis": -1, "decoding": Beam()}, "hypothesis"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "message"), WRONG)
def test_what_is_wrong_is_named(changes, message):
    with pytest.raises(QueryError, match=message) as caught:
        query(**changes)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Beam(size=10**6), "beam size: found 1000000, expected a whole number from 1 to 16"),
        (lambda: Beam(size=10**5_000), "with more than 30 digits.*from 1 to 16"),
        (lambda: Beam(size=0), "beam size"),
        (lambda: Beam(size=2.0), "beam size"),
        (lambda: Beam(length_penalty=2.1), "length_penalty: found 2.1, expected a number from 0 to 2"),
        (lambda: Beam(length_penalty=-0.1), "length_penalty"),
        (lambda: Beam(length_penalty=math.nan), "length_penalty"),
        (lambda: Beam(length_penalty="1"), "length_penalty"),
        (lambda: Sampling(temperature=0), "temperature.*from 0.05 to 5"),
        (lambda: Sampling(temperature=math.inf), "temperature"),
        (lambda: Sampling(temperature=10**400), "temperature"),
        (lambda: Sampling(temperature=True), "temperature"),
        (lambda: Sampling(top_k=-1), "top_k"),
        (lambda: Sampling(top_p=0), "top_p"),
        (lambda: Sampling(top_p=None), "top_p"),
        (lambda: Sampling(seed=-1), "seed"),
        (lambda: Sampling(seed=MAX_SEED + 1), "seed"),
    ],
)
def test_settings_out_of_range_name_the_limit(make, message):
    with pytest.raises(QueryError, match=message):
        make()


# The source


@pytest.mark.parametrize("n", [4_001, 1_000_000])
def test_a_source_too_long_shows_the_limit_and_the_count(n):
    with pytest.raises(QueryError, match=f"has {n:,} characters; the limit is 4,000"):
        query(source="a" * n)


def test_a_megabyte_of_accents_is_refused_before_it_is_composed():
    """Putting marks in order takes time with the square of their number: 1 MB would take minutes."""
    with pytest.raises(QueryError, match="1,000,001 characters"):
        query(source="a" + "\u0301\u0316" * 500_000)


def test_what_grows_when_it_is_composed_is_counted_afterwards():
    assert len(query(source="\u0958" * 2_000).source) == 4_000
    with pytest.raises(QueryError, match="4,002 characters"):
        query(source="\u0958" * 2_001)


@given(st.text(st.characters(), max_size=600))
def test_composing_twice_changes_nothing(text):
    source = check_source(text)
    assert check_source(source) == source == unicodedata.normalize("NFC", source)


# From JSON


@given(st.text() | st.binary())
def test_any_text_is_a_query_or_refused(text):
    with pytest.raises(QueryError):
        Query.from_json(text)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(JSON)
def test_any_json_is_a_query_or_refused(value):
    with pytest.raises(QueryError):
        Query.from_json(json.dumps(value))


@given(name=st.sampled_from(sorted(record())), value=JSON)
def test_any_value_in_a_query_is_accepted_or_refused(name, value):
    try:
        found = Query.from_json(json.dumps(record(**{name: value})))
    except QueryError:
        return
    assert Query.from_json(found.to_json()) == found
    hash(found)


@given(name=st.sampled_from(["kind", *SAMPLING.__dataclass_fields__, "size"]), value=JSON)
def test_any_value_in_its_settings_is_accepted_or_refused(name, value):
    decoding = {"kind": "sampling", name: value}
    with contextlib.suppress(QueryError):
        assert isinstance(Query.from_json(json.dumps(record(decoding=decoding))), Query)


@pytest.mark.parametrize(
    "changes",
    [
        {"version": 2},
        {"version": True},
        {"version": "1"},
        {"version": 1.0},
        {"unknown": 1},
        {"decoding": None},
        {"decoding": "greedy"},
        {"decoding": {"kind": "magic"}},
        {"decoding": {"kind": ["greedy"]}},
        {"decoding": {"kind": "greedy", "size": 3}},
        {"decoding": {"size": 3}},
        {"forced": {"5": 6}},
        {"forced": "5"},
        {"max_new": math.nan},
        {"checkpoint": 5},
        {"checkpoint": "\ud800"},
    ],
)
def test_what_no_query_would_write_is_refused(changes):
    with pytest.raises(QueryError):
        Query.from_json(json.dumps(record(**changes)))


@pytest.mark.parametrize("name", ["version", "decoding", "checkpoint", "source"])
def test_a_query_that_lacks_something_is_refused(name):
    kept = {key: value for key, value in record().items() if key != name}
    with pytest.raises(QueryError, match="not a query"):
        Query.from_json(json.dumps(kept))


@pytest.mark.parametrize("text", ["", "null", "[" * 200_000, "1" * 5_000, '{"version": ' + "1" * 5_000 + "}"])
def test_hostile_json_is_refused(text):
    with pytest.raises(QueryError):
        Query.from_json(text)


def test_another_version_is_said():
    with pytest.raises(QueryError, match=r"a different version.*reads only version 1"):
        Query.from_json(json.dumps(record(version=2)))
