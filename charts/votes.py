"""The votes of a class: a bar for each choice, and under it one of the round before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from charts.hover import bold, hover, with_number
from charts.theme import GUIDE_COLOR, LEGEND, SOURCE_COLOR, Spec, as_figure, base_layout, literal, shortened
from words import say

HOW_TO_READ = say("Each bar is one choice and how many chose it.")
_LABEL: Final = 40  # characters
_BAR, _AROUND = 34, 150  # pixels
_NAMES: Final = (say("This round"), say("The round before"))
_COLORS: Final = (SOURCE_COLOR, GUIDE_COLOR)


def votes_spec(rounds: Sequence[Sequence[int]], choices: Sequence[str], *, title: str) -> Spec:
    """Draw how often each choice was chosen, the first choice on top.

    Args:
        rounds: Counts `[round, choice]` of the latest round, and of the one before if there was one.
        choices: What each choice says.
        title: What the chart shows.

    Returns:
        The figure; `layout.height` suggests a height in pixels.

    Raises:
        ValueError: There are no rounds or more than two, or not one count for each choice.
    """
    if not 1 <= len(rounds) <= len(_NAMES) or any(len(counts) != len(choices) for counts in rounds):
        raise ValueError(f"{[len(counts) for counts in rounds]} counts for {len(choices)} choices: give one each.")
    places, most = list(range(len(choices))), max(1, *(count for counts in rounds for count in counts))
    layout = base_layout(title, say("Votes"), "")
    layout["yaxis"] |= {"tickvals": places, "ticktext": [literal(shortened(one, limit=_LABEL)) for one in choices]}
    layout["yaxis"] |= {"range": [len(choices) - 0.5, -0.5], "automargin": True, "showgrid": False}
    layout["xaxis"] |= {"range": [0, most * 1.12], "dtick": _tick(most)}
    layout |= {"barmode": "group", "bargap": 0.3, "bargroupgap": 0.05, "showlegend": len(rounds) > 1}
    layout["legend"] = dict(LEGEND) | {"traceorder": "normal"}
    layout["margin"]["t"] = 92 if len(rounds) > 1 else layout["margin"]["t"]
    layout["height"] = _AROUND + _BAR * len(choices) * len(rounds) + _BAR * len(choices) // 2
    return {"data": [_bars(*one, choices) for one in zip(_NAMES, _COLORS, rounds, strict=False)], "layout": layout}


votes = as_figure(votes_spec)


def _bars(name: str, colour: str, counts: Sequence[int], choices: Sequence[str]) -> dict[str, Any]:
    return {
        "type": "bar",
        "orientation": "h",
        "name": name,
        "x": list(counts),
        "y": list(range(len(choices))),
        "text": [str(count) for count in counts],
        "textposition": "outside",
        "cliponaxis": False,
        "hovertext": [bold(choice) for choice in choices],
        "hovertemplate": hover("%{hovertext}", with_number(name, "%{x}")),
        "marker": {"color": colour},
    }


def _tick(most: int) -> int:
    """Votes between two lines of the grid."""
    return next(step for step in (1, 2, 5, 10, 20, 50) if most / step <= 10)
