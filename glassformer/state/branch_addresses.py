"""Branches in an address: forced beginnings, each told by what it has in common with the one before it.

`5.17.9_2~44` is 5 17 9, and then its first 2 with 44 behind them. Branches grow out of one output, so that a dozen of
them takes little more room than the longest.

Knows nothing of Streamlit.
"""

from collections.abc import Sequence
from itertools import takewhile
from typing import Final

Branch = tuple[int, ...]

MOST: Final = 12
LONGEST_TEXT: Final = 1_500  # that is written: an address has to fit into a message


def write(branches: Sequence[Branch]) -> str:
    """The branches as text; the oldest are left out if there is no room for them."""
    kept = list(branches[-MOST:])
    while len(text := _text(kept)) > LONGEST_TEXT:
        del kept[0]
    return text


def read(text: str, *, longest: int) -> tuple[Branch, ...] | None:
    """What `write` wrote, of branches with so many pieces at most; None for anything else."""
    found: list[Branch] = []
    for item in text.split("_") if text else ():
        common, mark, rest = item.rpartition("~")
        ids = rest.split(".") if rest else []
        if not all(map(_is_number, [*ids, *([common] if mark else [])])):
            return None
        before, n = found[-1] if found else (), int(common or 0)
        branch = (*before[:n], *map(int, ids))
        if n > len(before) or not branch or len(branch) > longest:
            return None
        found.append(branch)
    return tuple(dict.fromkeys(found)) if len(found) <= MOST else None


def _text(branches: Sequence[Branch]) -> str:
    before: Branch = ()
    items = []
    for branch in branches:
        n = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, branch, strict=False)))
        ids = ".".join(map(str, branch[n:]))
        items.append(f"{n}~{ids}" if n else ids)
        before = branch
    return "_".join(items)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 8
