"""Measures of heads in batches, layer by layer: from maps, norms, gold links; Arrow tables of them and of vectors.

They are the numbers of `head_statistics`, each layer for itself. Most are linear in a map: the mean weight on the
previous token is the sum of the map times another map that has 1 / n on that diagonal. So all of these of all heads are
one product of each line's maps with its own fixed maps, which are made once for all layers. Only entropy and the
largest weight need a look at each weight.

The links of cross-attention are counted in lines that have a gold alignment (`Linking`).

Shapes: B or N lines, L layers, H heads, Q queries, K keys, d d_head, M measures. Masks are bool.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Final, Literal

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from glassformer.extensions.corpus.library.lines import Item, LinePieces, named_pieces, one_word
from glassformer.extensions.corpus.library.tables import HEADS, NAMES, VECTORS, CorpusLine, Name
from transformer.analysis.alignment import GoldPair, Links, best_sources, count_links, piece_shares
from transformer.analysis.word_merging import Floats, merge_words
from transformer.checkpoint.load import Checkpoint
from transformer.model.anatomy import Attention, Kind, anatomy
from transformer.model.config import ModelConfig
from transformer.text.tokenizer import SPACE_MARK, AnyTokenizer, normalise

_LINEAR: Final[tuple[Name, ...]] = (
    "distance",
    "self",
    "previous",
    "next",
    "first",
    "end",
    "diagonal",
    "same",
    "punctuation",
)
MEASURED: Final[tuple[Name, ...]] = NAMES[: NAMES.index("effect")]
_OFFSETS: Final[tuple[tuple[Name, int], ...]] = (("self", 0), ("previous", -1), ("next", 1))
_AT_ONCE = 2**21  # weights of a part, 8 MB


@dataclass(frozen=True, eq=False)
class LayerTokens:
    """The tokens of a stack, padded to T."""

    n: Tensor  # how many each line has [B]
    texts: Tensor  # numbers of their texts, -1 for none [B, T]
    punctuation: Tensor  # bool [B, T]
    end: Tensor  # whether the last of them is the end mark of a source [B]


@dataclass(frozen=True, eq=False)
class Fixed:
    """What the measures of a kind need of a batch, whatever the layer."""

    queries: LayerTokens
    keys: LayerTokens
    mask: Tensor  # what the model used, broadcasts to [B, 1, Q, K]
    crosses: bool  # the keys are not the queries
    dtype: torch.dtype

    @cached_property
    def allowed(self) -> Tensor:
        """Pairs that count [B, Q, K]: open, and no padding."""
        (n_lines, n_queries), n_keys = self.queries.texts.shape, self.keys.texts.size(1)
        places = torch.arange(n_queries, device=self.mask.device), torch.arange(n_keys, device=self.mask.device)
        real = [place < side.n[:, None] for place, side in zip(places, (self.queries, self.keys), strict=True)]
        return self.mask[:, 0].expand(n_lines, n_queries, n_keys) & real[0][:, :, None] & real[1][:, None]

    @cached_property
    def n_open(self) -> Tensor:
        """Open keys of each row [B, Q]."""
        return self.allowed.sum(dim=-1)

    @cached_property
    def maps(self) -> tuple[Tensor, Tensor]:
        """What linear measures multiply a map with, over their rows [B, Q * K, M], and which of them a line has."""
        found = [self._map(name) for name in _LINEAR]
        maps = torch.stack([values.expand(self.allowed.shape) for values, _ in found], dim=-1)  # [B, Q, K, M]
        n_rows = torch.stack([rows.sum(dim=-1) for _, rows in found], dim=-1)  # [B, M]
        scaled = maps / n_rows.clamp(min=1)[:, None, None]
        return scaled.flatten(1, 2).to(self.dtype), n_rows > 0

    @cached_property
    def rows(self) -> tuple[Tensor, Tensor]:
        """What entropy, its share and the largest weight of rows are multiplied with [B, Q, 3], and which exist."""
        some, several = self.n_open >= 1, self.n_open >= 2
        counts = torch.stack([some, several, some], dim=-1).to(torch.float64)  # [B, Q, 3]
        n_rows = counts.sum(dim=1)  # [B, 3]
        factors = counts / n_rows.clamp(min=1)[:, None]
        factors[..., 1] /= self.n_open.clamp(min=2).log2()
        return factors.to(self.dtype), n_rows > 0

    def _map(self, name: Name) -> tuple[Tensor, Tensor]:
        """The map of a linear measure, broadcasts to [B, Q, K], 0 in rows that do not count; the others [B, Q]."""
        is_open, rows = self.allowed, self.n_open >= 1
        query, key = (torch.arange(n, device=is_open.device) for n in is_open.shape[1:])
        if name == "distance":
            return self._apart(query, key) * rows[..., None], rows
        n_keys = self.keys.n[:, None, None]  # [B, 1, 1]
        match name:
            case "self" | "previous" | "next":
                on = (key == query[:, None] + dict(_OFFSETS)[name]) & (not self.crosses)
            case "first":
                on = key[None, None] == 0
            case "end":
                on = (key == n_keys - 1) & self.keys.end[:, None, None]
            case "diagonal":
                steps = (self.queries.n[:, None, None] - 1).clamp(min=1)
                nearest = (2 * query[:, None] * (n_keys - 1) + steps) // (2 * steps)  # [B, Q, 1]
                return ((key == nearest) & self.crosses & rows[..., None]).double(), rows & self.crosses
            case "same":
                texts = self.queries.texts[:, :, None]
                on = (texts == self.keys.texts[:, None]) & (texts >= 0)
                on = on if self.crosses else on & (key != query[:, None])
            case _:
                on = self.keys.punctuation[:, None]
        on = on & is_open
        return on.double(), on.any(dim=-1)

    def _apart(self, query: Tensor, key: Tensor) -> Tensor:
        """How far each key is from each query, of cross-attention as shares of both lengths: [Q, K] or [B, Q, K]."""
        if not self.crosses:
            return (query[:, None] - key).abs().double()
        places = [
            place.double() / (side.n[:, None] - 1).clamp(min=1)
            for place, side in ((query, self.queries), (key, self.keys))
        ]
        return (places[0][:, :, None] - places[1][:, None]).abs()


def measure_layer(weights: Tensor, shares: Tensor, fixed: Fixed) -> tuple[Tensor, Tensor, Tensor]:
    """Measure a layer's maps [B, H, Q, K]; `shares` are those of `norm_shares` [B, H].

    Returns the measures [B, H, M], as `MEASURED`, NaN for what a line or the model does not have; the row of the peak
    [B, H], -1 without one; and its key [B, H].
    """
    n_heads = max(1, _AT_ONCE // max(weights[:, 0].numel(), 1))
    parts = [_measure(*some, fixed) for some in zip(weights.split(n_heads, 1), shares.split(n_heads, 1), strict=True)]
    values, query, key = (torch.cat(found, dim=1) for found in zip(*parts, strict=True))
    return values, query, key


def _measure(weights: Tensor, shares: Tensor, fixed: Fixed) -> tuple[Tensor, Tensor, Tensor]:
    (linear, has_linear), (factors, has_rows) = fixed.maps, fixed.rows
    sums = torch.bmm(weights.flatten(2), linear).masked_fill_(~has_linear[:, None], math.nan)  # [B, H, M]
    tiny = torch.finfo(weights.dtype).tiny  # a weight of 0 adds 0
    bits = weights.clamp(min=tiny).log2_().mul_(weights).sum(dim=-1).neg_()  # [B, H, Q]
    largest = weights.amax(dim=-1)  # [B, H, Q]
    of_rows = torch.cat([torch.bmm(bits, factors[..., :2]), torch.bmm(largest, factors[..., 2:])], dim=-1)
    of_rows.masked_fill_(~has_rows[:, None], math.nan)
    peak, query = largest.masked_fill(fixed.n_open[:, None] < 2, -1.0).max(dim=-1)  # [B, H]
    key = weights.gather(2, query[..., None, None].expand(-1, -1, 1, weights.size(3)))[:, :, 0].argmax(dim=-1)
    none = peak < 0
    n_before = _LINEAR.index("same")  # the share of the output is before it in `NAMES`
    peaks = peak.masked_fill(none, math.nan)[..., None]
    values = torch.cat([of_rows, sums[..., :n_before], shares[..., None], sums[..., n_before:], peaks], dim=-1)
    return values, query.masked_fill(none, -1), key


def output_factors(weight: Tensor, n_heads: int) -> Tensor:
    """For each head a small matrix [H, d, r] that leaves every vector as long as its rows of W_O do.

    A head's columns of W_O [D, H * d] are Q R with orthonormal Q, so a head's vector times R^T has the output's length.
    """
    parts = weight.detach().double().unflatten(1, (n_heads, -1)).transpose(0, 1)  # [H, D, d]
    return torch.linalg.qr(parts, mode="r").R.mT.to(torch.promote_types(weight.dtype, torch.float32))


def norm_shares(heads: Tensor, factors: Tensor, rows: Tensor) -> Tensor:
    """Each head's mean share of what the attention writes [B, H], from head vectors [B, H, Q, d] and rows [B, Q].

    Rows in which no head writes do not count; NaN if there are no others. See `head_statistics.norm_share`.
    """
    joined = heads.transpose(0, 1).reshape(heads.size(1), -1, heads.size(3))  # [H, B * Q, d]
    norms = torch.linalg.vector_norm(torch.bmm(joined, factors), dim=-1)  # [H, B * Q]
    norms = norms.unflatten(1, (heads.size(0), -1)).transpose(0, 1)  # [B, H, Q]
    total = norms.sum(dim=1)  # [B, Q]
    counts = rows & (total > 0)
    factor = counts / (total.masked_fill(~counts, 1.0) * counts.sum(dim=-1, keepdim=True))  # 0 / 0 without rows
    return torch.bmm(norms, factor[..., None])[..., 0]


@dataclass(frozen=True)
class Linking:
    """Parts of a line's words, and gold links, as `transformer.analysis.alignment` counts them.

    Shapes: S source tokens, T target pieces, J target words, I source words.
    """

    first: int  # the decoder's row that predicts the first piece of the target
    src_shares: Floats  # the share of each source token in each word [S, I]
    tgt_shares: Floats  # the same of the target's pieces, without its end mark [T, J]
    links: Links

    def counts(self, weights: Tensor) -> np.ndarray:
        """As `LINKS` [5, H], from the maps of a layer's cross-attention [H, Q, S]."""
        n_pieces, n_words = self.tgt_shares.shape
        maps = weights[:, :, : len(self.src_shares)].double().cpu().numpy()
        rows = np.stack([maps[:, first : first + n_pieces] for first in (self.first, self.first + 1)])  # [2, H, T, S]
        sources = best_sources(merge_words(rows, self.src_shares, self.tgt_shares))  # [2, H, J]
        found = count_links(sources, self.links, n_source=self.src_shares.shape[1])
        sure, possible = found.sure_hits, found.possible_hits  # [2, H]
        return np.stack([np.full(len(maps), n_words), sure[0], possible[0], sure[1], possible[1]])


