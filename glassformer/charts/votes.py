"""The votes of a class: a bar for each choice, and below it the bar of the round before."""

from collections.abc import Sequence
from typing import Any, Final

from glassformer.charts.grammar import layer, legend
from glassformer.charts.hover import bold, hover, with_number
from glassformer.charts.theme import GUIDE_COLOR, SOURCE_COLOR, Spec, base_layout, literal, shortened
from transformer.i18n import joined, say

HOW_TO_READ = say("Each bar shows how many people chose that answer.")
_LABEL: Final = 40  # characters
_BAR, _AROUND = 34, 120  # pixels
_LARGE: Final = 1.6  # for a wall, beside what a presentation enlarges
RIGHT: Final = "✓"
_NAMES: Final = (say("This round"), say("Previous round"))
_COLORS: Final = (SOURCE_COLOR, GUIDE_COLOR)


def votes_spec(
    rounds: Sequence[Sequence[int]],
    choices: Sequence[str],
    *,
    title: str,
    right: int | None = None,
    large: bool = False,
) -> Spec:
    """Draw the votes for each choice, the first choice on top.

    `rounds` are counts [round, choice] of the latest round, and of the one before if there was one. `right` is the
    choice marked as right; `large` letters can be read across a classroom.
    """
    if not 1 <= len(rounds) <= len(_NAMES) or any(len(counts) != len(choices) for counts in rounds):
        raise ValueError(f"{[len(counts) for counts in rounds]} counts for {len(choices)} choices: give one each.")
    places, most = list(range(len(choices))), max(1, *(count for counts in rounds for count in counts))
    layout = base_layout(title, "", "")
    labels = [literal(shortened(one, limit=_LABEL)) for one in choices]
    if right is not None:
        labels[right] = joined(" ", [RIGHT, labels[right]])
    layout["yaxis"] |= {"tickvals": places, "ticktext": labels}
    layout["yaxis"] |= {"range": [len(choices) - 0.5, -0.5], "automargin": True, "showgrid": False}
    layout["xaxis"] |= {"range": [0, most * 1.12], "dtick": _tick(most)}
    legend(layout, 92 if len(rounds) > 1 else layout["margin"]["t"])
    layout["legend"]["traceorder"] = "normal"
    layout |= {"barmode": "group", "bargap": 0.3, "bargroupgap": 0.05, "showlegend": len(rounds) > 1}
    layout["height"] = _AROUND + _BAR * len(choices) * len(rounds) + _BAR * len(choices) // 2
    texts, bars = [bold(choice) for choice in choices], []
    for name, colour, counts in zip(_NAMES, _COLORS, rounds, strict=False):
        look = {"text": [str(count) for count in counts], "textposition": "outside", "cliponaxis": False}
        look |= {"marker": {"color": colour}}
        says = hover("%{hovertext}", with_number(name, "%{x}"))
        bars.append(layer("lying", list(counts), places, look, name=name, says=says, texts=texts))
    if large:
        _enlarge(layout, bars)
    return {"data": bars, "layout": layout}


def _enlarge(layout: dict[str, Any], bars: list[dict[str, Any]]) -> None:
    """Letters for a wall, which says above the chart what a title would."""
    layout["title"]["text"] = ""
    layout["margin"]["t"] = 56 if layout["showlegend"] else 8
    layout["yaxis"]["tickfont"] = {"size": round(13 * _LARGE)}
    layout["xaxis"]["tickfont"] = {"size": 13}
    layout["legend"]["font"] = {"size": round(12 * _LARGE)}
    for one in bars:
        one["textfont"] = {"size": round(13 * _LARGE)}


def _tick(most: int) -> int:
    """Votes between two lines of the grid."""
    return next(step for step in (1, 2, 5, 10, 20, 50) if most / step <= 10)
