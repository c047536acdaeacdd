"""The numbers of mistakes, against plain loops and by hand."""

import numpy as np
import pytest

from transformer.analysis import teacher_forced_pass


def some_maps(heads=3, queries=4, keys=4, seed=0):
    scores = np.random.default_rng(seed).normal(size=(heads, queries, keys))
    return np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True)


def test_the_largest_weight_is_the_mean_of_each_rows_largest():
    maps = [some_maps(), some_maps(keys=6, seed=1)]
    rows = [max(row) for one in maps for head in one for row in head]
    assert teacher_forced_pass.largest_weight(maps) == pytest.approx(sum(rows) / len(rows))


def test_a_row_without_any_weight_has_no_largest_one():
    one = some_maps()
    one[:, 2] = 0
    rows = [max(row) for head in one for i, row in enumerate(head) if i != 2]
    assert teacher_forced_pass.largest_weight([one]) == pytest.approx(sum(rows) / len(rows))
    assert teacher_forced_pass.largest_weight([np.zeros((1, 2, 2))]) == 0


def test_weight_on_later_tokens():
    one = some_maps()
    rows = [sum(one[h, i, j] for j in range(4) if j > i) for h in range(3) for i in range(3)]
    assert teacher_forced_pass.on_later([one]) == pytest.approx(sum(rows) / len(rows))
    assert teacher_forced_pass.on_later([np.tril(one)]) == 0
    assert teacher_forced_pass.on_later([np.triu(np.ones((1, 3, 3)), 1) / [[[2], [1], [1]]]]) == pytest.approx(1)
    assert teacher_forced_pass.on_later([np.ones((2, 1, 1))]) == 0


def test_weight_on_some_keys():
    first, second = some_maps(), some_maps(seed=1)
    keys, rows = np.array([False, True, False, True]), np.array([True, True, False, False])
    expected = [np.mean([one[h, i, 1] + one[h, i, 3] for one in (first, second) for h in range(3)]) for i in range(4)]
    assert teacher_forced_pass.on_keys([first, second], keys) == pytest.approx(expected)
    assert teacher_forced_pass.on_keys([first, second], keys, rows) == pytest.approx(expected[:2])


def test_likeness_is_the_mean_cosine_of_pairs():
    vectors = np.random.default_rng(2).normal(size=(5, 7))
    pairs = [
        float(vectors[i] @ vectors[j] / np.linalg.norm(vectors[i]) / np.linalg.norm(vectors[j]))
        for i in range(5)
        for j in range(5)
        if i != j
    ]
    assert teacher_forced_pass.likeness(vectors) == pytest.approx(sum(pairs) / len(pairs))
    assert teacher_forced_pass.likeness(np.array([[1.0, 2], [2, 4], [0.5, 1]])) == pytest.approx(1)
    assert teacher_forced_pass.likeness(np.eye(3)) == pytest.approx(0)
    assert teacher_forced_pass.likeness(np.ones((1, 4))) == 1
