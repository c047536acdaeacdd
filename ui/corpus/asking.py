"""Questions to a corpus run, each asked once; while DuckDB answers, other visitors' pages are drawn.

Knows nothing of Streamlit.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from transformer.corpus import queries, scores
from transformer.corpus.conditions import Condition
from transformer.corpus.folder import Run
from transformer.corpus.queries import Found, Hit, Whole
from transformer.corpus.rollups import Key
from transformer.corpus.scores import CorpusScores
from ui.server.turns import DRAWING

DRAWS = 200  # of lines, for the interval of a score: few enough that nobody waits


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
    with DRAWING.aside():
        return scores.scores(run.folder, n_draws=DRAWS)
