"""The search of the sentence at hand, recorded: once for all visitors, and where shorter work may go first."""

from __future__ import annotations

from dataclasses import replace

from transformer.analysis.search_tree import SearchTree, search_tree
from transformer.checkpoint.load import Checkpoint
from transformer.runs.query import Beam, Query
from ui.runs import loading
from ui.server.queue import cost_of


def searched(query: Query) -> Query:
    """The query whose search is drawn: this one, or the same by a beam of the usual size."""
    how = query.decoding if isinstance(query.decoding, Beam) else Beam()
    return replace(query, decoding=how, hypothesis=0)


def recorded(checkpoint: Checkpoint, query: Query) -> SearchTree:
    """What the search of a query looked at.

    Raises:
        QueryError: The query does not fit the checkpoint.
        BusyError: The model has too much to do.
    """
    runner, key = loading.runner(), ("search_tree", query)
    kept: SearchTree | None = runner.kept(key)
    if kept is not None:
        return kept
    found: list[SearchTree] = []
    runner.part(
        lambda pause: found.append(search_tree(checkpoint, query, pause=pause)),
        visitor=loading.visitor(),
        cost=cost_of(query),
    )
    return runner.compute(key, lambda: found[0], nbytes=lambda tree: tree.nbytes)
