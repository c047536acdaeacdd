"""How the measures of a corpus run are spoken of: those of `glassformer.runs.head_measures`, and its own.

Knows nothing of Streamlit.
"""

from typing import Final

from glassformer.extensions.corpus.library import tables
from glassformer.runs.head_measures import Words, words
from transformer.i18n import say
from transformer.model.anatomy import Anatomy, Kind

_OF_A_CORPUS: Final[dict[tables.Name, Words]] = {
    "same": Words(
        say("Same text"),
        say("share of attention on equal pieces"),
        "share",
        say("Mean weight on keys with the same text as the query, not counting the token itself."),
    ),
    "punctuation": Words(
        say("Punctuation"),
        say("share of attention on punctuation"),
        "share",
        say("Mean weight on keys that consist of punctuation alone."),
    ),
    "peak": Words(
        say("Peak"),
        say("largest weight of the map"),
        "weight",
        say("The largest weight of a line's whole map, without rows that have only one open key."),
    ),
    "effect": Words(
        say("Effect"),
        say("effect of removing the head"),
        "nats",
        say(
            "How much lower the output's log-probability is when only this head writes 0. A value below 0 means that "
            "the output is more probable without the head."
        ),
    ),
}
"""What only a corpus run measures."""


def corpus_words(kind: Kind, parts: Anatomy | None) -> dict[tables.Name, Words]:
    """The same of all measures of a corpus run; `parts` are None where its checkpoint is not here."""
    alike: dict[tables.Name, Words] = dict(words(kind, parts).items())
    return alike | _OF_A_CORPUS
