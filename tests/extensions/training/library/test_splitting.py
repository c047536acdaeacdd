"""No sentence stands in two splits, none is lost, and the draw follows from seed and sentences alone."""

import random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from glassformer.extensions.training.library.preparation import SMALL, split
from transformer.errors import DataError
from transformer.text.line_files import sentence_key

# Few words, so that sentences meet again: with other case, other punctuation, other spaces.
SENTENCES = st.builds(
    lambda words, space, end: space.join(words) + end,
    st.lists(st.sampled_from(["go", "Go", "home", "now", "不", "去"]), min_size=1, max_size=3),
    st.sampled_from([" ", "  ", ", ", "-"]),
    st.sampled_from(["", ".", " !", "。"]),
)
PAIRS = st.lists(st.tuples(SENTENCES, SENTENCES), min_size=1, max_size=60)


@given(PAIRS, st.integers(0, 8), st.integers(0, 8), st.integers(0, 5))
def test_no_sentence_stands_in_two_splits_and_nothing_is_lost(pairs, dev, test, seed):
    try:
        found = split(pairs, dev=dev, test=test, seed=seed)
    except DataError:
        assume(False)
    assert sorted([*found.train, *found.dev, *found.test]) == list(range(len(pairs)))
    assert found.train
    for part, wanted in ((found.dev, dev), (found.test, test)):
        assert list(part) == sorted(part)
        assert len(part) <= wanted < len(part) + SMALL
        assert bool(part) == bool(wanted)
    for side in (0, 1):
        keys = [{sentence_key(pairs[i][side]) for i in part} for part in (found.train, found.dev, found.test)]
        assert not keys[0] & keys[1]
        assert not keys[0] & keys[2]
        assert not keys[1] & keys[2]


def alone(n):
    """Pairs of which no two share a sentence."""
    return [(f"source {i}", f"target {i}") for i in range(n)]


def test_the_draw_follows_from_seed_and_sentences_alone():
    pairs = alone(200)
    first = split(pairs, dev=20, test=30, seed=1)
    assert (len(first.train), len(first.dev), len(first.test)) == (150, 20, 30)
    assert (first.n_components, first.largest, first.n_small) == (200, 1, 200)
    assert first.test[:6] == (2, 4, 8, 17, 19, 24)  # the same on every machine
    assert split(pairs, dev=20, test=30, seed=2).test != first.test
    assert split(pairs, dev=50, test=30, seed=1).test == first.test
    longer = split([*pairs, *((f"new {i}", f"nouveau {i}") for i in range(20))], dev=20, test=30, seed=1)
    assert len({*longer.test} & {*first.test}) >= 20
    pairs = [*alone(100), *((f"source {i // 3}", f"translation {i}") for i in range(100, 200))]
    order = random.Random(3).sample(range(200), 200)
    first, other = (split(some, dev=20, test=30, seed=1) for some in (pairs, [pairs[i] for i in order]))
    assert sorted(order[i] for i in other.test) == list(first.test)
    assert sorted(order[i] for i in other.dev) == list(first.dev)


def test_a_large_component_stays_in_train_and_one_of_the_allowed_size_can_be_drawn():
    see = [(f"way {i}", "I see.") for i in range(SMALL + 1)]
    found = split([*see, *alone(40)], dev=10, test=10, seed=1)
    assert set(range(SMALL + 1)) <= set(found.train)
    assert (found.largest, found.n_small) == (SMALL + 1, 40)
    drawn = {split([*see[:SMALL], *alone(40)], dev=0, test=30, seed=seed).test[:SMALL] for seed in range(20)}
    assert tuple(range(SMALL)) in drawn


def test_splits_that_cannot_be_made_say_so_with_the_numbers():
    see = [(f"way {i}", "I see.") for i in range(50)]
    with pytest.raises(DataError, match=r"--dev 5 and --test 6 ask for 11 pairs, but at most 10 .* 60 pairs form 11"):
        split([*see, *alone(10)], dev=5, test=6, seed=1)
    with pytest.raises(DataError, match="at most 9 can be held out"):
        split(alone(10), dev=5, test=5, seed=1)
    twins = [(f"source {i // 2}", f"target {i}") for i in range(20)]
    with pytest.raises(DataError, match=r"--dev 1: .* drawn together, and the smallest such group has 2 pairs"):
        split(twins, dev=1, test=0, seed=1)
    assert len(split(twins, dev=3, test=0, seed=1).dev) == 2  # one place stays empty


@pytest.mark.parametrize(
    ("text", "other", "same"),
    [
        ("Go home!", "go  home", True),
        ("Isn’t it?", "isn't it", True),
        ("ＴＯＭ１", "tom1", True),
        ("cafe\u0301", "Café.", True),
        ("STRASSE", "straße", True),
        ("你好。", "你 好", True),
        ("ou", "où", False),
        ("कि", "की", False),
        ("1", "2", False),
    ],
)
def test_sentences_that_count_as_the_same_and_others(text, other, same):
    assert (sentence_key(text) == sentence_key(other)) == same


@given(st.text())
def test_a_key_is_its_own_key_up_to_case_and_spaces(text):
    key = sentence_key(text)
    assert sentence_key(f" {text}! ") == key
    assert " " not in key
