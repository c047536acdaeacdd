"""Queries and keys in one space keep the weights of attention, and near means a large score as far as r says."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
import torch

from glassformer.extensions.corpus.library.joint_space import Tokens, join, nearest, pairs, read_tokens, some_lines
from glassformer.extensions.corpus.library.tables import VECTORS

N_LINES, WIDTH = 6, 8


def made(seed=0, *, spread=1.0, head=1):
    """Tokens of a few lines; queries are `spread` times as long as keys."""
    draw = np.random.default_rng(seed)
    sides = [(line, side, place) for line in range(1, N_LINES + 1) for side in (0, 1) for place in range(line + 2)]
    line, is_query, place = (np.array(column) for column in zip(*sides, strict=True))
    vectors = draw.normal(size=(len(sides), WIDTH)) * np.where(is_query, spread, 1)[:, None] + draw.normal(size=WIDTH)
    pieces = np.array([f"p{n}" for n in place], dtype=object)
    return Tokens(head, line, is_query.astype(bool), place, pieces, vectors)


@pytest.fixture
def files(tmp_path):
    """A function that writes the tokens of heads of layer 2 of cross-attention, and gives the files of two shards."""

    def write(*found):
        rows = [
            {"line": int(of.line[n]), "kind": "cross", "layer": 2, "head": of.head, "place": int(of.place[n])}
            | {"side": "query" if of.is_query[n] else "key", "piece": of.pieces[n], "vector": of.vectors[n]}
            for of in found
            for n in range(len(of.line))
        ]
        paths = [tmp_path / f"vectors-{n:06}.parquet" for n in (0, 1)]
        for path, first in zip(paths, (True, False), strict=True):
            shard = [row for row in rows[::-1] if (row["line"] <= N_LINES // 2) == first]
            parquet.write_table(pa.Table.from_pylist(shard, schema=VECTORS), path)
        return paths

    return write


def test_scaling_leaves_scores_and_moving_leaves_the_weights():
    tokens = made(spread=3)
    joined = join(tokens, causal=False)
    mine, found, scale, q = tokens.vectors, joined.tokens.vectors, joined.scale, tokens.is_query
    for line in range(1, N_LINES + 1):
        queries, keys = (tokens.line == line) & q, (tokens.line == line) & ~q
        scores = mine[queries] @ mine[keys].T
        np.testing.assert_allclose((mine[queries] * scale) @ (mine[keys] / scale).T, scores, atol=1e-12)
        back = (found[queries] / scale + mine[q].mean(axis=0)) @ (found[keys] * scale).T
        weights, expected = (torch.softmax(torch.from_numpy(some), 1) for some in (back, scores))
        torch.testing.assert_close(weights, expected, rtol=0, atol=1e-5)
    for side in (q, ~q):
        np.testing.assert_allclose(found[side].mean(axis=0), 0, atol=1e-6)


@pytest.mark.parametrize("spread", [0.2, 6.0])
def test_no_other_scale_correlates_better(spread):
    tokens = made(1, spread=spread)
    joined = join(tokens, causal=False)
    query, key = pairs(tokens, causal=False)
    moved = tokens.vectors.copy()
    for side in (tokens.is_query, ~tokens.is_query):
        moved[side] -= moved[side].mean(axis=0)
    score = (tokens.vectors[query] * moved[key]).sum(axis=1)

    def correlation(c):
        return float(np.corrcoef(((c * moved[query] - moved[key] / c) ** 2).sum(axis=1), score)[0, 1])

    assert joined.correlation == pytest.approx(correlation(joined.scale))
    assert joined.correlation < 0
    assert all(correlation(joined.scale * factor) > joined.correlation for factor in (0.5, 0.8, 1.25, 2.0))


def test_the_picture_is_that_of_torchs_principal_components():
    joined = join(made(2), causal=True)
    rows = torch.from_numpy(joined.tokens.vectors.astype(float))
    _, sizes, directions = torch.linalg.svd(rows - rows.mean(dim=0), full_matrices=False)
    points = (rows @ directions[:2].T).numpy()
    np.testing.assert_allclose(np.abs(joined.plane.points), np.abs(points), atol=1e-4)
    np.testing.assert_allclose(joined.plane.shares, (sizes**2 / (sizes**2).sum())[:2], atol=1e-6)
    assert (join(made(2), causal=True).plane.points == joined.plane.points).all()  # signs, too


def test_pairs_are_of_one_line_and_of_a_decoder_no_later_key_and_the_nearest_of_the_other_side():
    tokens = made()
    query, key = pairs(tokens, causal=True)
    assert tokens.is_query[query].all()
    assert not tokens.is_query[key].any()
    assert (tokens.line[query] == tokens.line[key]).all()
    assert (tokens.place[key] <= tokens.place[query]).all()
    sizes = [line + 2 for line in range(1, N_LINES + 1)]
    assert len(query) == sum(n * (n + 1) // 2 for n in sizes)
    assert len(pairs(tokens, causal=False)[0]) == sum(n * n for n in sizes)
    joined = join(made(3), causal=False)
    token, keys = int(np.flatnonzero(tokens.is_query)[4]), np.flatnonzero(~tokens.is_query)
    gaps = np.linalg.norm(joined.tokens.vectors[keys] - joined.tokens.vectors[token], axis=1)
    assert nearest(joined, token, 5).tolist() == keys[np.argsort(gaps, kind="stable")[:5]].tolist()


def test_vectors_are_read_in_order_from_the_files_of_all_shards_and_whole_lines_left_out_evenly(files):
    first, second = made(4), made(5, head=2)
    paths = files(first, second)
    found = read_tokens(paths, "cross", 2, [2, 1, 3])
    assert [one.head for one in found] == [2, 1]
    for one, expected in zip(found, (second, first), strict=True):
        np.testing.assert_allclose(one.vectors, expected.vectors.astype(np.float32), rtol=1e-6)
        for name in ("line", "is_query", "place", "pieces"):
            assert getattr(one, name).tolist() == getattr(expected, name).tolist()
    assert read_tokens(paths, "cross", 1, [1]) == read_tokens([], "cross", 2, [1]) == []
    (found,) = read_tokens(paths, "cross", 2, [1], most=30)
    assert set(found.line.tolist()) == {1, 6}
    assert len(found.line) == 2 * (3 + 8)
    assert some_lines(np.repeat(np.arange(1, 101), 10), 100) == [1, 12, 23, 34, 45, 56, 67, 78, 89, 100]
    assert some_lines(np.repeat([7, 8], 50), 10) == [7]


def test_a_head_whose_vectors_are_all_alike_has_no_correlation():
    tokens = made()
    joined = join(replace(tokens, vectors=np.ones_like(tokens.vectors)), causal=False)
    assert (joined.correlation, joined.plane.shares) == (None, (0, 0))
    assert (joined.tokens.vectors == 0).all()