def linking(checkpoint: Checkpoint, line: CorpusLine, item: Item, pieces: LinePieces, gold: GoldPair) -> Linking | None:
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


# ------------------------------------------------------------------------------------------------ arrays and tables

MOST = 2**24  # numbers that are kept, 64 MB
Side = Literal["query", "key"]
SIDES: Final[tuple[Side, ...]] = "query", "key"


Vectors = dict[int, dict[tuple[Kind, Side, int], np.ndarray]]
"""Of some items, by their places: queries and keys, float32 [H, its tokens, d], by kind, side and layer."""


def tokens_of(item: Item, kind: Kind, side: Side) -> tuple[int, ...]:
    """The numbers of the pieces that are queries or keys in an attention."""
    of_encoder = kind == "encoder" or (kind == "cross" and side == "key")
    return item.source if of_encoder else item.read


def room_for(config: ModelConfig, items: Sequence[Item]) -> Vectors:
    """Room for the vectors of the first of these items, as many as `MOST` numbers allow."""
    found, total = Vectors(), 0
    for item in items:
        for one in anatomy(config).attentions:
            n_tokens = sum(len(tokens_of(item, one.kind, side)) for side in SIDES)
            total += one.n_layers * config.of(one.stack).n_heads * config.of(one.stack).d_head * n_tokens
        if total > MOST:
            break
        found[item.place] = {}
    return found


