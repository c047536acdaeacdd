"""Measured results as arrays, and their conversion to tables.

Shapes: N lines, L layers, H heads, M measures.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final, Literal

import numpy as np
import pyarrow as pa

from glassformer.extensions.corpus.library.lines import Item, LinePieces, named_pieces, one_word
from glassformer.extensions.corpus.library.tables import HEADS, NAMES, SENTENCES, VECTORS, CorpusLine
from transformer.model.anatomy import Kind, anatomy
from transformer.model.config import ModelConfig

MOST = 2**24  # numbers that are kept, 64 MB
Side = Literal["query", "key"]
SIDES: Final[tuple[Side, ...]] = "query", "key"


@dataclass(frozen=True, eq=False)
class Vectors:
    """The queries and keys of some items [L, H, N, d], N tokens, d d_head; in the order of their table."""

    items: tuple[Item, ...]
    arrays: Mapping[Kind, np.ndarray]  # float32 [L, H, N, d], the tokens of all items as queries, then as keys
    places: Mapping[tuple[Kind, Side, int], slice]  # which of N are an item's, by its place

    def put(self, kind: Kind, layer: int, side: Side, place: int, values: np.ndarray) -> None:
        """Keep the vectors of an item [H, more than its tokens, d]."""
        where = self.places[kind, side, place]
        self.arrays[kind][layer, :, where] = values[:, : where.stop - where.start]


def tokens_of(item: Item, kind: Kind, side: Side) -> tuple[int, ...]:
    """The numbers of the pieces that are queries or keys in an attention."""
    of_encoder = kind == "encoder" or (kind == "cross" and side == "key")
    return item.source if of_encoder else item.read


def room_for(config: ModelConfig, items: Sequence[Item]) -> Vectors:
    """Room for the vectors of the first of these items, as many as `MOST` numbers allow."""
    attentions, kept, total = anatomy(config).attentions, list[Item](), 0
    for item in items:
        for one in attentions:
            n_tokens = sum(len(tokens_of(item, one.kind, side)) for side in SIDES)
            total += one.n_layers * config.of(one.stack).n_heads * config.of(one.stack).d_head * n_tokens
        if total > MOST:
            break
        kept.append(item)
    arrays, places = dict[Kind, np.ndarray](), dict[tuple[Kind, Side, int], slice]()
    for one in attentions:
        end = 0
        for side in SIDES:
            for item in kept:
                start, end = end, end + len(tokens_of(item, one.kind, side))
                places[one.kind, side, item.place] = slice(start, end)
        own = config.of(one.stack)
        arrays[one.kind] = np.zeros((one.n_layers, own.n_heads, end, own.d_head), np.float32)
    return Vectors(tuple(kept), arrays, places)


def vectors_table(
    lines: Sequence[CorpusLine], pieces: LinePieces, found: Vectors, problems: Mapping[int, str]
) -> pa.Table | None:
    """The table `VECTORS`: by kind, layer, head, side and line, without lines that have a problem; None if empty."""
    items = [item for item in found.items if item.place not in problems]
    if not items:
        return None
    return pa.concat_tables(_of_kind(kind, found, items, lines, pieces) for kind in found.arrays).unify_dictionaries()


def _of_kind(
    kind: Kind, found: Vectors, items: Sequence[Item], lines: Sequence[CorpusLine], pieces: LinePieces
) -> pa.Table:
    numbers = [tokens_of(item, kind, side) for side in SIDES for item in items]
    counts, values = list(map(len, numbers)), found.arrays[kind]
    if len(items) < len(found.items):
        places = [found.places[kind, side, item.place] for side in SIDES for item in items]
        values = values[:, :, np.concatenate([np.arange(where.start, where.stop) for where in places])]
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
    def empty(n_layers: int, n_heads: int, n_lines: int) -> HeadResults:
        """Nothing yet."""
        shape = n_layers, n_heads, n_lines
        return HeadResults(
            np.full((*shape, len(NAMES)), np.nan, np.float32),
            np.full((2, *shape), -1, np.int32),
            np.full((len(LINKS), *shape), -1, np.int32),
        )


@dataclass(frozen=True, eq=False)
class Sentences:
    """What was found of lines [N]."""

    log_prob: np.ndarray  # NaN where nothing is predicted
    rank: np.ndarray  # the largest
    step: np.ndarray  # where it is
    sure: np.ndarray  # sure links; -1 without a gold alignment

    @staticmethod
    def empty(n_lines: int) -> Sentences:
        """Nothing yet."""
        places = [np.full(n_lines, -1, np.int32) for _ in range(3)]
        return Sentences(np.full(n_lines, np.nan), *places)


@dataclass(frozen=True, eq=False)
class ResultArrays:
    """All that was found."""

    heads: Mapping[Kind, HeadResults]
    sentences: Sentences
    vectors: Vectors

    @staticmethod
    def empty(config: ModelConfig, n_lines: int, vectors: Vectors) -> ResultArrays:
        """Nothing yet."""
        attentions = anatomy(config).attentions
        heads = {one.kind: HeadResults.empty(one.n_layers, config.of(one.stack).n_heads, n_lines) for one in attentions}
        return ResultArrays(heads, Sentences.empty(n_lines), vectors)


def heads_table(
    lines: Sequence[CorpusLine], items: Sequence[Item], pieces: LinePieces, found: ResultArrays
) -> pa.Table:
    """The table `HEADS`: items by kind, layer and head."""
    parts = [_heads_of(kind, heads, lines, items, pieces) for kind, heads in found.heads.items()]
    return pa.concat_tables(parts).unify_dictionaries() if parts and items else HEADS.empty_table()


def _heads_of(
    kind: Kind, heads: HeadResults, lines: Sequence[CorpusLine], items: Sequence[Item], pieces: LinePieces
) -> pa.Table:
    places = np.array([item.place for item in items], np.int64)
    n_layers, n_heads = heads.values.shape[:2]
    shape = n_layers, n_heads, len(places)
    layer, head, _ = np.indices(shape, np.uint8)
    peaks, links = heads.peaks[..., places], heads.links[..., places]
    query, key = peaks
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


def sentences_table(rows: Iterator[Mapping[str, object]]) -> pa.Table:
    """The table `SENTENCES`, from what is known of each line; the rest is null."""
    return pa.Table.from_pylist([dict(row) for row in rows], schema=SENTENCES)
