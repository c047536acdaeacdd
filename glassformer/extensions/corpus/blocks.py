"""What stands on other pages of a corpus run: what a head does over it, under the head's table."""

from glassformer.attention.head_table.head_table_pictures import Heads
from glassformer.extensions.corpus import over_corpus
from glassformer.shared.page_blocks import PageBlocks


class CorpusBlocks(PageBlocks):
    """One line."""

    def about(self, subject: object) -> None:
        """Of the measures of heads."""
        if isinstance(subject, Heads):
            over_corpus.draw(subject)


BLOCKS = CorpusBlocks()