def vectors_table(
    attentions: Sequence[Attention],
    lines: Sequence[CorpusLine],
    items: Sequence[Item],
    pieces: LinePieces,
    found: Vectors,
) -> pa.Table | None:
    """The table `VECTORS`: items that have some, by kind, layer, head, side and line; None if empty."""
    kept = [item for item in items if item.place in found]
    if not kept:
        return None
    return pa.concat_tables(_of_kind(one, found, kept, lines, pieces) for one in attentions).unify_dictionaries()


def _of_kind(
    attention: Attention, found: Vectors, items: Sequence[Item], lines: Sequence[CorpusLine], pieces: LinePieces
) -> pa.Table:
    kind, sides = attention.kind, [(side, item) for side in SIDES for item in items]
    numbers = [tokens_of(item, kind, side) for side, item in sides]
    counts = list(map(len, numbers))
    layers = range(attention.n_layers)
    values = np.stack(
        [np.concatenate([found[item.place][kind, side, layer] for side, item in sides], axis=1) for layer in layers]
    )  # [L, H, N, d]
    n_layers, n_heads, n_tokens, width = values.shape
    n_maps, n_queries = n_layers * n_heads, sum(counts[: len(items)])
    layer, head = np.indices((n_layers, n_heads), np.uint8).reshape(2, n_maps) + np.uint8(1)
    side = pa.array(np.tile(np.repeat(np.array([0, 1], np.int8), [n_queries, n_tokens - n_queries]), n_maps))
    columns = {
        "line": pa.array(
            np.tile(np.repeat([lines[item.place].number for item in items] * 2, counts), n_maps), pa.int32()
        ),
        "kind": one_word(kind, n_maps * n_tokens),
        "layer": pa.array(np.repeat(layer, n_tokens)),
        "head": pa.array(np.repeat(head, n_tokens)),
        "side": pa.DictionaryArray.from_arrays(side, pa.array(SIDES)),
        "place": pa.array(np.tile(np.concatenate([np.arange(n) for n in counts]), n_maps), pa.int16()),
        "piece": named_pieces(np.tile([*chain(*numbers)], n_maps), pieces),
        "vector": pa.ListArray.from_arrays(
            pa.array(np.arange(0, values.size + 1, width), pa.int32()), pa.array(values.ravel())
        ),
    }
    return pa.Table.from_arrays([columns[name] for name in VECTORS.names], schema=VECTORS)


