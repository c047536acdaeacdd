"""Neighbours and maps of embeddings are those that plain sums over the rows find."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer.analysis import neighbours

ALL = np.ones(40, bool)


def random_table(n=40, d=6, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32)


def by_hand(table, row, by, allowed=ALL):
    """Ids of the others that are allowed, nearest first, with the cosine and distance of every row."""
    wide = table.astype(float)
    with np.errstate(invalid="ignore"):
        cosine = wide @ wide[row] / np.linalg.norm(wide, axis=1) / np.linalg.norm(wide[row])
    distance = np.linalg.norm(wide - wide[row], axis=1)
    order = np.argsort(-cosine if by == "cosine" else distance, kind="stable")
    right = allowed & ~(np.isnan(cosine) & (by == "cosine"))
    return [i for i in order.tolist() if i != row and right[i]], cosine, distance


@given(st.integers(0, 39), st.integers(0, 30), st.sampled_from(["cosine", "distance"]), st.booleans())
def test_the_nearest_of_those_allowed_are_those_by_hand(row, seed, by, some):
    table, count, allowed = random_table(seed=seed), 10 if seed % 2 else 50, np.arange(40) % 5 > 0 if some else ALL
    table[5] *= seed % 3 > 0  # a row of 0 has no cosine, but a distance
    found = neighbours.nearest(table, neighbours.row_norms(table), row, count=count, by=by, allowed=allowed)
    ids, cosine, distance = by_hand(table, row, by, allowed)
    assert found.ids.tolist() == ids[:count]
    np.testing.assert_allclose(found.cosine, cosine[found.ids], atol=1e-12)
    np.testing.assert_allclose(found.distance, distance[found.ids], atol=1e-12)


def test_rows_that_are_almost_the_same_keep_their_order():
    table = np.full((40, 6), 100.0, np.float32)
    table[:, 0] += np.arange(40, dtype=np.float32) * 1e-4
    found = neighbours.nearest(table, neighbours.row_norms(table), 0, count=3, by="distance", allowed=ALL)
    np.testing.assert_allclose(found.distance, [table[i, 0] - table[0, 0] for i in found.ids], rtol=1e-9)
    assert (np.diff(found.distance) >= 0).all()


@pytest.mark.parametrize("by", ["cosine", "distance"])
def test_many_rows_at_once_give_what_each_gives_alone(by):
    table, allowed, rows = random_table(n=70), np.arange(70) % 5 > 0, list(range(0, 70, 2))  # more than one block
    norms = neighbours.row_norms(table)
    found = neighbours.neighbourhoods(table, norms, rows, count=4, by=by, allowed=allowed)
    alone = [neighbours.nearest(table, norms, row, count=4, by=by, allowed=allowed).ids.tolist() for row in rows]
    assert [ids.tolist() for ids in found] == alone


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
    for alike in (np.ones((1, 4)), np.ones((3, 4)), np.zeros((2, 4))):  # they fall on one point
        one = neighbours.plane(alike.astype(np.float32), unit=unit)
        assert (one.points.any(), one.shares) == (False, (0, 0))
