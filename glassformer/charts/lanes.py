"""The lanes of a tree's branches, which grow from left to right; lanes are reused.

A branch begins where it leaves another and ends with its last node. Those that reach the edge stand in order; any
other takes the nearest free lane. A lane is free where no other branch is.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_BEFORE = 0.9  # steps that the edge to a branch's first node needs
_AFTER = 0.4


@dataclass(frozen=True)
class Growing:
    """What a node's lane depends on."""

    place: int  # its name; parents come before their children
    parent: int | None  # the name of the node that it continues; None for a first one
    step: int  # how far right it stands, from 0
    order: float  # what goes first among the children of a node: the smallest stays on its lane
    stays: bool = False  # whether its lane is kept free to the right edge, for what is written there


def lanes(nodes: Sequence[Growing]) -> dict[int, int]:
    """The lane of each node of a tree, from 0 at the top."""
    named = {node.place: node for node in nodes}
    branches = _branches(nodes)
    taken: dict[int, list[tuple[float, float]]] = defaultdict(list)
    found: dict[int, int] = {}
    for n, branch in enumerate(sorted(branches, key=lambda branch: _urgency(branch, named))):
        first, last = named[branch[0]], named[branch[-1]]
        end = float("inf") if last.stays else last.step + _AFTER
        beside = found.get(first.parent, 0) if first.parent is not None else 0
        lane = n if last.stays else _nearest(taken, beside, first.step, end)
        taken[lane].append((first.step - _BEFORE, end))
        found |= dict.fromkeys(branch, lane)
    top = min(found.values(), default=0)
    return {place: lane - top for place, lane in found.items()}


def _branches(nodes: Sequence[Growing]) -> list[list[int]]:
    """Runs of nodes that stay on one lane: from a node to the child that goes first, and on."""
    children: dict[int | None, list[Growing]] = defaultdict(list)
    for node in nodes:
        children[node.parent].append(node)
    heirs = {parent: min(ones, key=lambda one: one.order).place for parent, ones in children.items()}
    heads = [node for node in nodes if node.parent is None or heirs[node.parent] != node.place]
    found = []
    for head in heads:
        branch = [head.place]
        while branch[-1] in heirs:
            branch.append(heirs[branch[-1]])
        found.append(branch)
    return found


def _urgency(branch: Sequence[int], named: Mapping[int, Growing]) -> tuple[bool, float, int]:
    """What is placed first: branches to the edge in their order, then the others as they begin."""
    first, last = named[branch[0]], named[branch[-1]]
    return (False, last.order, first.step) if last.stays else (True, first.step, first.place)


def _nearest(taken: Mapping[int, list[tuple[float, float]]], wanted: int, step: float, end: float) -> int:
    """The free lane nearest to the one that is wanted, below before above."""
    start = step - _BEFORE
    for away in range(len(taken) + 2):
        for lane in (wanted + away, wanted - away):
            if all(end < begun or over < start for begun, over in taken.get(lane, [])):
                return lane
    return wanted + len(taken) + 2
