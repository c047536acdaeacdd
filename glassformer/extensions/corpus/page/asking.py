"""Questions to a corpus run, each asked once; while DuckDB answers, other visitors' pages are drawn.

Knows nothing of Streamlit.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache

import pyarrow as pa

from glassformer.extensions.corpus.library import folder, paired, queries, scores
from glassformer.extensions.corpus.library.conditions import Condition
from glassformer.extensions.corpus.library.folder import Run
from glassformer.extensions.corpus.library.joined import Joined, join, read_tokens
from glassformer.extensions.corpus.library.paired import Difference, Head, LinePair
from glassformer.extensions.corpus.library.queries import Found, Hit, Whole
from glassformer.extensions.corpus.library.rollups import Key
from glassformer.extensions.corpus.library.scores import CorpusScores, PairedScore
from glassformer.extensions.corpus.library.tables import Name
from glassformer.server.turns import DRAWING
from transformer.errors import GlassformerError
from transformer.model.anatomy import Kind


@contextmanager
def _reading(*runs: Run) -> Iterator[None]:
    """While files are read without DuckDB; a `DataError` where one is gone since, or holds what it cannot."""
    try:
        with DRAWING.aside():
            yield
    except GlassformerError:
        raise
    except (OSError, ValueError, pa.ArrowException) as error:
        raise folder.damaged(*runs, kind=type(error).__name__) from None


@lru_cache(maxsize=256)
def search(run: Run, conditions: tuple[Condition, ...], n: int, offset: int) -> Found:
    """As `queries.search`."""
    with DRAWING.aside():
        return queries.search(run, conditions, n=n, offset=offset)


@lru_cache(maxsize=64)
def extremes(run: Run, key: Key, n: int, *, most: bool) -> Sequence[Hit]:
    """As `queries.extremes`."""
    with DRAWING.aside():
        return queries.extremes(run, key.kind, key.layer, key.head, key.measure, most=most, n=n)


@lru_cache(maxsize=64)
def line(run: Run, number: int) -> Whole | None:
    """As `queries.line`."""
    with DRAWING.aside():
        return queries.line(run, number)


@lru_cache(maxsize=16)
def scores_of(run: Run) -> CorpusScores:
    """As `scores.scores`."""
    with _reading(run):
        for table in ("sentences", "heads"):
            folder.check(run, table)
        return scores.scores(run.folder)


@lru_cache(maxsize=32)
def differences(first: Run, second: Run, name: Name) -> Mapping[Head, Difference]:
    """As `paired.by_head`."""
    with DRAWING.aside():
        return paired.by_head(first, second, name)


@lru_cache(maxsize=64)
def most_different(first: Run, second: Run, name: Name, head: Head, n: int) -> Sequence[LinePair]:
    """As `paired.most_different`."""
    with DRAWING.aside():
        return paired.most_different(first, second, name, head, n)


@lru_cache(maxsize=16)
def score_differences(first: Run, second: Run) -> tuple[Mapping[str, PairedScore], tuple[Difference | None, bool]]:
    """As `scores.paired`, and `paired.of_log_prob`."""
    with _reading(first, second):
        for run in (first, second):
            folder.check(run, "sentences")
        return scores.paired(first.folder, second.folder), paired.of_log_prob(first, second)


@lru_cache(maxsize=4)
def joined_heads(run: Run, kind: Kind, layer: int, n_heads: int) -> Mapping[int, Joined]:
    """The queries and keys of the heads of a layer (from 1), by the heads' places from 0; all of the same tokens."""
    with _reading(run):
        of = read_tokens(folder.check(run, "vectors"), kind, layer, range(1, n_heads + 1))
        return {tokens.head - 1: join(tokens, causal=kind == "decoder") for tokens in of}
