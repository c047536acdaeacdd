"""Pieces are joined to words in every script, and weights over words still sum to 1."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer.analysis.word_merging import by_words, open_words, word_spans, word_text

SPECIAL = ("<s>", "</s>", "<pad>", "[CLS]", "[SEP]")


@pytest.mark.parametrize(
    ("pieces", "expected", "continuation"),
    [
        ("▁I ▁lik e ▁coffee . </s>", "▁I ▁like ▁coffee. </s>", ""),
        ("▁J ' aime ▁le ▁café .", "▁J'aime ▁le ▁café.", ""),
        ("▁我喜欢 喝咖啡 。 </s>", "▁我喜欢 喝咖啡 。 </s>", ""),  # pieces as they are
        ("▁ 汤姆 用 i Phone 打电话", "▁汤姆 用 iPhone 打电话", ""),
        ("g l a s s </s>", "glass </s>", ""),  # no mark at all: one word
        ("<s> e </s> x", "<s> e </s> x", ""),  # what follows a special piece is a word of its own
        ("▁ ▁ a", "▁ ▁a", ""),
        ("▁สวัส ดี", "▁สวัส ดี", ""),
        ("", "", ""),
        ("[CLS] the fox ##es ' s [SEP]", "[CLS] the foxes ' s [SEP]", "##"),
        ("12 7 5", "12 7 5", " "),
        ("##es ##t a", "##est a", "##"),
    ],
)
def test_words_are_found(pieces, expected, continuation):
    split = pieces.split()
    spans = word_spans(split, [piece in SPECIAL for piece in split], continuation)
    assert [word_text(split, span, continuation) for span in spans] == expected.split()


def test_weights_are_summed_over_keys_and_averaged_over_queries_and_a_word_may_see_what_any_of_its_pieces_may():
    weights = np.array([[0.1, 0.2, 0.7], [0.5, 0.25, 0.25], [0.0, 0.4, 0.6]])
    merged = by_words(weights, [(0, 1), (1, 3)], [(0, 2), (2, 3)])
    np.testing.assert_allclose(merged, [[0.3, 0.7], [(0.75 + 0.4) / 2, (0.25 + 0.6) / 2]])
    spans = [(0, 1), (1, 3), (3, 4)]
    np.testing.assert_array_equal(open_words(np.tri(4, dtype=bool), spans, spans), np.tri(3, dtype=bool))
    padded = np.array([[True, True, False], [True, True, False]])
    np.testing.assert_array_equal(open_words(padded, [(0, 2)], [(0, 1), (1, 3)]), [[True, True]])


@given(st.lists(st.sampled_from(["▁a", "b", "▁", "汉", "c", "</s>"]), min_size=1, max_size=30), st.integers(0, 99))
def test_every_piece_is_in_one_word_and_rows_still_sum_to_1(pieces, seed):
    spans = word_spans(pieces, [piece == "</s>" for piece in pieces])
    assert [place for first, end in spans for place in range(first, end)] == list(range(len(pieces)))
    weights = np.random.default_rng(seed).dirichlet(np.ones(len(pieces)), size=len(pieces))
    merged = by_words(weights, spans, spans)
    assert merged.shape == (len(spans), len(spans))
    np.testing.assert_allclose(merged.sum(axis=1), 1)
