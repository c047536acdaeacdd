"""The page How pieces are chosen: its parts, and what they share."""

from typing import Final

from glassformer.runs.picture import Page, PartEntry
from glassformer.runs.viewed_run import ViewedRun
from transformer.i18n import say

SEARCH = Page(
    "search",
    say("How tokens are chosen"),
    panel="search_panel",
    kind=lambda view: "cross",
    entries=(
        PartEntry("tree", say("Beam tree"), "glassformer.search.tree_panel:draw"),
        PartEntry("sampling", say("Sampling"), "glassformer.search.search_panels:sampled"),
        PartEntry(
            "draws", say("Many draws"), "glassformer.search.search_panels:many_draws", is_there=lambda run: False
        ),  # old addresses name it
    ),
)
NO_TEXT: Final = say("(no text)")


def seconds_of(run: ViewedRun, n: int) -> float:
    """How long draws take, about: they are as long as the run, and go through the model some at a time."""
    return n * run.trace.n_steps * (3e-4 + run.checkpoint.config.count_parameters() * 2.1e-10)
