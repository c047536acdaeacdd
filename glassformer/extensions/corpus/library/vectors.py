"""The queries and keys of the first lines, and the table made of them. Knows nothing of models but their sizes.

They are written straight into arrays in the order of the table. Shapes: L layers, H heads, N tokens, d d_head.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final, Literal

import numpy as np
import pyarrow as pa

from glassformer.extensions.corpus.library.reading import Item, Pieces, named_pieces, one_word
from glassformer.extensions.corpus.library.tables import VECTORS, Line
from transformer.model.anatomy import Kind, anatomy
from transformer.model.config import ModelConfig

MOST = 2**24  # numbers that are kept, 64 MB
Side = Literal["query", "key"]
SIDES: Final[tuple[Side, ...]] = "query", "key"


@dataclass(frozen=True, eq=False)
class Vectors:
    """The queries and keys of some items."""

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
    lines: Sequence[Line], pieces: Pieces, found: Vectors, problems: Mapping[int, str]
) -> pa.Table | None:
    """The table `VECTORS`: by kind, layer, head, side and line, without lines that have a problem; None if empty."""
    items = [item for item in found.items if item.place not in problems]
    if not items:
        return None
    return pa.concat_tables(_of_kind(kind, found, items, lines, pieces) for kind in found.arrays).unify_dictionaries()


def _of_kind(kind: Kind, found: Vectors, items: Sequence[Item], lines: Sequence[Line], pieces: Pieces) -> pa.Table:
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