LINKS = ("links", "links_sure", "links_possible", "reads_sure", "reads_possible")


@dataclass(frozen=True, eq=False)
class HeadResults:
    """What was found of all heads of a kind."""

    values: np.ndarray  # [L, H, N, M], M as `NAMES`; NaN for what there is not
    peaks: np.ndarray  # row and key of the largest weight [2, L, H, N]; -1 without one
    links: np.ndarray  # as `LINKS` [5, L, H, N]; -1 without a gold alignment

    @staticmethod
    def empty(config: ModelConfig, n_lines: int) -> dict[Kind, HeadResults]:
        """Nothing yet, of each kind."""
        found = dict[Kind, HeadResults]()
        for one in anatomy(config).attentions:
            shape = one.n_layers, config.of(one.stack).n_heads, n_lines
            found[one.kind] = HeadResults(
                np.full((*shape, len(NAMES)), np.nan, np.float32),
                np.full((2, *shape), -1, np.int32),
                np.full((len(LINKS), *shape), -1, np.int32),
            )
        return found


def heads_table(
    lines: Sequence[CorpusLine], items: Sequence[Item], pieces: LinePieces, found: Mapping[Kind, HeadResults]
) -> pa.Table:
    """The table `HEADS`: items by kind, layer and head."""
    parts = [_heads_of(kind, heads, lines, items, pieces) for kind, heads in found.items()]
    return pa.concat_tables(parts).unify_dictionaries() if parts and items else HEADS.empty_table()


def _heads_of(
    kind: Kind, heads: HeadResults, lines: Sequence[CorpusLine], items: Sequence[Item], pieces: LinePieces
) -> pa.Table:
    places = np.array([item.place for item in items], np.int64)
    n_layers, n_heads = heads.values.shape[:2]
    shape = n_layers, n_heads, len(places)
    layer, head, _ = np.indices(shape, np.uint8)
    (query, key), links = heads.peaks[..., places], heads.links[..., places]
    values = heads.values[:, :, places].reshape(-1, len(NAMES))
    tokens = [item.source if kind == "encoder" else item.read for item in items]
    sources = [item.read if kind == "decoder" else item.source for item in items]
    columns: dict[str, pa.Array] = {
        "line": pa.array(np.broadcast_to([lines[place].number for place in places], shape).ravel(), pa.int32()),
        "kind": one_word(kind, layer.size),
        "layer": pa.array(layer.ravel() + np.uint8(1)),
        "head": pa.array(head.ravel() + np.uint8(1)),
        **{
            name: pa.array(column, pa.float32(), mask=np.isnan(column))  # NaN as null
            for name, column in zip(NAMES, values.T, strict=True)
        },
        "peak_query": _there(query, query >= 0, pa.int16()),
        "peak_key": _there(key, query >= 0, pa.int16()),
        "peak_step": _steps(kind, query, items),
        "peak_query_piece": _pieces(query, query >= 0, tokens, pieces),
        "peak_key_piece": _pieces(key, query >= 0, sources, pieces),
        **{name: _there(column, column >= 0, pa.int32()) for name, column in zip(LINKS, links, strict=True)},
    }
    return pa.Table.from_arrays([columns[name] for name in HEADS.names], schema=HEADS)


def _steps(kind: Kind, query: np.ndarray, items: Sequence[Item]) -> pa.Array:
    first = np.array([-1 if item.step is None else item.step for item in items])
    there = (query >= first) & (first >= 0) & (kind != "encoder") & (query >= 0)
    return _there(query - first, there, pa.int16())


def _pieces(
    tokens: np.ndarray, there: np.ndarray, numbers: Sequence[tuple[int, ...]], pieces: LinePieces
) -> pa.DictionaryArray:
    """The pieces of tokens [L, H, N], of lines with these numbers of pieces."""
    starts = np.cumsum([0, *map(len, numbers)])[:-1]
    flat = np.array([*chain(*numbers)])
    return named_pieces(flat[starts + np.where(there, tokens, 0)].ravel(), pieces, ~there.ravel())


def _there(values: np.ndarray, there: np.ndarray, kind: pa.DataType) -> pa.Array:
    return pa.array(np.where(there, values, 0).ravel(), kind, mask=~there.ravel())
