"""Neighbours and maps of embeddings are those that plain loops over the rows find."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer.analysis import neighbours

ALL = np.ones(40, bool)
SOME = np.arange(40) % 5 > 0


def random_table(n=40, d=6, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32)


def by_hand(table, row, by, allowed=ALL):
    """Every other row that is allowed with its cosine and distance, nearest first."""
    own, found = table[row].astype(float), []
    for i, vector in enumerate(table.astype(float)):
        lengths = math.hypot(*own) * math.hypot(*vector)
        cosine = sum(own * vector) / lengths if lengths else math.nan
        if i != row and allowed[i] and not (by == "cosine" and math.isnan(cosine)):
            found.append((i, cosine, math.dist(own, vector)))
    return sorted(found, key=lambda entry: -entry[1] if by == "cosine" else entry[2])


@given(st.integers(0, 39), st.integers(0, 30), st.sampled_from(["cosine", "distance"]), st.sampled_from([ALL, SOME]))
def test_the_nearest_of_those_allowed_are_those_of_a_plain_loop(row, seed, by, allowed):
    table, count = random_table(seed=seed), 10 if seed % 2 else 50
    found = neighbours.nearest(table, neighbours.row_norms(table), row, count=count, by=by, allowed=allowed)
    ids, cosine, distance = zip(*by_hand(table, row, by, allowed)[:count], strict=True)
    assert found.ids.tolist() == list(ids)
    np.testing.assert_allclose(found.cosine, cosine, atol=1e-12)
    np.testing.assert_allclose(found.distance, distance, atol=1e-12)


def test_rows_that_are_almost_the_same_keep_their_order():
    table = np.full((40, 6), 100.0, np.float32)
    table[:, 0] += np.arange(40, dtype=np.float32) * 1e-4
    found = neighbours.nearest(table, neighbours.row_norms(table), 0, count=3, by="distance", allowed=ALL)
    np.testing.assert_allclose(found.distance, [table[i, 0] - table[0, 0] for i in found.ids], rtol=1e-9)
    assert (np.diff(found.distance) >= 0).all()


def test_a_row_of_0_has_no_cosine_but_a_distance():
    table = random_table()
    table[5] = 0
    norms = neighbours.row_norms(table)
    assert not len(neighbours.nearest(table, norms, 5, count=4, by="cosine", allowed=ALL).ids)
    assert 5 not in neighbours.nearest(table, norms, 6, count=39, by="cosine", allowed=ALL).ids
    found = neighbours.nearest(table, norms, 5, count=4, by="distance", allowed=ALL)
    assert found.ids.tolist() == [i for i, _, _ in by_hand(table, 5, "distance")[:4]]
    assert np.isnan(found.cosine).all()


@pytest.mark.parametrize("by", ["cosine", "distance"])
def test_many_rows_at_once_give_what_each_gives_alone(by):
    table = random_table(n=70)
    norms, allowed = neighbours.row_norms(table), np.arange(70) % 5 > 0
    rows = list(range(0, 70, 2))  # more than one block
    found = neighbours.neighbourhoods(table, norms, rows, count=4, by=by, allowed=allowed)
    for row, ids in zip(rows, found, strict=True):
        alone = neighbours.nearest(table, norms, row, count=4, by=by, allowed=allowed)
        assert ids.tolist() == alone.ids.tolist()


@pytest.mark.parametrize("unit", [False, True])
def test_the_map_is_the_eigenvectors_of_the_covariance(unit):
    rows = random_table(n=12).astype(float)
    found = neighbours.plane(rows.astype(np.float32), unit=unit)
    vectors = rows / np.linalg.norm(rows, axis=1)[:, None] if unit else rows
    vectors = vectors - vectors.mean(0)
    values, directions = np.linalg.eigh(np.cov(vectors.T))
    for axis in (0, 1):
        direction = directions[:, -1 - axis]
        direction = direction * np.sign(direction[np.abs(direction).argmax()])
        np.testing.assert_allclose(found.points[:, axis], vectors @ direction, atol=1e-6)
        assert found.shares[axis] == pytest.approx(values[-1 - axis] / values.sum())


@pytest.mark.parametrize("rows", [np.ones((1, 4)), np.ones((3, 4)), np.zeros((2, 4))])
def test_rows_that_do_not_differ_fall_on_one_point(rows):
    found = neighbours.plane(rows.astype(np.float32), unit=True)
    assert not found.points.any()
    assert found.shares == (0, 0)
