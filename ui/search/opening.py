"""What a click on a beginning opens, and how the run comes to decode by what is looked at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from transformer.analysis.search_tree import SearchTree
from transformer.runs.query import Beam
from ui.runs.open_run import OpenRun
from ui.shared.door import st
from ui.state import session

NONE = -1


@dataclass(frozen=True, eq=False)
class Places:
    """Of a tree what a click needs, by place; a session keeps it instead of the tree."""

    parents: np.ndarray  # what each beginning continues, or `NONE`
    pieces: np.ndarray  # its last piece
    results: np.ndarray  # the best result that it leads to, or `NONE`

    def ids(self, place: int) -> tuple[int, ...]:
        """The pieces of a beginning."""
        found: list[int] = []
        while place != NONE:
            found.append(int(self.pieces[place]))
            place = int(self.parents[place])
        return tuple(reversed(found))


def places(tree: SearchTree) -> Places:
    """What a click needs of a tree."""
    ways = tree.ways_to(tree.results)
    return Places(
        np.array([NONE if node.parent is None else node.parent for node in tree.nodes], np.int32),
        np.array([node.piece for node in tree.nodes], np.int32),
        np.array([ways.get(node.place, NONE) for node in tree.nodes], np.int16),
    )


def opens(run: OpenRun, tree: SearchTree) -> Callable[[int], None]:
    """Callback with a place in the tree: the result that it leads to, at its step; else the run that is forced so."""
    slot, beam, forced = run.slot, isinstance(run.trace.query.decoding, Beam), run.trace.query.forced
    known, never = places(tree), frozenset(run.checkpoint.config.never_written)

    def go(place: int) -> None:
        if place >= len(known.pieces):
            return
        ids, result = known.ids(place), int(known.results[place])
        if beam and result != NONE:
            session.show(slot, forced, result, len(ids) - 1)
        elif not never.intersection(ids):
            session.show(slot, ids, 0, len(ids) - 1)

    return go


def decode_by_beam() -> None:
    """Callback: the run itself decodes by beam search."""
    st.session_state[session.HOW] = "beam"
    session.new_run()
