"""Splits are drawn with the right probabilities, and the likeliest is that of the tokenizer."""

import math
import random
from collections import Counter
from itertools import combinations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.conftest import SOURCES, TARGETS
from tests.transformer.learned_pieces import learn_pieces
from transformer.text.sentencepiece_check import Piece, read
from transformer.text.subword_sampling import BYTE, Lattice, Merges, Sampler
from transformer.text.tokenizer import Tokenizer

SPECIAL = [Piece("<unk>", 0.0, 2), Piece("<s>", 0.0, 3)]


TEXT = [*SOURCES, *TARGETS]
MODELS = {
    "unigram": learn_pieces(TEXT, size=70),
    "bpe": learn_pieces(TEXT, size=70, kind="bpe"),
    "unigram, bytes": learn_pieces(TEXT, size=330, byte_fallback=True),
    "bpe, bytes": learn_pieces(TEXT, size=330, kind="bpe", byte_fallback=True),
    "bpe, wanted": learn_pieces(TEXT, size=70, kind="bpe", user_defined_symbols=["e f", "ox", "oxen"]),
}


def likeliest(tokenizer, text, name):
    alpha = 0.0 if name.startswith("bpe") else 1000.0
    return Sampler(tokenizer).draw(text, alpha=alpha, rng=random.Random(1))


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
    tokenizer = Tokenizer(MODELS[name])
    assert any(piece.type == BYTE for piece in read(MODELS[name])) == ("bytes" in name)
    assert likeliest(tokenizer, text, name) == tokenizer.encode(text).ids


def all_splits(text):
    for n in range(len(text)):
        for cuts in combinations(range(1, len(text)), n):
            yield tuple(text[a:b] for a, b in zip((0, *cuts), (*cuts, len(text)), strict=True))


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_each_split_comes_as_often_as_its_weight_says(alpha):
    scores = {"a": -1.0, "b": -2.5, "ab": -1.5, "ba": -2.0, "aba": -4.0, "bab": -3.0}
    lattice = Lattice([*SPECIAL, *(Piece(text, score, 1) for text, score in scores.items())])
    weights = {
        split: math.exp(alpha * sum(scores[part] for part in split))
        for split in all_splits("ababa")
        if all(part in scores for part in split)
    }
    n, rng, total = 8_000, random.Random(4), sum(weights.values())
    found = Counter(tuple(part for part, _ in lattice.split("ababa", alpha=alpha, rng=rng)) for _ in range(n))
    assert set(found) <= set(weights)
    assert len(weights) > 8
    for split, weight in weights.items():
        share = weight / total
        assert abs(found[split] - n * share) < 4.5 * math.sqrt(n * share * (1 - share)) + 1, split


def test_an_unknown_character_counts_as_less_than_the_worst_piece():
    lattice = Lattice([*SPECIAL, Piece("a", -1.0, 1), Piece("ab", -3.0, 1)])
    parts = lattice.split("abb", alpha=1.0, rng=random.Random(1))
    assert parts in ([("ab", 3), ("b", 0)], [("a", 2), ("b", 0), ("b", 0)])
    drawn = [len(lattice.split("ab", alpha=0.1, rng=random.Random(seed))) for seed in range(4_000)]
    weights = {1: math.exp(0.1 * -3.0), 2: math.exp(0.1 * (-1.0 - 13.0))}
    assert drawn.count(2) / 4_000 == pytest.approx(weights[2] / sum(weights.values()), abs=0.03)


def test_a_merge_that_is_left_out_is_left_out_alone():
    """Of two merges that both may happen, each is left out with the same chance."""
    merges = Merges([*SPECIAL, *(Piece(text, score, 1) for text, score in {"ab": 0.0, "cd": -1.0, "a": -2.0,
                     "b": -3.0, "c": -4.0, "d": -5.0}.items())])  # fmt: skip
    rng = random.Random(2)
    found = Counter(tuple(part for part, _ in merges.split("abcd", alpha=0.25, rng=rng)) for _ in range(8_000))
    expected = {("ab", "cd"): 0.5625, ("ab", "c", "d"): 0.1875, ("a", "b", "cd"): 0.1875, ("a", "b", "c", "d"): 0.0625}
    assert set(found) == set(expected)
    for split, share in expected.items():
        assert found[split] / 8_000 == pytest.approx(share, abs=0.025)


def test_a_merge_that_is_no_piece_falls_apart():
    pieces = [Piece("ab", 0.0, 5), Piece("abc", -1.0, 1), *(Piece(c, -2.0, 1) for c in "abc")]
    merges = Merges([*SPECIAL, *pieces])
    rng = random.Random(1)
    assert [part for part, _ in merges.split("abc", alpha=0.0, rng=rng)] == ["abc"]
    assert [part for part, _ in merges.split("abb", alpha=0.0, rng=rng)] == ["a", "b", "b"]
