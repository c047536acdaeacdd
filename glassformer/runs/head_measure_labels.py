"""Labels of head measures such as entropy or distance: headings, titles, units, meanings with formulas."""

from dataclasses import dataclass
from typing import Literal

from transformer.analysis.head_statistics import Name
from transformer.i18n import say
from transformer.model.anatomy import EVERY_PART, Anatomy, Kind

Unit = Literal["bits", "length", "share", "tokens", "weight", "nats"]

UNITS: dict[Unit, str] = {
    "bits": say("bits"),
    "length": say("share of the source's length"),
    "share": say("share"),
    "tokens": say("tokens"),
    "weight": say("weight"),
    "nats": say("nats"),
}


@dataclass(frozen=True)
class MeasureLabels:
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


_ALIKE: dict[Name, MeasureLabels] = {
    "entropy": MeasureLabels(
        say("Entropy"),
        say("entropy of the rows"),
        "bits",
        say("Mean over the rows of the entropy −Σₖ wₖ log₂ wₖ, which is 0 when all weight is on one key."),
    ),
    "entropy_share": MeasureLabels(
        say("Entropy / max"),
        say("entropy as a share of its maximum"),
        "share",
        say(
            "The entropy of each row, divided by its maximum (log₂ of the number of open keys) and averaged over "
            "the rows: 1 when all open keys have the same weight. Rows with only one open key are left out."
        ),
    ),
    "largest": MeasureLabels(
        say("Largest"),
        say("largest weight"),
        "weight",
        say("The largest weight of each row, maxₖ wₖ, averaged over the rows."),
    ),
    "previous": MeasureLabels(
        say("Previous"),
        say("share of attention on the previous token"),
        "share",
        say("Mean weight on the previous token. The first row has no previous token and is left out."),
    ),
    "next": MeasureLabels(
        say("Next"),
        say("share of attention on the next token"),
        "share",
        say("Mean weight on the next token. The last row has no next token and is left out."),
    ),
    "end": MeasureLabels(
        say("End mark"),
        say("share of attention on the source's end mark"),
        "share",
        say("Mean weight on the source's end mark."),
    ),
    "diagonal": MeasureLabels(
        say("Diagonal"),
        say("share of attention on the diagonal"),
        "share",
        say(
            "Mean weight on the source token that is as far through the source as the row is through the output. "
            "For row i of Q, this is key i · (K − 1) / (Q − 1) of K, rounded; rows and keys are numbered from 0."
        ),
    ),
    "norm_share": MeasureLabels(
        say("Norm", about="length of a vector"),
        say("share of the output norm"),
        "share",
        say(
            "The norm of this head's output, ‖head · W_O‖, divided by the sum of these norms over the layer's "
            "heads, averaged over the rows. Norms do not show whether heads cancel each other out."
        ),
    ),
}
"""What is said alike of every attention; w is a weight, q a query, k a key."""


_GIVEN_FIRST = MeasureLabels(
    say("First token"),
    say("share of attention on the first token"),
    "share",
    say("Mean weight on the first token of the sequence."),
)


def words(kind: Kind, parts: Anatomy | None) -> dict[Name, MeasureLabels]:
    """How the measures of a kind of attention are spoken of; `parts` are the model's, None for given maps."""
    attention = EVERY_PART.attention(kind)
    crosses, of_output = attention.keys_from != attention.stack, attention.keys_from == "decoder"
    on_itself = say("Mean weight that a token puts on itself.")
    on_what_it_reads = say("Mean weight that a row puts on the token it reads.")
    on_self = on_what_it_reads if of_output and parts else on_itself
    return _ALIKE | {
        "distance": _distance_words(crosses=crosses),
        "self": MeasureLabels(say("Self"), say("share of attention on itself"), "share", on_self),
        "first": _first_words(of_output=of_output, reads=parts.reads) if parts else _GIVEN_FIRST,
    }


def _distance_words(*, crosses: bool) -> MeasureLabels:
    if crosses:
        return MeasureLabels(
            say("Distance"),
            say("distance from the diagonal"),
            "length",
            say(
                "Weighted distance Σₖ wₖ |i / (Q − 1) − k / (K − 1)| from row i to the keys k, averaged over the "
                "rows. There are Q rows and K keys, numbered from 0; because the two sides have different lengths, "
                "both are scaled to run from 0 (first) to 1 (last)."
            ),
        )
    return MeasureLabels(
        say("Distance"),
        say("mean distance"),
        "tokens",
        say("Weighted distance Σₖ wₖ |i − k| from row i to the keys k, in tokens, averaged over the rows."),
    )


def _first_words(*, of_output: bool, reads: bool) -> MeasureLabels:
    if not of_output:
        title = say("share of attention on the first source token")
        meaning = say("Mean weight on the first source token.")
    elif reads:
        title = say("share of attention on the start mark")
        meaning = say("Mean weight on the start mark.")
    else:
        title = say("share of attention on the prompt's first token")
        meaning = say("Mean weight on the prompt's first token.")
    return MeasureLabels(say("First token"), title, "share", meaning)
