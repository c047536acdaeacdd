"""Alignment error rate of a checkpoint's cross-attention against gold links.

The gold target is forced: one pass of the decoder over it gives the maps of every layer and head. A target piece has
two possible decoder rows, and both are measured:

- `predicts`: the row that predicts the piece; it has read only the pieces before it.
- `reads`: the next row, which reads the piece as its input and so knows what it is looking for.

Weights on tokens that belong to no word (the end piece, a lone space) cannot become links; their share is reported.

Source: Chen et al., "Accurate Word Alignment Induction from Neural Machine Translation" (2020).

Shapes: B sentences, L layers, H heads, T target pieces, S source tokens, J target words, I source words.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from transformer.analysis.alignment import (
    SPACINGS,
    Counts,
    GoldPair,
    GoldSet,
    Links,
    Spacing,
    best_sources,
    count_links,
    diagonal_sources,
    piece_shares,
    with_means,
)
from transformer.analysis.word_merging import Floats, merge_words
from transformer.checkpoint.load import Checkpoint
from transformer.errors import DataError
from transformer.i18n import joined, say
from transformer.model.anatomy import anatomy
from transformer.model.taps import NO_TAP
from transformer.runs import recording_pass
from transformer.runs.reading import padded
from transformer.text.normalise import normalise
from transformer.text.tokenizer import SPACE_MARK, AnyTokenizer

BATCH_SENTENCES = 16
ROWS = ("predicts", "reads")

Done = Callable[[int], object]  # told how many sentences are done


@dataclass(frozen=True)
class AlignedHead:
    """One head under one convention; layer and head count from 1, as on the pages."""

    layer: int
    head: int
    row: str
    aer: float


@dataclass(frozen=True, kw_only=True)
class AlignmentScores:
    """The results. AERs and shares are 0 to 1; the first axis follows `ROWS`."""

    gold: GoldSet  # what it was measured against
    source_text: str  # how the words became text, keys of `SPACINGS`
    target_text: str  # how the words became text, keys of `SPACINGS`
    heads: Floats  # AER of each head [2, L, H]
    layers: Floats  # AER of the mean over the heads of each layer [2, L]
    mean: Floats  # AER of the mean over all layers and heads [2]
    outside: Floats  # mean share of a target word's weight that is on tokens outside every word [2, L, H]
    diagonal: float  # AER of linking every target word with the source word at the same relative place
    n_sentences: int  # sentences scored
    left_out: dict[str, int]  # reason -> number of sentences left out for it

    @property
    def best(self) -> AlignedHead:
        """The head with the lowest AER; the first of equal ones."""
        row, layer, head = (int(i) for i in np.unravel_index(np.argmin(self.heads), self.heads.shape))
        return AlignedHead(layer + 1, head + 1, ROWS[row], float(self.heads[row, layer, head]))

    def record(self) -> dict[str, object]:
        """The results in the form of `card.json`; AERs and shares 0 to 1."""
        best, (source, target, links) = self.best, zip(self.gold.names, self.gold.sha256, strict=True)
        return {
            "file": links[0],
            "sha256": links[1],
            "measure": "alignment error rate",
            "aer": round(best.aer, 4),
            "layer": best.layer,
            "head": best.head,
            "row": best.row,
            "aer_of_mean": round(float(self.mean.min()), 4),
            "sentences": self.n_sentences,
            "left_out": sum(self.left_out.values()),
            "source": {"file": source[0], "sha256": source[1], "text": self.source_text},
            "target": {"file": target[0], "sha256": target[1], "text": self.target_text},
            "heads": _by_row(self.heads),
            "layers": _by_row(self.layers),
            "mean": _by_row(self.mean),
            "outside_words": _by_row(self.outside),
            "diagonal": round(self.diagonal, 4),
        }


@dataclass(frozen=True)
class _Tokens:
    """A pair as the model reads it: ids, and what share of each token lies in each word."""

    src_ids: tuple[int, ...]
    tgt_ids: tuple[int, ...]
    src_shares: Floats  # [S, I]
    tgt_shares: Floats  # [T, J]
    links: Links


@torch.inference_mode()
def score_alignment(
    checkpoint: Checkpoint, gold: GoldSet, *, source_text: str, target_text: str, done: Done = lambda n: None
) -> AlignmentScores:
    """Measure every head of the cross-attention; `done` is called after each batch with its number of sentences.

    The spacings are keys of `SPACINGS`. A DataError says that no sentence can be used, or that none of them has a
    sure link; a QueryError that the model has no cross-attention.
    """
    anatomy(checkpoint.config).attention("cross")
    left_out: Counter[str] = Counter()
    usable: list[_Tokens] = []
    for pair in gold.pairs:
        found = _tokens(checkpoint, pair, SPACINGS[source_text], SPACINGS[target_text])
        if isinstance(found, str):
            left_out[found] += 1
        else:
            usable.append(found)
    done(left_out.total())
    if not any(tokens.links.sure for tokens in usable):
        # For translators: how many sentences, and what is wrong with them, such as "3 with an empty side".
        counted = [say("{count} {reason}", count=n, reason=reason) for reason, n in left_out.items()]
        reasons = joined("; ", counted) if counted else say("no sentence has a sure link")
        raise DataError("{file}: no sentence can be scored ({reasons}).", file=gold.names[0], reasons=reasons)
    usable.sort(key=lambda tokens: (len(tokens.tgt_ids), len(tokens.src_ids)))
    counts, diagonal, outside = [], [], []
    for start in range(0, len(usable), BATCH_SENTENCES):
        group = usable[start : start + BATCH_SENTENCES]
        for tokens, weights in zip(group, _cross_weights(checkpoint, group), strict=True):
            n_target, n_source = tokens.tgt_shares.shape[1], tokens.src_shares.shape[1]
            rows = np.stack((weights[:, :, :-1], weights[:, :, 1:]))  # [2, L, H, T, S], as ROWS
            merged = merge_words(rows, tokens.src_shares, tokens.tgt_shares)  # [2, L, H, J, I]
            outside.append((1.0 - merged.sum(axis=-1)).sum(axis=-1))  # over target words [2, L, H]
            sources = best_sources(np.stack([with_means(one) for one in merged]))  # [2, L + 1, H + 1, J]
            counts.append(count_links(sources, tokens.links, n_source=n_source))
            diagonal.append(count_links(diagonal_sources(n_target, n_source), tokens.links, n_source=n_source))
        done(len(group))
    total = _total(counts)
    aer = total.aer()  # [2, L + 1, H + 1]
    return AlignmentScores(
        gold=gold,
        source_text=source_text,
        target_text=target_text,
        heads=aer[:, :-1, :-1],
        layers=aer[:, :-1, -1],
        mean=aer[:, -1, -1],
        outside=np.sum(outside, axis=0) / total.n_found,
        diagonal=float(_total(diagonal).aer()),
        n_sentences=len(counts),
        left_out=dict(left_out),
    )


def _by_row(rates: Floats) -> dict[str, object]:
    return dict(zip(ROWS, rates.round(4).tolist(), strict=True))


def _total(counts: Sequence[Counts]) -> Counts:
    return sum(counts[1:], start=counts[0])


def _cross_weights(checkpoint: Checkpoint, group: Sequence[_Tokens]) -> list[Floats]:
    """Cross-attention of a batch under teacher forcing, for each sentence [L, H, T + 1, S]; row t has read t pieces."""
    config, model = checkpoint.config, checkpoint.model
    src = padded([tokens.src_ids for tokens in group], config.fill_id)  # [B, S]
    read = padded([(config.decoder_start_id, *tokens.tgt_ids) for tokens in group], config.fill_id)  # [B, T + 1]
    cross = anatomy(config).attention("cross")
    memory, _ = recording_pass.read_source(model, src, (), tap=NO_TAP)
    patterns = (cross.site("*", "weights"),)
    values = recording_pass.read_target(model, read, memory, model.source_mask(src), patterns, tap=NO_TAP)
    layers = [values[cross.site(layer, "weights")] for layer in range(cross.n_layers)]
    stacked = torch.stack(layers, dim=1).double().numpy()  # [B, L, H, T + 1, S]
    return [stacked[row, :, :, : len(tokens.tgt_ids) + 1, : len(tokens.src_ids)] for row, tokens in enumerate(group)]


def _tokens(checkpoint: Checkpoint, pair: GoldPair, source_text: Spacing, target_text: Spacing) -> _Tokens | str:
    """The pair as the model reads it, or why it cannot be used."""
    config = checkpoint.config
    if not pair.source or not pair.target:
        return say("with an empty source or target")

    def clean(text: str) -> str:
        return normalise(text, config.normalisation)

    end = (config.eos_id,) if config.append_source_eos else ()
    try:
        src_ids, src_shares = _side(checkpoint.src_tokenizer, pair.source, source_text, clean)
        tgt_ids, tgt_shares = _side(checkpoint.tgt_tokenizer, pair.target, target_text, str)
    except ValueError:
        return say("whose tokens cannot be joined into their words")
    if len(src_ids) + len(end) > config.max_len or len(tgt_ids) + 1 > config.max_len:  # 1: the start id
        return say("with more than {most} tokens", most=config.max_len)
    src_shares = np.vstack((src_shares, np.zeros((len(end), len(pair.source)))))
    return _Tokens(src_ids + end, tgt_ids, src_shares, tgt_shares, pair.links)


def _side(
    tokenizer: AnyTokenizer, words: Sequence[str], spacing: Spacing, clean: Callable[[str], str]
) -> tuple[tuple[int, ...], Floats]:
    """Ids of a side, and which share of each piece lies in each word.

    Words are normalised as the tokenizer normalises text (… may have become ...); both are compared without spaces.
    """
    encoding = tokenizer.encode(clean(spacing(words)))
    of_words = [sum(map(_visible, tokenizer.encode(clean(word)).pieces)) for word in words]
    return encoding.ids, piece_shares(list(map(_visible, encoding.pieces)), of_words)


def _visible(piece: str) -> int:
    return len(piece.replace(SPACE_MARK, ""))
