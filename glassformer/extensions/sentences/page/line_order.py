"""Which lines are listed, in which order, and what their columns are called.

Knows nothing of Streamlit.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from glassformer.extensions.sentences.analysis.many import LineResult
from glassformer.extensions.sentences.sentences_look import LineOrder, Listed
from transformer.i18n import say

Measure = Callable[[LineResult], float | None]

LISTED: Final[Mapping[Listed, str]] = {
    "all": say("All lines"),
    "unknown": say("With unknown pieces"),
    "cut": say("Cut off at the length limit"),
    "problem": say("Not run"),
}
_IS: Final[Mapping[Listed, Callable[[LineResult], bool]]] = {
    "all": lambda one: True,
    "unknown": lambda one: one.n_unknown > 0,
    "cut": lambda one: one.ended is False,
    "problem": lambda one: one.problem is not None,
}
ORDERS: Final[Mapping[LineOrder, str]] = {
    "file": say("In file order"),
    "chrf": say("Lowest chrF first"),
    "log_prob": say("Least probable first"),
    "entropy": say("Highest entropy first"),
    "ratio": say("Highest length ratio first"),
    "repeated": say("Most repeated first"),
    "unknown": say("Most unknown pieces first"),
}
# What goes first has the smallest number.
_WORSE: Final[Mapping[LineOrder, Measure]] = {
    "file": lambda one: one.line.number,
    "chrf": lambda one: one.chrf,
    "log_prob": lambda one: one.mean_log_prob,
    "entropy": lambda one: _minus(one.entropy),
    "ratio": lambda one: _minus(one.length_ratio),
    "repeated": lambda one: _minus(one.repeated),
    "unknown": lambda one: -one.n_unknown,
}


def listed(results: Sequence[LineResult], which: Listed, order: LineOrder, holding: str) -> list[LineResult]:
    """Some lines in some order, each `holding` a text in any case; those without a number for the order come last."""
    found = [one for one in results if _IS[which](one) and _holds(one, holding.casefold())]
    worse = ((_WORSE[order](one), one.line.number, one) for one in found)
    return [one for *_, one in sorted(worse, key=lambda of: (math.inf if of[0] is None else of[0], of[1]))]


def choices_of(results: Sequence[LineResult], *, counted: bool) -> dict[Listed, str]:
    """The choices that list some line, said, with how many where they are `counted`."""
    counts = {name: sum(map(is_one, results)) for name, is_one in _IS.items()}
    return {
        name: say("{what} · {n:,}", what=said, n=counts[name]) if counted else said
        for name, said in LISTED.items()
        if name == "all" or counts[name]
    }


def orders(results: Sequence[LineResult]) -> dict[LineOrder, str]:
    """The orders that some line has a number for."""
    there = {name: any(_WORSE[name](one) is not None for one in results) for name in ORDERS}
    return {name: said for name, said in ORDERS.items() if name == "file" or there[name]}


def _holds(one: LineResult, wanted: str) -> bool:
    texts = (one.line.source, one.line.reference or "", one.output)
    return not wanted or any(wanted in text.casefold() for text in texts)


def _minus(value: float | None) -> float | None:
    return None if value is None else -value
