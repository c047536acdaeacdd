"""The scores of the whole corpus, each with its interval."""

from ui.corpus.opened import OpenCorpus


def draw(corpus: OpenCorpus) -> None:
    """Draw them."""
