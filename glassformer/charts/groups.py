"""Heads that share one key-value head, on charts with heads side by side."""

from glassformer.charts.grammar import note, upright
from glassformer.charts.theme import MARK_COLOR, Spec
from transformer.i18n import say

HOW_TO_READ = say("Heads under one bracket share one key-value head (K, V); only their queries differ.")

_MOST_NAMED = 12  # groups whose names do not touch
_ROOM = 22  # pixels above the plot


def head_named(head: int, group: int) -> str:
    """A head, from 0, on hover, with the key-value head that `group` heads share."""
    if group == 1:
        return say("head {number}", number=head + 1)
    return say("head {number} (key-value head {group})", number=head + 1, group=head // group + 1)


def bracket(layout: Spec, n_heads: int, group: int, *, cells: int = 1) -> None:
    """Draw a bracket over each group of neighbouring heads, `cells` columns per head, and lines between groups.

    Nothing is drawn if `group` is 1: no heads share keys and values.
    """
    if group == 1:
        return
    n_groups = n_heads // group
    layout["margin"]["t"] += _ROOM
    shapes, names = layout.setdefault("shapes", []), layout.setdefault("annotations", [])
    for one in range(n_groups):
        left, right = one * group * cells - 0.5, (one + 1) * group * cells - 0.5
        inside = 0.06 * (right - left)
        over = {"type": "line", "yref": "y domain", "line": {"color": MARK_COLOR, "width": 2}}
        shapes.append({**over, "x0": left + inside, "x1": right - inside, "y0": 1.006, "y1": 1.006})
        if one:
            shapes.append(upright(left, width=3, dash="", below=False))
        text = say("K, V {number}", number=one + 1) if n_groups <= _MOST_NAMED else str(one + 1)
        at = {"xref": "x", "yref": "y domain", "yanchor": "bottom", "yshift": 3, "font": {"size": 12}}
        names.append(note((left + right) / 2, 1, text) | at)
