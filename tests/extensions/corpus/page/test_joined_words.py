"""The sentence about queries and keys in one space says the r that their pairs have, and what it means."""

import numpy as np

from glassformer.extensions.corpus.library.joint_space import Tokens, join
from glassformer.extensions.corpus.parts.queries_keys import STRONG, WEAK, scaling


def tokens(noise, *, lines=6, length=8, width=5, seed=0):
    """Keys, then queries that are like them, but for noise; and keys of very different lengths where it is large."""
    random = np.random.default_rng(seed)
    rows = []
    for line in range(1, lines + 1):
        keys = random.normal(size=(length, width)) * np.exp(noise * random.normal(size=(length, 1)))
        keys = keys if noise else keys / np.linalg.norm(keys, axis=1, keepdims=True)
        queries = keys + noise * random.normal(size=keys.shape)
        rows += [(line, False, place, one) for place, one in enumerate(keys)]
        rows += [(line, True, place, one) for place, one in enumerate(queries)]
    line, is_query, place, vectors = (np.array(column) for column in zip(*rows, strict=True))
    return Tokens(1, line, is_query, place, np.array(["a"] * len(line)), vectors)


def correlation(found, own):
    """Of score and squared distance, pair by pair."""
    mean = found.vectors[~found.is_query].mean(axis=0)
    both = [
        (found.vectors[q] @ (found.vectors[k] - mean), ((own.tokens.vectors[q] - own.tokens.vectors[k]) ** 2).sum())
        for q in np.flatnonzero(found.is_query)
        for k in np.flatnonzero(~found.is_query)
        if found.line[q] == found.line[k]
    ]
    return np.corrcoef(np.array(both).T)[0, 1]


def test_r_is_said_with_what_it_means():
    meanings = set()
    for noise in (0.0, 0.3, 0.6, 1.0, 1.5, 2.5):
        found = tokens(noise)
        own = join(found, causal=False)
        r, said = correlation(found, own), scaling(own)
        assert f"r = −{abs(r):.2f}" in said
        assert f"r² = {r * r:.0%}" in said
        assert ("a large score goes with" in said) == (r <= STRONG)
        assert ("often goes with" in said) == (STRONG < r <= WEAK)
        assert ("says little" in said) == (r > WEAK)
        meanings.add(said.rpartition("differences between scores. ")[2])
    assert len(meanings) == 3
