"""How the measures of `transformer.analysis.head_statistics` are spoken of on the page: names, units, formulas.

Knows nothing of Streamlit.
"""

from __future__ import annotations

from dataclasses import dataclass

from transformer.analysis.head_statistics import Name
from transformer.runs.trace import Kind


@dataclass(frozen=True)
class Words:
    """How a measure is spoken of.

    Attributes:
        heading: Over its column.
        title: In a chart's title.
        unit: What a number is.
        meaning: What it is, with the formula.
        share: Whether it goes from 0 to 1.
    """

    heading: str
    title: str
    unit: str
    meaning: str
    share: bool = True

    @property
    def full_title(self) -> str:
        """The title with its unit; "share" says that already."""
        return self.title if self.unit == "share" else f"{self.title} ({self.unit})"


def words(kind: Kind) -> dict[Name, Words]:
    """How the measures of a kind are spoken of; w is a weight, q a query, k a key."""
    read = "the token it reads" if kind == "decoder" else "itself"
    first = "the start piece" if kind == "decoder" else "the first source piece"
    return {
        "entropy": Words(
            "Entropy",
            "entropy of the rows",
            "bits",
            "Mean over the rows of −Σₖ wₖ log₂ wₖ: 0 when all weight is on one key.",
            share=False,
        ),
        "entropy_share": Words(
            "Entropy / most",
            "entropy as a share of the most possible",
            "share",
            "Mean over the rows of the entropy divided by log₂ of the number of open keys: 1 when all weigh alike. "
            "Rows with one open key are left out.",
        ),
        "largest": Words("Largest", "largest weight", "weight", "Mean over the rows of the largest weight, maxₖ wₖ."),
        "distance": _distance_words(kind),
        "self": Words("Self", "share on itself", "share", f"Mean weight that a row puts on {read}, k = q."),
        "previous": Words(
            "Previous",
            "share on the previous token",
            "share",
            "Mean weight that a row puts on the token before, k = q − 1; the first row has none and is left out.",
        ),
        "next": Words(
            "Next",
            "share on the next token",
            "share",
            "Mean weight that a row puts on the token after, k = q + 1; the last row has none and is left out.",
        ),
        "first": Words("First", f"share on {first}", "share", f"Mean weight that a row puts on {first}."),
        "end": Words("End", "share on the source's end piece", "share", "Mean weight on the source's end piece."),
        "diagonal": Words(
            "Diagonal",
            "share on the diagonal",
            "share",
            "Mean weight on the source piece at the same relative place as the row: the one nearest to "
            "q · (K − 1) / (Q − 1), with Q rows and K keys, counted from 0.",
        ),
        "norm_share": Words(
            "Norm",
            "share of output norm",
            "share",
            "Mean over the rows of ‖head · W_O‖ / Σ over the heads of this layer: how much of what the layer's "
            "attention writes is this head's, by length. Heads may cancel each other; lengths do not show that.",
        ),
    }


def _distance_words(kind: Kind) -> Words:
    if kind == "cross":
        return Words(
            "Distance",
            "distance from the same relative place",
            "of the source's length",
            "Mean over the rows of Σₖ wₖ |q / (Q − 1) − k / (K − 1)|, with Q rows and K keys, counted from 0: the "
            "two sides differ in length, so both places go from 0 (first) to 1 (last).",
            share=False,
        )
    return Words(
        "Distance",
        "mean distance",
        "tokens",
        "Mean over the rows of Σₖ wₖ |q − k|, in tokens.",
        share=False,
    )
