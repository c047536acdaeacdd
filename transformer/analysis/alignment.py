"""Word alignment from cross-attention: gold links and their files, spacings, error rate (AER) of each head.

A link joins a source word and a target word. In a gold standard, people marked links as sure or possible; sure links
are possible, too. Attention links each target word to the source word of its largest weight.

A corpus is two files of words and a file of links (see `parse_links`), all UTF-8, one sentence per line, with spaces
between all words and punctuation marks. Models learned from ordinary text; `SPACINGS` make such text of words, by
simple rules: quotation marks alternately open and close, and only French has a space before marks such as : and ;.

A checkpoint is scored on the gold target, which is forced: one pass of the decoder over it gives the maps of every
layer and head. A target piece has two possible decoder rows, and both are measured:

- `predicts`: the row that predicts the piece; it has read only the pieces before it.
- `reads`: the next row, which reads the piece as its input and so knows what it is looking for.

Weights on tokens that belong to no word (the end piece, a lone space) cannot become links; their share is reported.

Source: Och and Ney, "A Systematic Comparison of Various Statistical Alignment Models" (2003), for AER and the two
kinds of links; Garg et al., "Jointly Learning to Align and Translate with Transformer Models" (2019), for words
from pieces; Chen et al., "Accurate Word Alignment Induction from Neural Machine Translation" (2020), for the choice
of the decoder's row (their naive and shifted attention).

Shapes: B sentences, L layers, H heads, T target pieces, S source tokens, J target words, I source words.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from transformer.analysis.word_merging import Floats, merge_words
from transformer.checkpoint.load import Checkpoint
from transformer.errors import ClauseError, DataError, within
from transformer.files import untrusted_folder
from transformer.i18n import Sentence, joined, say, say_n
from transformer.model.anatomy import anatomy
from transformer.model.taps import NO_TAP
from transformer.runs import recording_pass
from transformer.runs.reading import padded
from transformer.text.tokenizer import SPACE_MARK, AnyTokenizer, normalise

Link = tuple[int, int]  # source word, target word, both from 0

MAX_WORDS = 100_000  # no sentence has a word at a place beyond it
_LINK = re.compile(r"([0-9]{1,9})([-p])([0-9]{1,9})", re.ASCII)


@dataclass(frozen=True)
class Links:
    """The gold links of one sentence."""

    sure: frozenset[Link]  # those that annotators were sure of
    possible: frozenset[Link]  # those that may be there, the sure ones included


@dataclass(frozen=True)
class Counts:
    """The counts behind AER; the arrays have one shape, with one number per way of linking."""

    sure_hits: NDArray[np.int64]  # links found that are sure
    possible_hits: NDArray[np.int64]  # links found that are possible
    n_found: int  # links found
    n_sure: int  # sure links there are

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(
            self.sure_hits + other.sure_hits,
            self.possible_hits + other.possible_hits,
            self.n_found + other.n_found,
            self.n_sure + other.n_sure,
        )

    def aer(self) -> Floats:
        """Alignment error rate, 0 (all right) to 1: 1 - (|A and S| + |A and P|) / (|A| + |S|)."""
        return 1.0 - (self.sure_hits + self.possible_hits) / (self.n_found + self.n_sure)


def parse_links(line: str) -> Links:
    """A line of gold links: `3-4` is sure, `3p4` possible; source and target word, from 0. Else a ClauseError."""
    sure, possible = set(), set()
    for word in line.split():
        match = _LINK.fullmatch(word)
        if match is None:
            raise ClauseError("{word} is not a link; expected `3-4` (sure) or `3p4` (possible)", word=repr(word[:20]))
        link = int(match[1]), int(match[3])
        if max(link) >= MAX_WORDS:
            raise ClauseError("{word} refers to a word beyond the first {most:,}", word=repr(word[:20]), most=MAX_WORDS)
        possible.add(link)
        if match[2] == "-":
            sure.add(link)
    return Links(frozenset(sure), frozenset(possible))


def piece_shares(pieces: Sequence[int], words: Sequence[int]) -> Floats:
    """The share of each piece in each word, 0 to 1 [piece, word], by the number of visible characters.

    A row sums to 1, or to 0 if the piece has no visible character. A ValueError says that the texts differ in length,
    or that a word has no character.
    """
    if sum(pieces) != sum(words):
        raise ValueError(f"the tokens have {sum(pieces)} characters, the words {sum(words)}")
    if 0 in words:
        raise ValueError(f"word {list(words).index(0)} has no character")
    piece_ends, word_ends = np.cumsum(pieces, dtype=np.int64), np.cumsum(words, dtype=np.int64)
    ends = np.minimum(piece_ends[:, None], word_ends[None])  # [piece, word]
    starts = np.maximum((piece_ends - pieces)[:, None], (word_ends - words)[None])
    common = np.maximum(ends - starts, 0)
    return common / np.maximum(np.asarray(pieces, dtype=np.int64), 1)[:, None]


def with_means(weights: Floats) -> Floats:
    """Append the mean over heads as one more head, and the mean over all layers as one more layer.

    [L, H, J, I] -> [L + 1, H + 1, J, I]. The last place of the last layer is the mean over all layers and heads; its
    other places have no meaning.
    """
    heads = np.concatenate((weights, weights.mean(axis=1, keepdims=True)), axis=1)
    return np.concatenate((heads, heads.mean(axis=0, keepdims=True)), axis=0)


def best_sources(weights: Floats) -> NDArray[np.int64]:
    """For each target word the source word of its largest weight: [..., J, I] -> [..., J]."""
    return weights.argmax(axis=-1)


def diagonal_sources(n_target: int, n_source: int) -> NDArray[np.int64]:
    """For each target word the source word at the same relative place [J]: a baseline without a model."""
    places = (np.arange(n_target) + 0.5) / n_target * n_source
    return np.minimum(places.astype(np.int64), n_source - 1)


def count_links(sources: NDArray[np.int64], links: Links, *, n_source: int) -> Counts:
    """Compare links with a sentence's gold links: the source word of each target word [..., J] -> counts [...]."""
    n_target = sources.shape[-1]
    target = np.arange(n_target)
    hits = []
    for gold in (links.sure, links.possible):
        table = np.zeros((n_target, n_source), dtype=np.int64)
        for i, j in gold:
            table[j, i] = 1
        hits.append(table[target, sources].sum(axis=-1))
    return Counts(hits[0], hits[1], n_target, len(links.sure))


