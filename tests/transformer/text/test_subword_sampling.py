"""Splits are drawn with the right probabilities, and the likeliest is that of the tokenizer."""

import math
import random
from collections import Counter
from itertools import combinations, pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.conftest import SOURCES, TARGETS
from tests.transformer.learned_pieces import learn_pieces
from transformer.text.sentencepiece_check import Piece, read
from transformer.text.subword_sampling import BYTE, Lattice, Merges, Sampler
from transformer.text.tokenizer import Tokenizer

TEXT = [*SOURCES, *TARGETS]
MODELS = {
    "unigram": {"size": 70},
    "bpe": {"size": 70, "kind": "bpe"},
    "unigram, bytes": {"size": 330, "byte_fallback": True},
    "bpe, bytes": {"size": 330, "kind": "bpe", "byte_fallback": True},
    "bpe, wanted": {"size": 70, "kind": "bpe", "user_defined_symbols": ["e f", "ox", "oxen"]},
}
TOKENIZERS = {name: Tokenizer(learn_pieces(TEXT, **how)) for name, how in MODELS.items()}
TEXTS = st.one_of(
    st.text(st.sampled_from("the small fox☃é漢"), max_size=30),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
)


@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=25)
@given(text=TEXTS)
@example("漢☃☃ fox é字")
@example("")
def test_the_likeliest_split_is_that_of_encode(name, text):
    tokenizer, alpha = TOKENIZERS[name], 0.0 if name.startswith("bpe") else 1000.0
    assert any(piece.type == BYTE for piece in read(tokenizer.serialized())) == ("bytes" in name)
    assert Sampler(tokenizer).draw(text, alpha=alpha, rng=random.Random(1)) == tokenizer.encode(text).ids


def pieces(scores):
    special = [Piece("<unk>", 0.0, 2), Piece("<s>", 0.0, 3)]
    return [*special, *(Piece(text, score, 1) for text, score in scores.items())]


def drawn(splitter, text, alpha):
    rng = random.Random(4)
    return Counter(tuple(part for part, _ in splitter.split(text, alpha=alpha, rng=rng)) for _ in range(8_000))


def assert_shares(found, weights):
    """Each came as often as its weight says, within what chance does."""
    assert set(found) <= set(weights)
    for split, weight in weights.items():
        n, share = found.total(), weight / sum(weights.values())
        assert abs(found[split] - n * share) < 4.5 * math.sqrt(n * share * (1 - share)) + 1, split


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_each_split_comes_as_often_as_its_weight_says(alpha):
    scores = {"a": -1.0, "b": -2.5, "ab": -1.5, "ba": -2.0, "aba": -4.0, "bab": -3.0}
    cuts = [(0, *some, 5) for n in range(5) for some in combinations(range(1, 5), n)]
    splits = [tuple("ababa"[a:b] for a, b in pairwise(ends)) for ends in cuts]
    weights = {one: math.exp(alpha * sum(map(scores.get, one))) for one in splits if scores.keys() >= set(one)}
    assert len(weights) > 8
    assert_shares(drawn(Lattice(pieces(scores)), "ababa", alpha), weights)


def test_an_unknown_character_counts_as_less_than_the_worst_piece():
    lattice = Lattice(pieces({"a": -1.0, "ab": -3.0}))
    assert set(drawn(lattice, "abb", 1.0)) <= {("ab", "b"), ("a", "b", "b")}
    weights = {("ab",): math.exp(0.1 * -3.0), ("a", "b"): math.exp(0.1 * (-1.0 - 13.0))}
    assert_shares(drawn(lattice, "ab", 0.1), weights)


def test_a_merge_that_is_left_out_is_left_out_alone_and_one_that_is_no_piece_falls_apart():
    """Of two merges that both may happen, each is left out with the same chance."""
    merges = Merges(pieces({"ab": 0.0, "cd": -1.0, "a": -2.0, "b": -3.0, "c": -4.0, "d": -5.0}))
    weights = {("ab", "cd"): 0.5625, ("ab", "c", "d"): 0.1875, ("a", "b", "cd"): 0.1875, ("a", "b", "c", "d"): 0.0625}
    assert_shares(drawn(merges, "abcd", 0.25), weights)
    merges = Merges([*pieces(dict.fromkeys("abc", -2.0) | {"abc": -1.0}), Piece("ab", 0.0, 5)])
    for text, expected in {"abc": ["abc"], "abb": ["a", "b", "b"]}.items():
        assert [part for part, _ in merges.split(text, alpha=0.0, rng=random.Random(1))] == expected
