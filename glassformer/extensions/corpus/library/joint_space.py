"""Joint space of a head's queries and keys over many lines: read vectors, shift and scale, plane, nearest tokens.

In it, near means a large score as far as possible. Adding one vector to all keys changes all scores of a query by the
same amount, which softmax ignores; queries times c and keys times 1 / c keep their scores. So both means are moved to
one point, and c is the one for which the squared distance c² ‖q‖² + ‖k‖² / c² − 2 q·k and the score q·k have the lowest
correlation, over the pairs that attention compares: of one line and, in a decoder, no later key.

Source: Yeh et al. (2023), "AttentionViz: A Global View of Transformer Attention", section 4.2, here with an unweighted
correlation, and with principal components instead of t-SNE.

Shapes: N tokens of both sides, D numbers of a vector.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.dataset as dataset

from transformer.analysis.neighbours import Plane, plane
from transformer.model.anatomy import Kind

MOST_TOKENS: Final = 3_000  # of a head; a browser draws more too slowly
_SCALES: Final = np.geomspace(1 / 256, 256, 257)  # c², times what makes both sides equally long


@dataclass(frozen=True, eq=False)
class Tokens:
    """Queries and keys of a head, in the order of line, side (keys first) and place."""

    head: int  # from 1
    line: np.ndarray  # [N], from 1
    is_query: np.ndarray  # bool [N]
    place: np.ndarray  # [N], of the token in its line, from 0
    pieces: np.ndarray  # texts [N]
    vectors: np.ndarray  # [N, D], as `tables.VECTORS` has them


@dataclass(frozen=True, eq=False)
class JointSpace:
    """The same in one space."""

    tokens: Tokens  # their vectors moved and scaled, in float32
    scale: float  # c
    correlation: float | None  # of squared distance and score; None where one of them is always the same
    plane: Plane  # the vectors on their first two principal components


def read_tokens(
    files: Sequence[Path], kind: Kind, layer: int, heads: Sequence[int], *, most: int = MOST_TOKENS
) -> list[Tokens]:
    """The tokens of some heads of a layer, counted from 1, of evenly chosen whole lines: at most `most` per head.

    A head without data is left out.
    """
    if not files:
        return []
    there = dataset.dataset(list(map(str, files)), format="parquet")
    mine = (dataset.field("kind") == kind) & (dataset.field("layer") == layer)
    lines = there.to_table(columns=["line", "head"], filter=mine & dataset.field("head").isin(list(heads)))
    if not lines.num_rows:
        return []
    one = lines["line"].to_numpy()[lines["head"].to_numpy() == lines["head"][0].as_py()]
    kept = dataset.field("line").isin(some_lines(one, most))
    columns = ["line", "head", "side", "place", "piece", "vector"]
    found = there.to_table(columns=columns, filter=mine & dataset.field("head").isin(list(heads)) & kept)
    found = found.sort_by([("head", "ascending"), ("line", "ascending"), ("place", "ascending")])
    of_head = found["head"].to_numpy()
    return [_tokens(found.filter(pa.array(of_head == head)), head) for head in heads if (of_head == head).any()]


def some_lines(line: np.ndarray, most: int) -> list[int]:
    """Some of the lines of tokens [N], evenly spaced, which have at most `most` of these; at least one line."""
    numbers, counts = np.unique(line, return_counts=True)
    for n in range(min(len(numbers), int(1.2 * most / counts.mean()) + 1), 1, -1):
        chosen = np.linspace(0, len(numbers) - 1, n).round().astype(int)
        if counts[chosen].sum() <= most:
            return [int(number) for number in numbers[chosen]]
    return [int(numbers[0])]


def _tokens(rows: pa.Table, head: int) -> Tokens:
    line, place = rows["line"].to_numpy(), rows["place"].to_numpy()
    is_query = np.asarray(rows["side"].cast(pa.string()).to_numpy(zero_copy_only=False) == "query")
    vectors = rows["vector"].combine_chunks().flatten().to_numpy().reshape(len(line), -1)
    pieces = rows["piece"].cast(pa.string()).to_numpy(zero_copy_only=False)
    order = np.lexsort((place, is_query, line))
    return Tokens(head, line[order], is_query[order], place[order], pieces[order], vectors[order].astype(np.float64))


def join(tokens: Tokens, *, causal: bool) -> JointSpace:
    """Put the queries and keys of a head into one space; `causal` is whether a query sees no later key."""
    q, k = tokens.vectors[tokens.is_query], tokens.vectors[~tokens.is_query]
    moved = tokens.vectors - np.where(tokens.is_query[:, None], _mean(q), _mean(k))
    scale, correlation = _scale(tokens, moved, causal)
    vectors = moved * np.where(tokens.is_query, scale, 1 / scale)[:, None]
    joined = replace(tokens, vectors=vectors.astype(np.float32))  # a server keeps them
    return JointSpace(joined, scale, correlation, plane(vectors, unit=False))


def _mean(vectors: np.ndarray) -> np.ndarray:
    return np.asarray(vectors.mean(axis=0)) if len(vectors) else np.zeros(vectors.shape[1])


def _scale(tokens: Tokens, moved: np.ndarray, causal: bool) -> tuple[float, float | None]:
    """c, and the correlation of squared distance and score that it gives, of moved vectors [N, D]."""
    query, key = pairs(tokens, causal)
    lengths = np.einsum("nd,nd->n", moved, moved)
    q, k = (lengths[tokens.is_query == side].mean() if len(query) else 0.0 for side in (True, False))
    even = np.sqrt(k / q) if q > 0 and k > 0 else 1.0  # c² that makes both sides equally long
    if not len(query):
        return 1.0, None
    score = np.einsum("pd,pd->p", tokens.vectors[query], moved[key])
    parts = np.stack([lengths[query], lengths[key], np.einsum("pd,pd->p", moved[query], moved[key])])
    squares = even * _SCALES
    weights = np.stack([squares, 1 / squares, np.full(len(squares), -2.0)], axis=1)  # [257, 3]: d² = weights @ parts
    both = np.cov(np.vstack([parts, score]))  # [4, 4]
    varies = np.einsum("sp,pr,sr->s", weights, both[:3, :3], weights) * both[3, 3]
    if not np.isfinite(varies).all() or (varies <= 0).any():
        return float(np.sqrt(even)), None
    correlations = weights @ both[:3, 3] / np.sqrt(varies)
    best = int(correlations.argmin())
    return float(np.sqrt(squares[best])), float(correlations[best])


def pairs(tokens: Tokens, causal: bool) -> tuple[np.ndarray, np.ndarray]:
    """The pairs that attention compares [P]: where the query stands among the tokens, and where the key."""
    queries, keys = list[np.ndarray](), list[np.ndarray]()
    starts = np.flatnonzero(np.diff(tokens.line, prepend=-1))
    for start, end in zip(starts, [*starts[1:], len(tokens.line)], strict=True):
        split = int(start) + int((~tokens.is_query[start:end]).sum())  # keys are first
        query, key = np.meshgrid(np.arange(split, end), np.arange(start, split), indexing="ij")
        seen = tokens.place[key] <= tokens.place[query] if causal else np.ones(key.shape, bool)
        queries.append(query[seen])
        keys.append(key[seen])
    return np.concatenate(queries), np.concatenate(keys)


def nearest(joined: JointSpace, token: int, count: int) -> np.ndarray:
    """The tokens of the other side that are nearest to one in the whole space, nearest first, at most `count`."""
    is_query, vectors = joined.tokens.is_query, joined.tokens.vectors
    others = np.flatnonzero(is_query != is_query[token])
    gaps = ((vectors[others] - vectors[token]) ** 2).sum(axis=1)
    return others[np.argsort(gaps, kind="stable")[:count]]
