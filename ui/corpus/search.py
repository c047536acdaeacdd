"""The part Search: the lines that fit what a head does with them, their ranks, their loss and their words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ui.state.view import Sought, TextIn
from words import Sentence, say

TABLE, CSV, PAGES = "corpus_found", "corpus_found_csv", "corpus_pages"
A_PAGE: Final = 25  # lines
MOST_SAVED: Final = 10_000
SOUGHT: Final[Mapping[Sought, Sentence]] = {
    "any": say("Whatever the heads do"),
    "punctuation": say("A head's largest weight is on punctuation"),
    "piece": say("A head's largest weight is on this piece"),
    "measure": say("A measure of a head"),
    "attends": say("A head attends much but matters little"),
    "owes": say("A head attends little but matters much"),
}
PROPOSED: Final[Mapping[Sought, float]] = {"punctuation": 0.6, "piece": 0.6, "measure": 0.5, "attends": 0.5,
                                           "owes": 0.5}  # fmt: skip
WHAT_DISAGREES: Final = say(
    "How much the head attends (its share of the output norm) and how much the output loses without it are ranked "
    "among all lines, each from 0 to 1. The number is the difference of the two ranks."
)
TEXTS: Final[Mapping[TextIn, Sentence]] = {
    "source": say("in the source"), "target": say("in the reference"), "output": say("in the output")
}  # fmt: skip
