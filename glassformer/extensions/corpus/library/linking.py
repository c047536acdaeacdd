"""The links of heads for a line with a gold alignment, counted as `transformer.analysis.alignment_scores` does.

Shapes: H heads, Q decoder rows, S source tokens, T target pieces, J target words, I source words.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from glassformer.extensions.corpus.library.reading import Item, Pieces
from glassformer.extensions.corpus.library.tables import Line
from transformer.analysis.alignment import GoldPair, Links, best_sources, count_links, piece_shares
from transformer.analysis.words import Floats, merge_words
from transformer.checkpoint.load import Checkpoint
from transformer.text.normalise import normalise
from transformer.text.tokenizer import SPACE_MARK, AnyTokenizer


@dataclass(frozen=True)
class Linking:
    """A line's tokens as parts of its words, and its gold links."""

    first: int  # the decoder's row that predicts the first piece of the target
    src_shares: Floats  # the share of each source token in each word [S, I]
    tgt_shares: Floats  # the same of the target's pieces, without its end mark [T, J]
    links: Links

    def counts(self, weights: Tensor) -> np.ndarray:
        """As `found.LINKS` [5, H], from the maps of a layer's cross-attention [H, Q, S]."""
        n_pieces, n_words = self.tgt_shares.shape
        maps = weights[:, :, : len(self.src_shares)].double().cpu().numpy()
        rows = np.stack([maps[:, first : first + n_pieces] for first in (self.first, self.first + 1)])  # [2, H, T, S]
        sources = best_sources(merge_words(rows, self.src_shares, self.tgt_shares))  # [2, H, J]
        found = count_links(sources, self.links, n_source=self.src_shares.shape[1])
        sure, possible = found.sure_hits, found.possible_hits  # [2, H]
        return np.stack([np.full(len(maps), n_words), sure[0], possible[0], sure[1], possible[1]])


def linking(checkpoint: Checkpoint, line: Line, item: Item, pieces: Pieces, gold: GoldPair) -> Linking | None:
    """The linking of a line with a reference; None if its words are not those of its text, or there is none."""
    config = checkpoint.config
    if not gold.source or not gold.target or line.target is None or not item.src_ids or not item.read_ids:
        return None

    def clean(text: str) -> str:
        return normalise(text, config.normalisation)

    around = len(config.source_start), len(item.source) - len(config.source_end)
    named = [pieces.names[number] for number in item.source[slice(*around)]]
    target = checkpoint.tgt_tokenizer.encode(normalise(line.target, ()))
    try:
        src_shares = _shares(named, checkpoint.src_tokenizer, gold.source, clean)
        tgt_shares = _shares(target.pieces, checkpoint.tgt_tokenizer, gold.target, str)
    except ValueError:
        return None
    outside = around[0], len(item.source) - around[1]
    return Linking(item.first, np.pad(src_shares, (outside, (0, 0))), tgt_shares, gold.links)


def _shares(
    pieces: Sequence[str], tokenizer: AnyTokenizer, words: Sequence[str], clean: Callable[[str], str]
) -> Floats:
    of_words = [sum(map(_visible, tokenizer.encode(clean(word)).pieces)) for word in words]
    return piece_shares(list(map(_visible, pieces)), of_words)


def _visible(piece: str) -> int:
    return len(piece.replace(SPACE_MARK, ""))
