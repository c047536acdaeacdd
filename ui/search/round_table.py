"""What one round of a search weighed, as a table: best first, with what became of each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from transformer.analysis.search_tree import Node, SearchTree
from ui.runs.open_run import OpenRun
from ui.search import telling
from ui.shared.door import frame, here, st
from words import joined, say

TABLE: Final = "search_round"
_HEIGHT: Final = 240  # pixels


def draw(run: OpenRun, tree: SearchTree, step: int, known: int) -> None:
    """Draw it, folded away.

    Args:
        run: What is looked at.
        tree: The search.
        step: The round, from 0.
        known: The last round of which anything is said.
    """
    one = tree.rounds[step]
    nodes = [tree.nodes[place] for place in (*one.kept, *one.closed, *one.dropped)]
    nodes.sort(key=lambda node: -node.compared)
    with st.expander(say("All that step {n} weighed", n=step + 1)):
        st.container(key=run.key(TABLE)).dataframe(
            frame([_row(run.trace.vocabulary, tree, node, known) for node in nodes], columns=_COLUMNS),
            hide_index=True,
            height=_HEIGHT if len(nodes) > 6 else "content",
            column_config={here(name): st.column_config.NumberColumn(format=form) for name, form in _FORMS.items()},
        )
        if len(one.dropped) < one.n_dropped:
            st.caption(say("The {n} nearest of {all:,} that were dropped are listed.", n=len(one.dropped),
                           all=one.n_dropped))  # fmt: skip


_PROBABILITY, _SUM, _SHORT = say("Probability"), say("Sum"), say("Short by")
_COLUMNS: Final[list[str]] = [
    say("Place", about="in an order, 1 is the top"),
    say("Beginning"),
    say("Piece"),
    _PROBABILITY,
    _SUM,
    _SHORT,
    say("What became of it"),
]
_FORMS: Final = {_PROBABILITY: "%.4f", _SUM: "%.3f", _SHORT: "%.3f"}


def _row(vocabulary: Sequence[str], tree: SearchTree, node: Node, known: int) -> list[object]:
    before = [vocabulary[i] for i in tree.ids(node.place)[:-1]]
    return [
        node.rank or None,
        joined(" ", before[-6:]),
        vocabulary[node.piece],
        math.exp(node.log_prob),
        node.compared,
        tree.short(node),
        telling.fate_of(tree, node, vocabulary, ends=tree.standing(known), until=known),
    ]