@dataclass(frozen=True)
class GoldPair:
    """One sentence pair as words, with its gold links."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    links: Links


@dataclass(frozen=True)
class GoldSet:
    """An alignment corpus."""

    names: tuple[str, ...]  # of the source file, the target file and the file of links
    sha256: tuple[str, ...]  # of each, hexadecimal
    pairs: tuple[GoldPair, ...]  # one a line


def read_gold(source: Path, target: Path, gold: Path) -> GoldSet:
    """Read two files of words, one sentence per line, and their file of links (see `parse_links`).

    A DataError says which file is missing, empty or not UTF-8, that they differ in length, or that a link is damaged
    or names a word that its sentence does not have.
    """
    paths = (source, target, gold)
    contents = [untrusted_folder.read_start(path) for path in paths]
    lines = [_lines(content, path) for content, path in zip(contents, paths, strict=True)]
    if len({len(found) for found in lines}) > 1:
        counted = ", ".join(f"{path.name} {len(found):,}" for path, found in zip(paths, lines, strict=True))
        raise DataError("the three files must have the same number of lines; found {counted}.", counted=counted)
    pairs = [
        _pair(*row, label=say("{file}, line {line}", file=str(gold), line=n))
        for n, row in enumerate(zip(*lines, strict=True), start=1)
    ]
    if not any(pair.links.sure for pair in pairs):
        raise DataError(
            "{file}: has no sure link such as `3-4`, so there are no links to compare with.", file=str(gold)
        )
    hashes = tuple(hashlib.sha256(content).hexdigest() for content in contents)
    return GoldSet(tuple(path.name for path in paths), hashes, tuple(pairs))


def _lines(content: bytes, path: Path) -> list[str]:
    text = untrusted_folder.decoded(content, label=str(path))
    # Only these are ends of lines: a sentence may contain U+2028 and the like.
    lines = text.replace("\r\n", "\n").removesuffix("\n").split("\n")
    if lines == [""]:
        raise DataError("{file}: is empty; expected one sentence per line.", file=str(path))
    return lines


def _pair(source: str, target: str, gold: str, *, label: str) -> GoldPair:
    with within(label, DataError):
        words = GoldPair(tuple(source.split()), tuple(target.split()), parse_links(gold))
        for side, place, found in (("source", 0, words.source), ("target", 1, words.target)):
            last = max((link[place] for link in words.links.possible), default=-1)
            if last >= len(found):
                raise ClauseError(_outside(side, last, len(found)))
    return words


def _outside(side: str, last: int, count: int) -> Sentence:
    if side == "source":
        return say_n("a link refers to source word {last}, counted from 0, but the source has only {n} word. Give "
                     "the files in the order source, target, links",
                     "a link refers to source word {last}, counted from 0, but the source has only {n} words. Give "
                     "the files in the order source, target, links", count, last=last)  # fmt: skip
    return say_n("a link refers to target word {last}, counted from 0, but the target has only {n} word. Give "
                 "the files in the order source, target, links",
                 "a link refers to target word {last}, counted from 0, but the target has only {n} words. Give "
                 "the files in the order source, target, links", count, last=last)  # fmt: skip


Spacing = Callable[[Sequence[str]], str]

WITHOUT_SPACES = frozenset({"zh", "yue", "wuu", "ja", "th", "lo", "km", "my"})
_CLOSING = frozenset(",.)]}%…")
_CLOSING_UNLESS_FRENCH = frozenset(":;!?")
_OPENING = frozenset("([{$£¥")
_CLITIC = re.compile(r"(?:['’]\w*|n['’]t)", re.IGNORECASE)  # a lone ' as in the workers' rights
_ELIDED = re.compile(r"(?<!\S)(\w+['’]) ")  # l' homme


def without_spaces(words: Sequence[str]) -> str:
    """The words without spaces, except between Latin letters or digits that would run together."""
    text = ""
    for word in words:
        grows = text[-1:].isascii() and text[-1:].isalnum() and word[:1].isascii() and word[:1].isalnum()
        text += " " * grows + word
    return text


SPACINGS: dict[str, Spacing] = {
    "spaced": " ".join,  # as the corpus has them
    "joined": without_spaces,
    # Punctuation and clitics go to their words: `it 's ( not ) here .` as `it's (not) here.` and the like.
    "attached": lambda words: _attach(words, _CLOSING | _CLOSING_UNLESS_FRENCH),
    # The same, with a space before `: ; ! ?` and none after `l'`.
    "attached-french": lambda words: _ELIDED.sub(r"\1", _attach(words, _CLOSING)),
}


def usual_spacing(language: str) -> str:
    """The usual spacing of a language, as a key of `SPACINGS`, by a code such as "zh-Hans"; without one, spaces."""
    code = language.lower().split("-")[0]
    if not code:
        return "spaced"
    if code in WITHOUT_SPACES:
        return "joined"
    return "attached-french" if code == "fr" else "attached"


def _attach(words: Sequence[str], closing: frozenset[str]) -> str:
    text, open_quote, glued = "", False, True  # glued: the next word follows without a space
    for word in words:
        is_quote = word == '"'
        closes = (is_quote and open_quote) or set(word) <= closing or _CLITIC.fullmatch(word) is not None
        text += word if glued or closes else f" {word}"
        open_quote ^= is_quote
        glued = (is_quote and open_quote) or set(word) <= _OPENING
    return text


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
    total = sum(counts[1:], start=counts[0])
    aer = total.aer()  # [2, L + 1, H + 1]
    return AlignmentScores(
        gold=gold,
        source_text=source_text,
        target_text=target_text,
        heads=aer[:, :-1, :-1],
        layers=aer[:, :-1, -1],
        mean=aer[:, -1, -1],
        outside=np.sum(outside, axis=0) / total.n_found,
        diagonal=float(sum(diagonal[1:], start=diagonal[0]).aer()),
        n_sentences=len(counts),
        left_out=dict(left_out),
    )


def _by_row(rates: Floats) -> dict[str, object]:
    return dict(zip(ROWS, rates.round(4).tolist(), strict=True))


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
