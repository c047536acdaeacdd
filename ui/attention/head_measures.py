"""How the measures of `transformer.analysis.head_statistics` are spoken of on the page: names, units, formulas.

Knows nothing of Streamlit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from transformer.analysis.head_statistics import Name
from transformer.model.anatomy import EVERY_PART, Anatomy, Kind
from words import say

Unit = Literal["bits", "length", "share", "tokens", "weight"]

UNITS: dict[Unit, str] = {
    "bits": say("bits"),
    "length": say("share of the source's length"),
    "share": say("share"),
    "tokens": say("tokens"),
    "weight": say("weight"),
}


@dataclass(frozen=True)
class Words:
    """How a measure is spoken of."""

    heading: str  # over its column
    title: str  # in a chart's title
    unit: Unit  # what a number is
    meaning: str  # what it is, with the formula

    @property
    def share(self) -> bool:
        """Whether it goes from 0 to 1."""
        return self.unit in ("share", "weight")

    @property
    def full_title(self) -> str:
        """The title with its unit; "share" says that already."""
        return self.title if self.unit == "share" else say("{name} ({unit})", name=self.title, unit=UNITS[self.unit])


_ALIKE: dict[Name, Words] = {
    "entropy": Words(
        say("Entropy"),
        say("entropy of the rows"),
        "bits",
        say("Mean over the rows of −Σₖ wₖ log₂ wₖ: 0 when all weight is on one key."),
    ),
    "entropy_share": Words(
        say("Entropy / max"),
        say("entropy as a share of its maximum"),
        "share",
        say(
            "Mean over the rows of the entropy divided by log₂ of the number of open keys: 1 when all open keys "
            "have the same weight. Rows with only one open key are left out."
        ),
    ),
    "largest": Words(
        say("Largest"), say("largest weight"), "weight", say("Mean over the rows of the largest weight, maxₖ wₖ.")
    ),
    "previous": Words(
        say("Previous"),
        say("share on the previous token"),
        "share",
        say("Mean weight on the previous token, k = q − 1. The first row has no previous token and is left out."),
    ),
    "next": Words(
        say("Next"),
        say("share on the next token"),
        "share",
        say("Mean weight on the next token, k = q + 1. The last row has no next token and is left out."),
    ),
    "end": Words(
        say("End mark"),
        say("share on the source's end mark"),
        "share",
        say("Mean weight on the source's end mark."),
    ),
    "diagonal": Words(
        say("Diagonal"),
        say("share on the diagonal"),
        "share",
        say(
            "Mean weight on the source piece at the same relative position as the row: the piece nearest to q · (K "
            "− 1) / (Q − 1), with Q rows and K keys, both counted from 0."
        ),
    ),
    "norm_share": Words(
        say("Norm", about="length of a vector"),
        say("share of output norm"),
        "share",
        say(
            "Mean over the rows of ‖head · W_O‖ / Σ, where Σ is the sum of these norms over the heads of this "
            "layer: this head's share of what the layer's attention writes, measured by norm. Contributions of "
            "different heads can cancel each other out; norms do not show that."
        ),
    ),
}
"""What is said alike of every attention; w is a weight, q a query, k a key."""


_GIVEN_FIRST = Words(
    say("First piece"),
    say("share on the first piece"),
    "share",
    say("Mean weight on the first piece of the sequence."),
)


def words(kind: Kind, parts: Anatomy | None) -> dict[Name, Words]:
    """How the measures of a kind of attention are spoken of; `parts` are the model's, None for given maps."""
    attention = EVERY_PART.attention(kind)
    crosses, of_output = attention.keys_from != attention.stack, attention.keys_from == "decoder"
    on_itself = say("Mean weight that a row puts on itself, k = q.")
    on_what_it_reads = say("Mean weight that a row puts on the token it reads, k = q.")
    on_self = on_what_it_reads if of_output and parts else on_itself
    return _ALIKE | {
        "distance": _distance_words(crosses=crosses),
        "self": Words(say("Self"), say("share on itself"), "share", on_self),
        "first": _first_words(of_output=of_output, reads=parts.reads) if parts else _GIVEN_FIRST,
    }


def _distance_words(*, crosses: bool) -> Words:
    if crosses:
        return Words(
            say("Distance"),
            say("distance from the same relative position"),
            "length",
            say(
                "Mean over the rows of Σₖ wₖ |q / (Q − 1) − k / (K − 1)|, with Q rows and K keys, both counted "
                "from 0. The two sides have different lengths, so positions on each side are scaled to run from 0 "
                "(first) to 1 (last)."
            ),
        )
    return Words(
        say("Distance"), say("mean distance"), "tokens", say("Mean over the rows of Σₖ wₖ |q − k|, in tokens.")
    )


def _first_words(*, of_output: bool, reads: bool) -> Words:
    if not of_output:
        title = say("share on the first source piece")
        meaning = say("Mean weight on the first source piece.")
    elif reads:
        title = say("share on the start mark")
        meaning = say("Mean weight on the start mark.")
    else:
        title = say("share on the prompt's first piece")
        meaning = say("Mean weight on the prompt's first piece.")
    return Words(say("First piece"), title, "share", meaning)
