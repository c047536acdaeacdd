"""A recorded search as the chart wants it: which beginnings are drawn, and what hover says of each.

Knows nothing of Streamlit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from charts.search_marks import Leaf, Twig
from transformer.analysis.search_tree import Node, SearchTree
from ui.search import telling
from words import say

MOST_ENDS: Final = 2  # dropped ones of each step that are drawn
MOST_ENDS_HERE: Final = 4  # of the step that is looked at, whose pieces are written, too
FEW_STEPS: Final = 8  # with no more, all have room for their pieces


def twigs(tree: SearchTree, vocabulary: Sequence[str], *, until: int, known: int, step: int) -> list[Twig]:
    """The beginnings that are drawn, parents before their children.

    Args:
        tree: The search.
        vocabulary: The pieces by id.
        until: The last round that is drawn, from 0.
        known: The last round of which anything is said.
        step: The round that is looked at.
    """
    ends = tree.standing(known)
    ways = tree.ways_to(ends)

    def twig(node: Node) -> Twig:
        fate = telling.fate_of(tree, node, vocabulary, ends=ends, until=known)
        return Twig(
            place=node.place,
            parent=node.parent,
            step=node.step,
            piece=vocabulary[node.piece],
            kind=node.fate,
            numbers=[*telling.numbers_of(tree, node), *([fate] if fate else [])],
            result=ways.get(node.place) if node.is_kept else None,
            named=node.step == step or until < FEW_STEPS,
        )

    return [twig(tree.nodes[place]) for n in range(until + 1) for place in _drawn(tree, n, here=n == step)]


def _drawn(tree: SearchTree, n: int, *, here: bool) -> tuple[int, ...]:
    """Which beginnings of a round are drawn."""
    one = tree.rounds[n]
    return (*one.kept, *one.dropped[: MOST_ENDS_HERE if here else MOST_ENDS], *one.closed)


def leaves(tree: SearchTree, text: Callable[[tuple[int, ...]], str], *, known: int) -> list[Leaf]:
    """What is written at the right: the results, or what stood best after an earlier round.

    Args:
        tree: The search.
        text: What ids say.
        known: The last round of which anything is said, from 0.
    """
    found = []
    for place in tree.standing(known):
        node = tree.nodes[place]
        numbers = say("score {score:.3f}", score=node.score)
        if node.fate == "open":
            numbers = say("open, score {score:.3f}", score=node.score)
        found.append(Leaf(place, text(tree.ids(place)) or say("(no text)"), numbers))
    return found
